"""Slow because it reads a row three times, and a row of the rows at work no longer fits in L2."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * row_stride
    columns = tl.arange(0, BLOCK)
    highest = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, n_cols, BLOCK):
        inside = start + columns < n_cols
        highest = tl.maximum(highest, tl.load(x_ptr + row_start + start + columns, mask=inside, other=float("-inf")))
    row_max = tl.max(highest, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        inside = start + columns < n_cols
        x = tl.load(x_ptr + row_start + start + columns, mask=inside, other=float("-inf"))
        total += tl.exp(x - row_max)
    row_sum = tl.sum(total, axis=0)
    for start in range(0, n_cols, BLOCK):
        inside = start + columns < n_cols
        x = tl.load(x_ptr + row_start + start + columns, mask=inside, other=0.0)
        tl.store(out_ptr + row_start + start + columns, tl.exp(x - row_max) / row_sum, mask=inside)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    softmax_rows[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=4096, num_warps=8)
    return out
