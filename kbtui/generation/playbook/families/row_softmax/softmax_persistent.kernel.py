"""Softmax over rows by as many programs as the chip holds, each looping over rows.

y_j = exp(x_j - m) / s, the row in registers, one read and one write. The loop loads the next rows while this one is
reduced (software pipelining through shared memory, as many stages as SHARED_BYTES holds). Rows wider than MAX_TILE go
through a running maximum and sum (Milakov and Gimelshein 2018, arXiv:1805.02867), and then backwards.
"""

import torch
import triton
import triton.language as tl

MAX_TILE = 16384
ELEMENTS_PER_THREAD = 32
PROGRAMS_PER_SM = 2
STAGES = 2
WIDE_TILE = 16384
N_SMS = 132
SHARED_BYTES = 166912


@triton.jit
def rows_in_registers(
    x_ptr, out_ptr, x_row, x_col, out_row, out_col, n_rows, n_cols, TILE: tl.constexpr, STAGES: tl.constexpr
):
    cols = tl.arange(0, TILE)
    mask = cols < n_cols
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=STAGES):
        offset = tl.cast(row, tl.int64)
        x = tl.load(x_ptr + offset * x_row + cols * x_col, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + offset * out_row + cols * out_col, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def rows_in_tiles(x_ptr, out_ptr, x_row, x_col, out_row, out_col, n_rows, n_cols, TILE: tl.constexpr):
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x_start = x_ptr + tl.cast(row, tl.int64) * x_row
        out_start = out_ptr + tl.cast(row, tl.int64) * out_row
        running_max = -float("inf")
        running_sum = 0.0
        for start in range(0, n_cols, TILE):
            cols = start + tl.arange(0, TILE)
            x = tl.load(x_start + cols * x_col, mask=cols < n_cols, other=-float("inf"), eviction_policy="evict_last")
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
            x = tl.load(x_start + cols * x_col, mask=mask, other=-float("inf"), eviction_policy="evict_first")
            y = tl.exp(x.to(tl.float32) - running_max) / running_sum
            tl.store(out_start + cols * out_col, y, mask=mask, eviction_policy="evict_first")


def kernel_function(x):
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    strides = (x.stride(0), x.stride(1), out.stride(0), out.stride(1))
    grid = (min(n_rows, N_SMS * PROGRAMS_PER_SM),)
    tile = triton.next_power_of_2(n_cols)
    if tile > MAX_TILE:
        rows_in_tiles[grid](x, out, *strides, n_rows, n_cols, TILE=WIDE_TILE, num_warps=16)
        return out
    num_warps = min(32, max(1, tile // (32 * ELEMENTS_PER_THREAD)))
    # Every stage but one holds a tile in shared memory, beside a little for the reductions.
    stages = min(STAGES, 1 + (SHARED_BYTES - 8192) // (tile * x.element_size()))
    rows_in_registers[grid](x, out, *strides, n_rows, n_cols, TILE=tile, STAGES=stages, num_warps=num_warps)
    return out
