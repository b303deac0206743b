"""Attention with the keys split among programs, partial answers combined in a second kernel.

Program (head, tile of queries, part of the keys) leaves m_p, s_p = sum_j exp(s_ij - m_p) and w_p = sum_j exp(s_ij -
m_p) v_j; the second kernel takes m = max_p m_p and out = sum_p w_p exp(m_p - m) / sum_p s_p exp(m_p - m) (Dao et al.
2023, "Flash-Decoding"). For few heads and few queries, which one program a tile of queries cannot spread over the chip:
as many parts as give every SM PROGRAMS_PER_SM programs. Heads wider than MAX_HELD go through the scores in pieces, and
through the values in slices of WIDE_VALUES, a program each.
"""

import torch
import triton
import triton.language as tl

CAUSAL = 0
BLOCK_M = 64
BLOCK_N = 64
NUM_WARPS = 4
STAGES = 3
PROGRAMS_PER_SM = 2
COMBINED_QUERIES = 8
MAX_HELD = 128
WIDE_M = 32
WIDE_PIECE = 64
WIDE_VALUES = 256
N_SMS = 132


@triton.jit
def attend(scores, v, highest, total, weighted):
    """One tile of keys: the running maximum (of base-2 exponents), sum and weighted values after it."""
    new_highest = tl.maximum(highest, tl.max(scores, axis=1))
    weights = tl.exp2(scores - new_highest[:, None])
    shrink = tl.exp2(highest - new_highest)
    total = total * shrink + tl.sum(weights, axis=1)
    weighted = tl.dot(weights.to(v.dtype), v, weighted * shrink[:, None], input_precision="tf32x3")
    return new_highest, total, weighted


@triton.jit
def scores_of(
    q, q_start, q_offsets, q_column, q_mask, k_start, k_offsets, k_column, k_mask, head_dim, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """Queries times keys, times scale: q as it is held, or piece by piece along the head dimension."""
    features = tl.arange(0, BLOCK_D)
    if HELD:
        k = tl.load(k_start + k_offsets, mask=k_mask & (features < head_dim)[:, None], other=0.0)
        scores = tl.dot(q, k, input_precision="tf32x3")
    else:
        scores = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for first in range(0, head_dim, BLOCK_D):
            inside = features < head_dim - first
            q_piece = tl.load(q_start + first * q_column + q_offsets, mask=q_mask & inside[None, :], other=0.0)
            k_piece = tl.load(k_start + first * k_column + k_offsets, mask=k_mask & inside[:, None], other=0.0)
            scores = tl.dot(q_piece, k_piece, scores, input_precision="tf32x3")
    return scores * scale


@triton.jit
def walk_part(
    q_ptr, k_ptr, v_ptr, highest_ptr, total_ptr, weighted_ptr, q_batch, q_head, q_row, q_column,
    k_batch, k_head, k_row, k_column, v_batch, v_head, v_row, v_column,
    n_heads, n_queries, n_keys, head_dim, n_tiles, n_slices, part_keys, n_parts, scale, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr, HELD: tl.constexpr, CAUSAL: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0) % n_parts
    tile = (tl.program_id(0) // n_parts) % n_tiles
    value_slice = (tl.program_id(0) // (n_parts * n_tiles)) % n_slices
    of_all = (tl.program_id(0) // (n_parts * n_tiles * n_slices)).to(tl.int64)
    batch, head = of_all // n_heads, of_all % n_heads
    queries = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    features = tl.arange(0, BLOCK_D)
    values = value_slice * BLOCK_V + tl.arange(0, BLOCK_V)
    first_key = part * part_keys
    # Starts are scalars and offsets within a tile 32 bits wide, so that addresses take few registers.
    q_start = q_ptr + batch * q_batch + head * q_head + tl.cast(tile * BLOCK_M, tl.int64) * q_row
    k_start = k_ptr + batch * k_batch + head * k_head + first_key.to(tl.int64) * k_row
    v_start = v_ptr + batch * v_batch + head * v_head + first_key.to(tl.int64) * v_row
    q_offsets = tl.arange(0, BLOCK_M)[:, None] * q_row + features[None, :] * q_column
    k_offsets = keys[None, :] * k_row + features[:, None] * k_column
    v_offsets = keys[:, None] * v_row + values[None, :] * v_column
    q_mask = queries[:, None] < n_queries
    v_mask = values[None, :] < head_dim
    q = tl.load(q_start + q_offsets, mask=q_mask & (features < head_dim)[None, :], other=0.0) if HELD else 0.0

    # A part may lie wholly beyond the diagonal: a maximum of -inf would make NaN of it, so it starts very low instead.
    highest = tl.full((BLOCK_M,), -1.0e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    weighted = tl.zeros((BLOCK_M, BLOCK_V), tl.float32)
    stop = tl.minimum(first_key + part_keys, n_keys)
    if CAUSAL:
        stop = tl.minimum(stop, (tile + 1) * BLOCK_M)
    for start in tl.range(first_key, stop, BLOCK_N, num_stages=STAGES):
        at = start + keys
        inside = at < stop
        scores = scores_of(
            q, q_start, q_offsets, q_column, q_mask, k_start, k_offsets, k_column, inside[None, :], head_dim, scale,
            BLOCK_M, BLOCK_N, BLOCK_D, HELD,
        )  # fmt: skip
        seen = inside[None, :] & (at[None, :] <= queries[:, None]) if CAUSAL else inside[None, :]
        scores = tl.where(seen, scores, float("-inf"))
        v = tl.load(v_start + v_offsets, mask=v_mask & inside[:, None], other=0.0)
        highest, total, weighted = attend(scores, v, highest, total, weighted)
        k_start += BLOCK_N * k_row
        v_start += BLOCK_N * v_row

    rows = (of_all * n_queries + queries) * n_parts + part
    # Every slice of the values has the same maxima and sums.
    tl.store(highest_ptr + rows, highest, mask=queries < n_queries)
    tl.store(total_ptr + rows, total, mask=queries < n_queries)
    tl.store(weighted_ptr + rows[:, None] * head_dim + values[None, :], weighted, mask=q_mask & v_mask)


@triton.jit
def combine_parts(
    highest_ptr, total_ptr, weighted_ptr, out_ptr, out_batch, out_head, out_row, out_column, n_heads, n_queries,
    head_dim, n_all, n_parts, QUERIES: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    flat = tl.program_id(0).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    values = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    in_all = flat < n_all
    mask = in_all[:, None] & (values < head_dim)[None, :]
    highest = tl.full((QUERIES,), -1.0e30, tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    weighted = tl.zeros((QUERIES, BLOCK_V), tl.float32)
    for part in range(n_parts):
        rows = flat * n_parts + part
        part_highest = tl.load(highest_ptr + rows, mask=in_all, other=-1.0e30)
        part_total = tl.load(total_ptr + rows, mask=in_all, other=0.0)
        part_weighted = tl.load(weighted_ptr + rows[:, None] * head_dim + values[None, :], mask=mask, other=0.0)
        new_highest = tl.maximum(highest, part_highest)
        shrink, grow = tl.exp2(highest - new_highest), tl.exp2(part_highest - new_highest)
        total = total * shrink + part_total * grow
        weighted = weighted * shrink[:, None] + part_weighted * grow[:, None]
        highest = new_highest
    batch, head, query = flat // (n_heads * n_queries), (flat // n_queries) % n_heads, flat % n_queries
    out_ptrs = out_ptr + (batch * out_batch + head * out_head + query * out_row)[:, None] + values[None, :] * out_column
    tl.store(out_ptrs, (weighted / total[:, None]).to(out_ptr.dtype.element_ty), mask=mask)


def loads_whole_words(*tensors):
    """Whether rows begin at multiples of 16 bytes: others are loaded element by element, an address a register pair."""
    return all(x.stride(-1) == 1 and x.stride(-2) * x.element_size() % 16 == 0 for x in tensors)


def kernel_function(q, k, v):
    n_batch, n_heads, n_queries, head_dim = q.shape
    n_keys = k.shape[2]
    out = torch.empty_like(q)
    held = head_dim <= MAX_HELD
    whole_dim = max(16, triton.next_power_of_2(head_dim))
    widest = 256 if loads_whole_words(q, k, v) else 32
    block_m = min(BLOCK_M if held else WIDE_M, widest, max(16, triton.next_power_of_2(n_queries)))
    block_n = min(BLOCK_N, widest, max(16, triton.next_power_of_2(n_keys)))
    block_d = whole_dim if held else min(WIDE_PIECE, widest)
    block_v = whole_dim if held else min(whole_dim, WIDE_VALUES, 2 * widest)
    n_tiles, n_slices = triton.cdiv(n_queries, block_m), triton.cdiv(head_dim, block_v)
    n_programs = n_batch * n_heads * n_slices * n_tiles
    wanted_parts = max(1, N_SMS * PROGRAMS_PER_SM // n_programs)
    part_keys = triton.cdiv(triton.cdiv(n_keys, wanted_parts), block_n) * block_n
    n_parts = triton.cdiv(n_keys, part_keys)
    n_all = n_batch * n_heads * n_queries
    highest = torch.empty((n_all, n_parts), dtype=torch.float32, device=q.device)
    total = torch.empty((n_all, n_parts), dtype=torch.float32, device=q.device)
    weighted = torch.empty((n_all, n_parts, head_dim), dtype=torch.float32, device=q.device)
    walk_part[(n_programs * n_parts,)](
        q, k, v, highest, total, weighted, *q.stride(), *k.stride(), *v.stride(), n_heads, n_queries, n_keys,
        head_dim, n_tiles, n_slices, part_keys, n_parts, head_dim**-0.5 * 1.4426950408889634,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=block_d, BLOCK_V=block_v, HELD=held, CAUSAL=CAUSAL == 1,
        STAGES=STAGES, num_warps=NUM_WARPS, num_stages=STAGES,
    )  # fmt: skip
    combined_values = min(whole_dim, 128)
    combine_parts[(triton.cdiv(n_all, COMBINED_QUERIES), triton.cdiv(head_dim, combined_values))](
        highest, total, weighted, out, *out.stride(), n_heads, n_queries, head_dim, n_all, n_parts,
        QUERIES=COMBINED_QUERIES, BLOCK_V=combined_values, num_warps=4,
    )  # fmt: skip
    return out
