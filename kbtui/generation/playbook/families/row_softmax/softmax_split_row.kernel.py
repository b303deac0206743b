"""Softmax over rows, each row split among several programs, combined in a second kernel.

Program (i, p) finds m_p and s_p = sum exp(x - m_p) of its part of row i; the second kernel takes m = max_p m_p and
s = sum_p s_p exp(m_p - m) and writes exp(x - m) / s of one part (the associative combination of online softmax,
Milakov and Gimelshein 2018, arXiv:1805.02867). For few long rows, which one program a row cannot spread over the chip.
"""

import torch
import triton
import triton.language as tl

TILE = 2048
NUM_WARPS = 4
MAX_PARTS = 128


@triton.jit
def part_max_and_sum(x_ptr, max_ptr, sum_ptr, x_row, x_col, n_cols, part_cols, n_parts, TILE: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    part = tl.program_id(0)
    x_ptr += row * x_row
    stop = tl.minimum((part + 1) * part_cols, n_cols)
    part_max = -float("inf")
    part_sum = 0.0
    for start in range(part * part_cols, stop, TILE):
        cols = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + cols * x_col, mask=cols < stop, other=-float("inf"), eviction_policy="evict_last")
        x = x.to(tl.float32)
        new_max = tl.maximum(part_max, tl.max(x, axis=0))
        # A part may hold nothing but -inf: shifting by -inf would make NaN of it.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        part_sum = part_sum * tl.exp(part_max - shift) + tl.sum(tl.exp(x - shift), axis=0)
        part_max = new_max
    tl.store(max_ptr + row * n_parts + part, part_max)
    tl.store(sum_ptr + row * n_parts + part, part_sum)


@triton.jit
def write_part(
    x_ptr,
    out_ptr,
    max_ptr,
    sum_ptr,
    x_row,
    x_col,
    out_row,
    out_col,
    n_cols,
    part_cols,
    n_parts,
    PARTS: tl.constexpr,
    TILE: tl.constexpr,
):
    row = tl.program_id(1).to(tl.int64)
    part = tl.program_id(0)
    x_ptr += row * x_row
    out_ptr += row * out_row
    parts = tl.arange(0, PARTS)
    maxima = tl.load(max_ptr + row * n_parts + parts, mask=parts < n_parts, other=-float("inf"))
    sums = tl.load(sum_ptr + row * n_parts + parts, mask=parts < n_parts, other=0.0)
    row_max = tl.max(maxima, axis=0)
    shift = tl.where(row_max == -float("inf"), 0.0, row_max)
    row_sum = tl.sum(sums * tl.exp(maxima - shift), axis=0)
    stop = tl.minimum((part + 1) * part_cols, n_cols)
    for start in range(part * part_cols, stop, TILE):
        cols = start + tl.arange(0, TILE)
        mask = cols < stop
        x = tl.load(x_ptr + cols * x_col, mask=mask, other=-float("inf"), eviction_policy="evict_first")
        y = tl.exp(x.to(tl.float32) - row_max) / row_sum
        tl.store(out_ptr + cols * out_col, y, mask=mask, eviction_policy="evict_first")


def kernel_function(x):
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    tile = min(TILE, triton.next_power_of_2(n_cols))
    # Whole tiles a part, at most MAX_PARTS parts, none of them empty.
    part_cols = triton.cdiv(triton.cdiv(n_cols, MAX_PARTS), tile) * tile
    n_parts = triton.cdiv(n_cols, part_cols)
    maxima = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    sums = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    # CUDA allows 65535 blocks along y: more rows go in slices.
    for first in range(0, n_rows, 65535):
        x_part, out_part = x[first : first + 65535], out[first : first + 65535]
        max_part, sum_part = maxima[first : first + 65535], sums[first : first + 65535]
        grid = (n_parts, x_part.shape[0])
        part_max_and_sum[grid](
            x_part,
            max_part,
            sum_part,
            x.stride(0),
            x.stride(1),
            n_cols,
            part_cols,
            n_parts,
            TILE=tile,
            num_warps=NUM_WARPS,
        )
        write_part[grid](
            x_part,
            out_part,
            max_part,
            sum_part,
            x.stride(0),
            x.stride(1),
            out.stride(0),
            out.stride(1),
            n_cols,
            part_cols,
            n_parts,
            PARTS=triton.next_power_of_2(n_parts),
            TILE=tile,
            num_warps=NUM_WARPS,
        )
    return out
