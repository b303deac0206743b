"""Slow because a thread loads 2 bytes at a time: 8 warps share a tile of 256 halves."""

import torch
import triton
import triton.language as tl


@triton.jit
def mat_vec_narrow_loads(matrix_ptr, vector_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    products = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        inside = start + columns < n_cols
        a = tl.load(matrix_ptr + row * row_stride + start + columns, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(vector_ptr + start + columns, mask=inside, other=0.0).to(tl.float32)
        products += a * v
    tl.store(out_ptr + row, tl.sum(products, axis=0))


def kernel_function(matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = matrix.shape
    out = torch.empty((n_rows,), device=matrix.device, dtype=matrix.dtype)
    mat_vec_narrow_loads[(n_rows,)](matrix, vector, out, matrix.stride(0), n_cols, BLOCK=256, num_warps=8)
    return out
