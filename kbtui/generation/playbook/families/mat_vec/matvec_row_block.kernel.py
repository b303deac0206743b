"""Matrix-vector product, several rows a program.

y_i = sum_k A_ik b_k: a program walks a (rows, columns) tile along k and reads each piece of the vector once for all its
rows; positions of the tile keep sums of their own, added up along k at the end. The matrix's sizes are compiled in:
where tiles fill it no mask is left.
"""

import torch
import triton
import triton.language as tl

ROWS = 4
TILE = 1024
NUM_WARPS = 8
STAGES = 1
MATRIX_READ = "evict_first"


@triton.jit
def rows_times_vector(
    matrix_ptr, vector_ptr, out_ptr, matrix_row, matrix_col, vector_step, n_rows: tl.constexpr, n_cols: tl.constexpr,
    ROWS: tl.constexpr, TILE: tl.constexpr, STAGES: tl.constexpr, MATRIX_READ: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    row_ptrs = matrix_ptr + rows[:, None] * matrix_row
    products = tl.zeros((ROWS, TILE), tl.float32)
    for start in tl.range(0, tl.cast(n_cols, tl.int64), TILE, num_stages=STAGES):
        cols = start + tl.arange(0, TILE)
        mask = ((rows[:, None] < n_rows) | (n_rows % ROWS == 0)) & (cols[None, :] < n_cols)
        a = tl.load(row_ptrs + cols[None, :] * matrix_col, mask=mask, other=0.0, eviction_policy=MATRIX_READ)
        b = tl.load(vector_ptr + cols * vector_step, mask=cols < n_cols, other=0.0, eviction_policy="evict_last")
        products += a.to(tl.float32) * b.to(tl.float32)[None, :]
    tl.store(out_ptr + rows, tl.sum(products, axis=1), mask=rows < n_rows)


def kernel_function(matrix, vector):
    n_rows, n_cols = matrix.shape
    out = torch.empty((n_rows, *vector.shape[1:]), dtype=matrix.dtype, device=matrix.device)
    tile = min(TILE, triton.next_power_of_2(n_cols))
    rows_times_vector[(triton.cdiv(n_rows, ROWS),)](
        matrix, vector, out, matrix.stride(0), matrix.stride(1), vector.stride(0), n_rows, n_cols,
        ROWS=ROWS, TILE=tile, STAGES=STAGES, MATRIX_READ=MATRIX_READ, num_warps=NUM_WARPS,
    )  # fmt: skip
    return out
