"""Slow because the matrix is read twice: once for the largest value of a row, once to add up products scaled by it."""

import torch
import triton
import triton.language as tl


@triton.jit
def mat_vec_scaled(matrix_ptr, vector_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), 1e-30, tl.float32)
    for start in range(0, n_cols, BLOCK):
        inside = start + columns < n_cols
        a = tl.load(matrix_ptr + row * row_stride + start + columns, mask=inside, other=0.0)
        largest = tl.maximum(largest, tl.abs(a))
    # A power of two, so that scaling rounds nothing.
    scale = tl.exp2(tl.floor(tl.log2(tl.max(largest, axis=0))))
    products = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        inside = start + columns < n_cols
        a = tl.load(matrix_ptr + row * row_stride + start + columns, mask=inside, other=0.0)
        v = tl.load(vector_ptr + start + columns, mask=inside, other=0.0)
        products += (a / scale) * v
    tl.store(out_ptr + row, tl.sum(products, axis=0) * scale)


def kernel_function(matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = matrix.shape
    out = torch.empty((n_rows,), device=matrix.device, dtype=matrix.dtype)
    mat_vec_scaled[(n_rows,)](matrix, vector, out, matrix.stride(0), n_cols, BLOCK=4096, num_warps=8)
    return out
