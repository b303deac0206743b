"""Softmax over rows, one row a program in tiles, each lane with a maximum and a sum of its own.

As the online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867), but position j of the tile keeps m_j and s_j,
and they are combined once after the walk: m = max_j m_j, s = sum_j s_j exp(m_j - m). Two exponentials an element,
no cross-thread reduction inside the loop. The second walk goes backwards, towards what is still in cache.
"""

import torch
import triton
import triton.language as tl

TILE = 8192
NUM_WARPS = 8
STAGES = 1
SECOND_READ = "evict_first"


@triton.jit
def lane_softmax(
    x_ptr,
    out_ptr,
    x_row,
    x_col,
    out_row,
    out_col,
    n_cols,
    TILE: tl.constexpr,
    STAGES: tl.constexpr,
    SECOND_READ: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row
    out_ptr += row * out_row
    lane_max = tl.full((TILE,), -float("inf"), tl.float32)
    lane_sum = tl.zeros((TILE,), tl.float32)
    for start in tl.range(0, n_cols, TILE, num_stages=STAGES):
        cols = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=-float("inf"), eviction_policy="evict_last")
        x = x.to(tl.float32)
        new_max = tl.maximum(lane_max, x)
        # A lane may have met nothing but -inf so far: shifting by -inf would make NaN of it.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.exp(x - shift)
        lane_max = new_max
    row_max = tl.max(lane_max, axis=0)
    shift = tl.where(row_max == -float("inf"), 0.0, row_max)
    row_sum = tl.sum(lane_sum * tl.exp(lane_max - shift), axis=0)
    last = (tl.cdiv(n_cols, TILE) - 1) * TILE
    for back in tl.range(0, n_cols, TILE, num_stages=STAGES):
        cols = last - back + tl.arange(0, TILE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols * x_col, mask=mask, other=-float("inf"), eviction_policy=SECOND_READ)
        y = tl.exp(x.to(tl.float32) - row_max) / row_sum
        tl.store(out_ptr + cols * out_col, y, mask=mask, eviction_policy="evict_first")


def kernel_function(x):
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    tile = min(TILE, triton.next_power_of_2(n_cols))
    lane_softmax[(n_rows,)](
        x,
        out,
        x.stride(0),
        x.stride(1),
        out.stride(0),
        out.stride(1),
        n_cols,
        TILE=tile,
        STAGES=STAGES,
        SECOND_READ=SECOND_READ,
        num_warps=NUM_WARPS,
    )
    return out
