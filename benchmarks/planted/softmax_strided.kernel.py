"""Slow because neighbouring threads read addresses a row apart: they walk down the columns of 32 rows."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_down_columns(x_ptr, out_ptr, row_stride, n_rows, n_cols, ROWS: tl.constexpr):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    inside = rows < n_rows
    highest = tl.full((ROWS,), float("-inf"), tl.float32)
    for column in range(0, n_cols):
        highest = tl.maximum(highest, tl.load(x_ptr + rows * row_stride + column, mask=inside, other=0.0))
    total = tl.zeros((ROWS,), tl.float32)
    lost = tl.zeros((ROWS,), tl.float32)
    for column in range(0, n_cols):
        # One lane adds up a whole row: what each addition loses is added to the next.
        term = tl.exp(tl.load(x_ptr + rows * row_stride + column, mask=inside, other=0.0) - highest) - lost
        longer = total + term
        lost = (longer - total) - term
        total = longer
    for column in range(0, n_cols):
        x = tl.load(x_ptr + rows * row_stride + column, mask=inside, other=0.0)
        tl.store(out_ptr + rows * row_stride + column, tl.exp(x - highest) / total, mask=inside)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    softmax_down_columns[(triton.cdiv(n_rows, 32),)](x, out, x.stride(0), n_rows, n_cols, ROWS=32, num_warps=1)
    return out
