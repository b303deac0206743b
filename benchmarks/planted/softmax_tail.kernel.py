"""Slow because there is one program more than the chip holds: a second wave for one of 133."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_share(x_ptr, out_ptr, row_stride, n_rows, n_cols, rows_each, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    first = tl.program_id(0) * rows_each
    for row in range(first, min(first + rows_each, n_rows)):
        at = row.to(tl.int64) * row_stride
        x = tl.load(x_ptr + at + columns, mask=columns < n_cols, other=float("-inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + at + columns, e / tl.sum(e, axis=0), mask=columns < n_cols)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(n_cols)
    rows_each = triton.cdiv(n_rows, 133)
    grid = (triton.cdiv(n_rows, rows_each),)
    softmax_share[grid](x, out, x.stride(0), n_rows, n_cols, rows_each, BLOCK=block, num_warps=32)
    return out
