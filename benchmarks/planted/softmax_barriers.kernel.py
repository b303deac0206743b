"""Slow because all 32 warps agree on a maximum and a sum after every 4096 columns, and wait for each other twice."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_agreed_each_tile(x_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    highest = float("-inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        inside = start + columns < n_cols
        x = tl.load(x_ptr + row * row_stride + start + columns, mask=inside, other=float("-inf"))
        new_highest = tl.maximum(highest, tl.max(x, axis=0))
        tl.debug_barrier()
        total = total * tl.exp(highest - new_highest) + tl.sum(tl.exp(x - new_highest), axis=0)
        tl.debug_barrier()
        highest = new_highest
    for start in range(0, n_cols, BLOCK):
        inside = start + columns < n_cols
        x = tl.load(x_ptr + row * row_stride + start + columns, mask=inside, other=float("-inf"))
        tl.store(out_ptr + row * row_stride + start + columns, tl.exp(x - highest) / total, mask=inside)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    softmax_agreed_each_tile[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=4096, num_warps=32)
    return out
