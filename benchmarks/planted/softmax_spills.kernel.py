"""Slow because one warp holds a row of 16384: 512 values a thread do not fit into 255 registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_in_one_warp(x_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * row_stride + columns, mask=columns < n_cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * row_stride + columns, e / tl.sum(e, axis=0), mask=columns < n_cols)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(n_cols)
    # Rows too wide for any warp are not what is slow here.
    if block > 16384:
        softmax_in_one_warp[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=block, num_warps=32)
    else:
        softmax_in_one_warp[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=block, num_warps=1)
    return out
