"""Softmax in two kernels: statistics of a row in two passes, then a write in tiles."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_statistics(x_ptr, max_ptr, sum_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(0)
    m = float("-inf")
    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row_idx * n_cols + offsets, mask=offsets < n_cols, other=float("-inf"))
        m = tl.maximum(tl.max(x, axis=0), m)
    d = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row_idx * n_cols + offsets, mask=offsets < n_cols, other=float("-inf"))
        d += tl.sum(tl.exp(x - m))
    tl.store(max_ptr + row_idx, m)
    tl.store(sum_ptr + row_idx, d)


@triton.jit
def write_tile(x_ptr, y_ptr, max_ptr, sum_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_cols
    x = tl.load(x_ptr + row_idx * n_cols + offsets, mask=mask, other=float("-inf"))
    y = tl.exp(x - tl.load(max_ptr + row_idx)) / tl.load(sum_ptr + row_idx)
    tl.store(y_ptr + row_idx * n_cols + offsets, y, mask=mask)


def kernel_function(x):
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    highest = torch.empty(n_rows, device=x.device, dtype=torch.float32)
    total = torch.empty(n_rows, device=x.device, dtype=torch.float32)
    row_statistics[(n_rows,)](x, highest, total, n_cols, BLOCK_SIZE=512, num_warps=8)
    write_tile[(n_rows, triton.cdiv(n_cols, 512))](x, y, highest, total, n_cols, BLOCK_SIZE=512)
    return y
