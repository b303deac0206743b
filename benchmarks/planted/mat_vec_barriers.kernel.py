"""Slow because all 32 warps add up even and odd columns of every tile, and wait for each other each time."""

import torch
import triton
import triton.language as tl


@triton.jit
def mat_vec_sum_each_tile(matrix_ptr, vector_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    evens = 0.0
    odds = 0.0
    for start in range(0, n_cols, BLOCK):
        inside = start + columns < n_cols
        a = tl.load(matrix_ptr + row * row_stride + start + columns, mask=inside, other=0.0)
        v = tl.load(vector_ptr + start + columns, mask=inside, other=0.0)
        tl.debug_barrier()
        evens += tl.sum(tl.where(columns % 2 == 0, a * v, 0.0), axis=0)
        tl.debug_barrier()
        odds += tl.sum(tl.where(columns % 2 == 1, a * v, 0.0), axis=0)
        tl.debug_barrier()
    tl.store(out_ptr + row, evens + odds)


def kernel_function(matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = matrix.shape
    out = torch.empty((n_rows,), device=matrix.device, dtype=matrix.dtype)
    mat_vec_sum_each_tile[(n_rows,)](matrix, vector, out, matrix.stride(0), n_cols, BLOCK=4096, num_warps=32)
    return out
