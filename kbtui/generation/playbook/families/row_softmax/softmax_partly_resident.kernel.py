"""Softmax over rows, one row a program, the first part of the row kept in registers.

y_j = exp(x_j - m) / s. The first RESIDENT elements are read once and kept; the rest of the row goes through a running
maximum and sum in tiles (Milakov and Gimelshein 2018, arXiv:1805.02867) and is read again for the write. A row that
fits is read once.
"""

import torch
import triton
import triton.language as tl

RESIDENT = 32768
TILE = 8192
NUM_WARPS = 32
STAGES = 1


@triton.jit
def resident_softmax(
    x_ptr,
    out_ptr,
    x_row,
    x_col,
    out_row,
    out_col,
    n_cols,
    RESIDENT: tl.constexpr,
    TILE: tl.constexpr,
    STAGES: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row
    out_ptr += row * out_row
    kept_cols = tl.arange(0, RESIDENT)
    kept_mask = kept_cols < n_cols
    kept = tl.load(x_ptr + kept_cols * x_col, mask=kept_mask, other=-float("inf"), eviction_policy="evict_first").to(
        tl.float32
    )
    running_max = tl.max(kept, axis=0)
    # The part that is kept may hold nothing but -inf: shifting by -inf would make NaN of it.
    shift = tl.where(running_max == -float("inf"), 0.0, running_max)
    running_sum = tl.sum(tl.exp(kept - shift), axis=0)
    for start in tl.range(RESIDENT, n_cols, TILE, num_stages=STAGES):
        cols = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=-float("inf"), eviction_policy="evict_last")
        x = x.to(tl.float32)
        new_max = tl.maximum(running_max, tl.max(x, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        running_sum = running_sum * tl.exp(running_max - shift) + tl.sum(tl.exp(x - shift), axis=0)
        running_max = new_max
    kept_y = tl.exp(kept - running_max) / running_sum
    tl.store(out_ptr + kept_cols * out_col, kept_y, mask=kept_mask, eviction_policy="evict_first")
    for start in tl.range(RESIDENT, n_cols, TILE, num_stages=STAGES):
        cols = start + tl.arange(0, TILE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols * x_col, mask=mask, other=-float("inf"), eviction_policy="evict_first")
        y = tl.exp(x.to(tl.float32) - running_max) / running_sum
        tl.store(out_ptr + cols * out_col, y, mask=mask, eviction_policy="evict_first")


def kernel_function(x):
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    resident = min(RESIDENT, triton.next_power_of_2(n_cols))
    resident_softmax[(n_rows,)](
        x,
        out,
        x.stride(0),
        x.stride(1),
        out.stride(0),
        out.stride(1),
        n_cols,
        RESIDENT=resident,
        TILE=TILE,
        STAGES=STAGES,
        num_warps=NUM_WARPS,
    )
    return out
