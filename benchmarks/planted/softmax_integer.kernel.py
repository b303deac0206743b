"""Slow because every element finds its row and column by dividing a 64-bit index, and the place to write it again."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_by_index(x_ptr, out_ptr, row_stride, n_rows, n_cols, n_padded, BLOCK: tl.constexpr):
    flat = tl.program_id(0).to(tl.int64) * n_padded + tl.arange(0, BLOCK)
    row = flat // n_padded
    column = flat % n_padded
    x = tl.load(x_ptr + row * row_stride + column, mask=column < n_cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    e = e / tl.sum(e, axis=0)
    back = column * n_rows + row
    tl.store(out_ptr + (back % n_rows) * row_stride + back // n_rows, e, mask=column < n_cols)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    block = max(64, triton.next_power_of_2(n_cols))
    softmax_by_index[(n_rows,)](x, out, x.stride(0), n_rows, n_cols, block, BLOCK=block, num_warps=16)
    return out
