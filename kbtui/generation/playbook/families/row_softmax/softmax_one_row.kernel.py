"""Softmax over rows, one row a program, the row in registers.

y_j = exp(x_j - m) / s with m = max_k x_k and s = sum_k exp(x_k - m): one read and one write of each row.
Rows wider than MAX_TILE go through a running maximum and sum (Milakov and Gimelshein 2018, arXiv:1805.02867); their
second walk goes backwards, towards what is still in cache.
"""

import torch
import triton
import triton.language as tl

MAX_TILE = 32768
ELEMENTS_PER_THREAD = 16
MAX_WARPS = 32
WIDE_TILE = 16384


@triton.jit
def row_in_registers(x_ptr, out_ptr, x_row, x_col, out_row, out_col, n_cols, TILE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, TILE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row + cols * x_col, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_row + cols * out_col, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def row_in_tiles(x_ptr, out_ptr, x_row, x_col, out_row, out_col, n_cols, TILE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row
    out_ptr += row * out_row
    running_max = -float("inf")
    running_sum = 0.0
    for start in range(0, n_cols, TILE):
        cols = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=-float("inf"), eviction_policy="evict_last")
        x = x.to(tl.float32)
        new_max = tl.maximum(running_max, tl.max(x, axis=0))
        # A row may begin with tiles of -inf: shifting by -inf would make NaN of them.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        running_sum = running_sum * tl.exp(running_max - shift) + tl.sum(tl.exp(x - shift), axis=0)
        running_max = new_max
    last = (tl.cdiv(n_cols, TILE) - 1) * TILE
    for back in range(0, n_cols, TILE):
        cols = last - back + tl.arange(0, TILE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols * x_col, mask=mask, other=-float("inf"), eviction_policy="evict_first")
        y = tl.exp(x.to(tl.float32) - running_max) / running_sum
        tl.store(out_ptr + cols * out_col, y, mask=mask, eviction_policy="evict_first")


def kernel_function(x):
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    strides = (x.stride(0), x.stride(1), out.stride(0), out.stride(1))
    tile = triton.next_power_of_2(n_cols)
    if tile <= MAX_TILE:
        num_warps = min(MAX_WARPS, max(1, tile // (32 * ELEMENTS_PER_THREAD)))
        row_in_registers[(n_rows,)](x, out, *strides, n_cols, TILE=tile, num_warps=num_warps)
    else:
        row_in_tiles[(n_rows,)](x, out, *strides, n_cols, TILE=WIDE_TILE, num_warps=16)
    return out
