"""Matrix-vector product, the long dimension split among programs, partial sums added in a second kernel.

y_i = sum_p sum_{k in part p} A_ik b_k. As many parts as give every SM PROGRAMS_PER_SM programs, whole tiles each; the
rows of a program share each read of the vector. Sums are added in a fixed order, so that every call gives the same
bits; on Hopper the second kernel is launched as a dependent (PTX griddepcontrol), placed while the first still runs.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

ROWS = 2
TILE = 4096
NUM_WARPS = 16
PROGRAMS_PER_SM = 4
STAGES = 1
MATRIX_READ = "evict_first"
N_SMS = 132
ARCH = 90


@triton.jit
def part_of_rows(
    matrix_ptr, vector_ptr, partial_ptr, matrix_row, matrix_col, vector_step, n_rows, n_cols, part_cols, n_parts,
    ROWS: tl.constexpr, TILE: tl.constexpr, STAGES: tl.constexpr, MATRIX_READ: tl.constexpr, OVERLAPPED: tl.constexpr,
):  # fmt: skip
    if OVERLAPPED:
        gdc_launch_dependents()
    part = tl.program_id(0) % n_parts
    rows = (tl.program_id(0) // n_parts).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    row_ptrs = matrix_ptr + rows[:, None] * matrix_row
    stop = tl.minimum((part + 1) * part_cols, n_cols)
    products = tl.zeros((ROWS, TILE), tl.float32)
    for start in tl.range(part * part_cols, stop, TILE, num_stages=STAGES):
        cols = start + tl.arange(0, TILE)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < stop)
        a = tl.load(row_ptrs + cols[None, :] * matrix_col, mask=mask, other=0.0, eviction_policy=MATRIX_READ)
        b = tl.load(vector_ptr + cols * vector_step, mask=cols < stop, other=0.0, eviction_policy="evict_last")
        products += a.to(tl.float32) * b.to(tl.float32)[None, :]
    tl.store(partial_ptr + rows * n_parts + part, tl.sum(products, axis=1), mask=rows < n_rows)


@triton.jit
def add_parts(
    partial_ptr, out_ptr, n_rows, n_parts, ROWS: tl.constexpr, PARTS: tl.constexpr, OVERLAPPED: tl.constexpr
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    parts = tl.arange(0, PARTS)
    mask = (rows[:, None] < n_rows) & (parts[None, :] < n_parts)
    if OVERLAPPED:
        gdc_wait()
    partial = tl.load(partial_ptr + rows[:, None] * n_parts + parts[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + rows, tl.sum(partial, axis=1), mask=rows < n_rows)


def kernel_function(matrix, vector):
    n_rows, n_cols = matrix.shape
    out = torch.empty((n_rows, *vector.shape[1:]), dtype=matrix.dtype, device=matrix.device)
    tile = min(TILE, triton.next_power_of_2(n_cols))
    row_blocks = triton.cdiv(n_rows, ROWS)
    wanted_parts = max(1, N_SMS * PROGRAMS_PER_SM // row_blocks)
    part_cols = triton.cdiv(triton.cdiv(n_cols, wanted_parts), tile) * tile
    n_parts = triton.cdiv(n_cols, part_cols)
    overlapped = ARCH >= 90 and matrix.is_cuda
    partial = torch.empty((n_rows, n_parts), dtype=torch.float32, device=matrix.device)
    part_of_rows[(row_blocks * n_parts,)](
        matrix, vector, partial, matrix.stride(0), matrix.stride(1), vector.stride(0), n_rows, n_cols, part_cols,
        n_parts, ROWS=ROWS, TILE=tile, STAGES=STAGES, MATRIX_READ=MATRIX_READ, OVERLAPPED=overlapped,
        num_warps=NUM_WARPS,
    )  # fmt: skip
    parts = triton.next_power_of_2(n_parts)
    rows = max(1, 1024 // parts)
    early = {"launch_pdl": True} if overlapped else {}
    add_parts[(triton.cdiv(n_rows, rows),)](
        partial, out, n_rows, n_parts, ROWS=rows, PARTS=parts, OVERLAPPED=overlapped, num_warps=2, **early
    )
    return out
