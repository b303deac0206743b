"""Matrix-vector product, several rows a program in a loop around the loop over columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(a_ptr, x_ptr, y_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    for r in range(0, ROWS):
        row = first + r
        acc = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            mask = (cols < n_cols) & (row < n_rows)
            acc += tl.load(a_ptr + row * n_cols + cols, mask=mask, other=0.0) * tl.load(
                x_ptr + cols, mask=mask, other=0.0
            )
        tl.store(y_ptr + row, tl.sum(acc, axis=0), mask=row < n_rows)


def kernel_function(matrix, vector):
    n_rows, n_cols = matrix.shape
    y = torch.empty((n_rows,), device=matrix.device, dtype=matrix.dtype)
    rows_kernel[(triton.cdiv(n_rows, 4),)](matrix, vector, y, n_rows, n_cols, ROWS=4, BLOCK=256)
    return y
