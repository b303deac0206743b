"""Slow because the row goes through shared memory transposed: all lanes of a warp read the same bank."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_transposed(x_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * row_stride + columns, mask=columns < n_cols, other=float("-inf"))
    there = (columns % PARTS) * (BLOCK // PARTS) + columns // PARTS
    back = (columns % (BLOCK // PARTS)) * PARTS + columns // (BLOCK // PARTS)
    x = tl.gather(x, back, 0)
    e = tl.exp(x - tl.max(x, axis=0))
    e = tl.gather(e / tl.sum(e, axis=0), there, 0)
    tl.store(out_ptr + row * row_stride + columns, e, mask=columns < n_cols)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    block = max(64, triton.next_power_of_2(n_cols))
    warps = 16 if block <= 32768 else 32
    softmax_transposed[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=block, PARTS=32, num_warps=warps)
    return out
