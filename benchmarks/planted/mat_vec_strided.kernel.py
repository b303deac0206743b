"""Slow because neighbouring threads read addresses a row apart: each walks along a row of its own."""

import torch
import triton
import triton.language as tl


@triton.jit
def mat_vec_down_columns(matrix_ptr, vector_ptr, out_ptr, row_stride, n_rows, n_cols, ROWS: tl.constexpr):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    inside = rows < n_rows
    total = tl.zeros((ROWS,), tl.float32)
    lost = tl.zeros((ROWS,), tl.float32)
    for column in range(0, n_cols):
        a = tl.load(matrix_ptr + rows * row_stride + column, mask=inside, other=0.0).to(tl.float32)
        # One lane adds up a whole row: what each addition loses is added to the next.
        term = a * tl.load(vector_ptr + column).to(tl.float32) - lost
        longer = total + term
        lost = (longer - total) - term
        total = longer
    tl.store(out_ptr + rows, total.to(out_ptr.dtype.element_ty), mask=inside)


def kernel_function(matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = matrix.shape
    out = torch.empty((n_rows,), device=matrix.device, dtype=matrix.dtype)
    grid = (triton.cdiv(n_rows, 64),)
    mat_vec_down_columns[grid](matrix, vector, out, matrix.stride(0), n_rows, n_cols, ROWS=64, num_warps=2)
    return out
