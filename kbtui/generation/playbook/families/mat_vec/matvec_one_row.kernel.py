"""Matrix-vector product, one row a program.

y_i = sum_k A_ik b_k: a program walks one row in wide tiles, every position of the tile with a sum of its own, and adds
them up once at the end. Many 16-byte loads in flight, no second kernel. The row's length is compiled in: where
tiles fill it no mask is left.
"""

import torch
import triton
import triton.language as tl

TILE = 8192
NUM_WARPS = 32
STAGES = 1
MATRIX_READ = "evict_first"


@triton.jit
def row_times_vector(
    matrix_ptr, vector_ptr, out_ptr, matrix_row, matrix_col, vector_step, n_cols: tl.constexpr,
    TILE: tl.constexpr, STAGES: tl.constexpr, MATRIX_READ: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    matrix_ptr += row * matrix_row
    products = tl.zeros((TILE,), tl.float32)
    for start in tl.range(0, tl.cast(n_cols, tl.int64), TILE, num_stages=STAGES):
        cols = start + tl.arange(0, TILE)
        mask = cols < n_cols
        a = tl.load(matrix_ptr + cols * matrix_col, mask=mask, other=0.0, eviction_policy=MATRIX_READ)
        b = tl.load(vector_ptr + cols * vector_step, mask=mask, other=0.0, eviction_policy="evict_last")
        products += a.to(tl.float32) * b.to(tl.float32)
    tl.store(out_ptr + row, tl.sum(products, axis=0))


def kernel_function(matrix, vector):
    n_rows, n_cols = matrix.shape
    out = torch.empty((n_rows, *vector.shape[1:]), dtype=matrix.dtype, device=matrix.device)
    tile = min(TILE, triton.next_power_of_2(n_cols))
    row_times_vector[(n_rows,)](
        matrix, vector, out, matrix.stride(0), matrix.stride(1), vector.stride(0), n_cols,
        TILE=tile, STAGES=STAGES, MATRIX_READ=MATRIX_READ, num_warps=NUM_WARPS,
    )  # fmt: skip
    return out
