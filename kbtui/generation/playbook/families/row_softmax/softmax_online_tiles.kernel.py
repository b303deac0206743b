"""Softmax over rows, one row a program in tiles, with a running maximum and sum.

m' = max(m, max_j x_j), s' = s exp(m - m') + sum_j exp(x_j - m') over the tiles of a row, then a second walk writes
exp(x_j - m) / s (Milakov and Gimelshein 2018, arXiv:1805.02867). The second walk goes backwards, so that it starts
with the tiles that are still in cache.
"""

import torch
import triton
import triton.language as tl

TILE = 16384
NUM_WARPS = 16
STAGES = 1
FIRST_READ = "evict_last"
SECOND_READ = "evict_first"


@triton.jit
def online_softmax(
    x_ptr,
    out_ptr,
    x_row,
    x_col,
    out_row,
    out_col,
    n_cols,
    TILE: tl.constexpr,
    STAGES: tl.constexpr,
    FIRST_READ: tl.constexpr,
    SECOND_READ: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row
    out_ptr += row * out_row
    running_max = -float("inf")
    running_sum = 0.0
    for start in tl.range(0, n_cols, TILE, num_stages=STAGES):
        cols = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=-float("inf"), eviction_policy=FIRST_READ)
        x = x.to(tl.float32)
        new_max = tl.maximum(running_max, tl.max(x, axis=0))
        # A row may begin with tiles of -inf: shifting by -inf would make NaN of them.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        running_sum = running_sum * tl.exp(running_max - shift) + tl.sum(tl.exp(x - shift), axis=0)
        running_max = new_max
    last = (tl.cdiv(n_cols, TILE) - 1) * TILE
    for back in tl.range(0, n_cols, TILE, num_stages=STAGES):
        cols = last - back + tl.arange(0, TILE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols * x_col, mask=mask, other=-float("inf"), eviction_policy=SECOND_READ)
        y = tl.exp(x.to(tl.float32) - running_max) / running_sum
        tl.store(out_ptr + cols * out_col, y, mask=mask, eviction_policy="evict_first")


def kernel_function(x):
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    tile = min(TILE, triton.next_power_of_2(n_cols))
    online_softmax[(n_rows,)](
        x,
        out,
        x.stride(0),
        x.stride(1),
        out.stride(0),
        out.stride(1),
        n_cols,
        TILE=tile,
        STAGES=STAGES,
        FIRST_READ=FIRST_READ,
        SECOND_READ=SECOND_READ,
        num_warps=NUM_WARPS,
    )
    return out
