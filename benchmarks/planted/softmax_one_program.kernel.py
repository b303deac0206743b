"""Slow because one program takes every row: one SM works, the others look on."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_all_rows(x_ptr, out_ptr, row_stride, n_rows, n_cols, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * row_stride + columns, mask=columns < n_cols, other=float("-inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * row_stride + columns, e / tl.sum(e, axis=0), mask=columns < n_cols)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(n_cols)
    warps = 16 if block <= 32768 else 32
    softmax_all_rows[(1,)](x, out, x.stride(0), n_rows, n_cols, BLOCK=block, num_warps=warps)
    return out
