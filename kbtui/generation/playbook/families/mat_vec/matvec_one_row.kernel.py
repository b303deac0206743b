"""Matrix-vector product, one row a program.

y_i = sum_k A_ik b_k: a program walks one row in wide tiles, every position of the tile with a sum of its own, and adds
them up once at the end. Many 16-byte loads in flight, no second kernel. With STAGGER, program i begins its row i times
STAGGER tiles in and goes round: rows whose length is a power of two otherwise have all programs read at the same
distance from such a multiple, and those addresses share few of the memory's channels.
"""

import torch
import triton
import triton.language as tl

TILE = 4096
NUM_WARPS = 16
STAGES = 1
STAGGER = 0
MATRIX_READ = "evict_first"


@triton.jit
def add_tiles(
    products, matrix_ptr, vector_ptr, matrix_col, vector_step, n_cols, from_col, to_col,
    TILE: tl.constexpr, STAGES: tl.constexpr, MATRIX_READ: tl.constexpr,
):  # fmt: skip
    for start in tl.range(from_col, to_col, TILE, num_stages=STAGES):
        cols = start + tl.arange(0, TILE)
        mask = cols < n_cols
        a = tl.load(matrix_ptr + cols * matrix_col, mask=mask, other=0.0, eviction_policy=MATRIX_READ)
        b = tl.load(vector_ptr + cols * vector_step, mask=mask, other=0.0, eviction_policy="evict_last")
        products += a.to(tl.float32) * b.to(tl.float32)
    return products


@triton.jit
def row_times_vector(
    matrix_ptr, vector_ptr, out_ptr, matrix_row, matrix_col, vector_step, n_cols, n_tiles,
    TILE: tl.constexpr, STAGES: tl.constexpr, STAGGER: tl.constexpr, MATRIX_READ: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    matrix_ptr += row * matrix_row
    begin = tl.program_id(0) % n_tiles * STAGGER % n_tiles * TILE
    sums = tl.zeros((TILE,), tl.float32)
    sums = add_tiles(
        sums, matrix_ptr, vector_ptr, matrix_col, vector_step, n_cols, begin, n_cols, TILE, STAGES, MATRIX_READ
    )
    if STAGGER:
        sums = add_tiles(
            sums, matrix_ptr, vector_ptr, matrix_col, vector_step, n_cols, 0, begin, TILE, STAGES, MATRIX_READ
        )
    tl.store(out_ptr + row, tl.sum(sums, axis=0))


def kernel_function(matrix, vector):
    n_rows, n_cols = matrix.shape
    out = torch.empty((n_rows, *vector.shape[1:]), dtype=matrix.dtype, device=matrix.device)
    tile = min(TILE, triton.next_power_of_2(n_cols))
    row_times_vector[(n_rows,)](
        matrix, vector, out, matrix.stride(0), matrix.stride(1), vector.stride(0), n_cols, triton.cdiv(n_cols, tile),
        TILE=tile, STAGES=STAGES, STAGGER=STAGGER, MATRIX_READ=MATRIX_READ, num_warps=NUM_WARPS,
    )  # fmt: skip
    return out
