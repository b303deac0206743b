"""Softmax over rows, each row split among several programs that join their maxima and sums with atomics.

Program (i, p) finds m_p and s_p = sum exp(x - m_p) of its part of row i, and joins them into the row's pair (m, s): the
larger maximum, and s exp(m - m') + s_p exp(m_p - m') (Milakov and Gimelshein 2018, arXiv:1805.02867). The pair is one
word of 64 bits, the maximum above and the sum below, exchanged with compare-and-swap: a program that finds another's
pair there joins with that and tries again. The second kernel reads one word a program and writes exp(x - m) / s of one
part. Nothing is stored a part, but the order of additions, and with it the last bit, may differ from call to call.
"""

import torch
import triton
import triton.language as tl

TILE = 2048
NUM_WARPS = 4
MAX_PARTS = 64
#: The pair of a row of which nothing was seen yet: the bits of -inf (an int32) above those of 0.
NOTHING_SEEN = -36028797018963968


@triton.jit
def packed(maximum, total):
    """Two floats of 32 bits as one integer of 64, the first above."""
    above = maximum.to(tl.int32, bitcast=True).to(tl.int64) << 32
    return above | total.to(tl.uint32, bitcast=True).to(tl.int64)


@triton.jit
def unpacked(pair):
    maximum = (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    return maximum, pair.to(tl.uint32).to(tl.float32, bitcast=True)


@triton.jit
def join_part(x_ptr, pair_ptr, x_row, x_col, n_cols, part_cols, n_parts, nothing_seen, TILE: tl.constexpr):
    part = tl.program_id(0) % n_parts
    row = (tl.program_id(0) // n_parts).to(tl.int64)
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
    expected = nothing_seen
    found = tl.atomic_cas(pair_ptr + row, expected, packed(part_max, part_sum))
    while found != expected:
        expected = found
        other_max, other_sum = unpacked(expected)
        both_max = tl.maximum(part_max, other_max)
        shift = tl.where(both_max == -float("inf"), 0.0, both_max)
        both_sum = part_sum * tl.exp(part_max - shift) + other_sum * tl.exp(other_max - shift)
        found = tl.atomic_cas(pair_ptr + row, expected, packed(both_max, both_sum))


@triton.jit
def write_part(
    x_ptr, out_ptr, pair_ptr, x_row, x_col, out_row, out_col, n_cols, part_cols, n_parts, TILE: tl.constexpr
):  # fmt: skip
    part = tl.program_id(0) % n_parts
    row = (tl.program_id(0) // n_parts).to(tl.int64)
    row_max, row_sum = unpacked(tl.load(pair_ptr + row))
    x_ptr += row * x_row
    out_ptr += row * out_row
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
    pairs = torch.full((n_rows,), NOTHING_SEEN, dtype=torch.int64, device=x.device)
    grid = (n_rows * n_parts,)
    join_part[grid](
        x, pairs, x.stride(0), x.stride(1), n_cols, part_cols, n_parts, NOTHING_SEEN, TILE=tile, num_warps=NUM_WARPS
    )
    write_part[grid](
        x, out, pairs, x.stride(0), x.stride(1), out.stride(0), out.stride(1), n_cols, part_cols, n_parts,
        TILE=tile, num_warps=NUM_WARPS,
    )  # fmt: skip
    return out
