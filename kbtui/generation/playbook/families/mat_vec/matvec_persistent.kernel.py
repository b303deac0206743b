"""Matrix-vector product by as many programs as the chip holds, each with an equal share of all tiles.

y_i = sum_k A_ik b_k. The tiles of all rows are dealt out in order, whatever the shape: program q takes tiles q*s to
(q+1)*s - 1, and writes one partial sum for every row it meets (work-centric splitting, Osama et al. 2023,
arXiv:2301.03598). A second kernel adds the partial sums of a row in order, so that every call gives the same bits; on
Hopper it is launched as a dependent (PTX griddepcontrol), placed while the first still runs. A tile is ROWS rows high:
they share each read of the vector, which otherwise brings an SM as many bytes from L2 as the matrix does, and as many
into shared memory where loads run ahead.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

ROWS = 2
TILE = 2048
NUM_WARPS = 8
PROGRAMS_PER_SM = 8
STAGES = 4
N_SMS = 132
ARCH = 90


@triton.jit
def share_of_tiles(
    matrix_ptr, vector_ptr, partial_ptr, matrix_row, matrix_col, vector_step, n_rows, n_cols, row_tiles, n_tiles, share,
    n_places, ROWS: tl.constexpr, TILE: tl.constexpr, STAGES: tl.constexpr, OVERLAPPED: tl.constexpr,
):  # fmt: skip
    if OVERLAPPED:
        gdc_launch_dependents()
    program = tl.program_id(0)
    first = program * share
    stop = tl.minimum(first + share, n_tiles)
    for block in range(first // row_tiles, tl.cdiv(stop, row_tiles)):
        block_start = block * row_tiles
        rows = tl.cast(block, tl.int64) * ROWS + tl.arange(0, ROWS)
        row_ptrs = matrix_ptr + rows[:, None] * matrix_row
        products = tl.zeros((ROWS, TILE), tl.float32)
        from_tile = tl.maximum(first, block_start) - block_start
        to_tile = tl.minimum(stop, block_start + row_tiles) - block_start
        for tile in tl.range(from_tile, to_tile, num_stages=STAGES):
            cols = tile * TILE + tl.arange(0, TILE)
            mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
            a = tl.load(row_ptrs + cols[None, :] * matrix_col, mask=mask, other=0.0, eviction_policy="evict_first")
            b = tl.load(vector_ptr + cols * vector_step, mask=cols < n_cols, other=0.0, eviction_policy="evict_last")
            products += a.to(tl.float32) * b.to(tl.float32)[None, :]
        # Shares cut rows at multiples of `share`: the partial sum's place is counted from the rows' first share.
        place = program - block_start // share
        tl.store(partial_ptr + rows * n_places + place, tl.sum(products, axis=1), mask=rows < n_rows)


@triton.jit
def add_shares(
    partial_ptr, out_ptr, n_rows, row_tiles, share, n_places,
    ROWS: tl.constexpr, PLACES: tl.constexpr, TILE_ROWS: tl.constexpr, OVERLAPPED: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    places = tl.arange(0, PLACES)
    block_start = (rows // TILE_ROWS) * row_tiles
    used = (block_start + row_tiles - 1) // share - block_start // share + 1
    mask = (rows[:, None] < n_rows) & (places[None, :] < used[:, None])
    if OVERLAPPED:
        gdc_wait()
    partial = tl.load(partial_ptr + rows.to(tl.int64)[:, None] * n_places + places[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + rows, tl.sum(partial, axis=1), mask=rows < n_rows)


def kernel_function(matrix, vector):
    n_rows, n_cols = matrix.shape
    out = torch.empty((n_rows, *vector.shape[1:]), dtype=matrix.dtype, device=matrix.device)
    tile = min(TILE, triton.next_power_of_2(n_cols))
    row_tiles = triton.cdiv(n_cols, tile)
    n_tiles = triton.cdiv(n_rows, ROWS) * row_tiles
    share = triton.cdiv(n_tiles, N_SMS * PROGRAMS_PER_SM)
    n_places = triton.cdiv(row_tiles + share - 1, share)
    overlapped = ARCH >= 90 and matrix.is_cuda
    partial = torch.empty((n_rows, n_places), dtype=torch.float32, device=matrix.device)
    share_of_tiles[(triton.cdiv(n_tiles, share),)](
        matrix, vector, partial, matrix.stride(0), matrix.stride(1), vector.stride(0), n_rows, n_cols, row_tiles,
        n_tiles, share, n_places, ROWS=ROWS, TILE=tile, STAGES=STAGES, OVERLAPPED=overlapped, num_warps=NUM_WARPS,
    )  # fmt: skip
    places = triton.next_power_of_2(n_places)
    rows = max(1, 1024 // places)
    early = {"launch_pdl": True} if overlapped else {}
    add_shares[(triton.cdiv(n_rows, rows),)](
        partial, out, n_rows, row_tiles, share, n_places, ROWS=rows, PLACES=places, TILE_ROWS=ROWS,
        OVERLAPPED=overlapped, num_warps=2, **early,
    )  # fmt: skip
    return out
