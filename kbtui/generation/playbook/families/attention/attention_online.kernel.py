"""Attention: a program takes a tile of queries and walks the keys once with a running softmax.

out_i = sum_j exp(s_ij - m_i) v_j / sum_j exp(s_ij - m_i), s = q k^T / sqrt(d): maximum, sum and weighted values are
kept per query and rescaled when the maximum grows (Milakov and Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022,
arXiv:2205.14135), exponents in base 2. Keys that every query of the tile sees come first, without masks; then those cut
by the end or, with CAUSAL, by the diagonal. Heads wider than MAX_HELD go through the scores in pieces, and through the
values in slices of WIDE_VALUES, a program each.
"""

import torch
import triton
import triton.language as tl

CAUSAL = 0
BLOCK_M = 128
KEY_ELEMENTS = 4096
NUM_WARPS = 8
STAGES = 3
MAX_HELD = 128
WIDE_M = 64
WIDE_N = 64
WIDE_PIECE = 64
WIDE_VALUES = 256


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
def walk_keys(
    q_ptr, k_ptr, v_ptr, out_ptr, q_batch, q_head, q_row, q_column, k_batch, k_head, k_row, k_column,
    v_batch, v_head, v_row, v_column, out_batch, out_head, out_row, out_column,
    n_heads, n_queries, n_keys, head_dim, n_tiles, n_slices, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr, HELD: tl.constexpr, CAUSAL: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % n_tiles
    if CAUSAL:  # The longest walks start first.
        tile = n_tiles - 1 - tile
    value_slice = (tl.program_id(0) // n_tiles) % n_slices
    batch = (tl.program_id(0) // (n_tiles * n_slices) // n_heads).to(tl.int64)
    head = (tl.program_id(0) // (n_tiles * n_slices) % n_heads).to(tl.int64)
    queries = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    features = tl.arange(0, BLOCK_D)
    values = value_slice * BLOCK_V + tl.arange(0, BLOCK_V)
    # Starts are scalars and offsets within a tile 32 bits wide, so that addresses take few registers.
    q_start = q_ptr + batch * q_batch + head * q_head + tl.cast(tile * BLOCK_M, tl.int64) * q_row
    k_start = k_ptr + batch * k_batch + head * k_head
    v_start = v_ptr + batch * v_batch + head * v_head
    q_offsets = tl.arange(0, BLOCK_M)[:, None] * q_row + features[None, :] * q_column
    k_offsets = keys[None, :] * k_row + features[:, None] * k_column
    v_offsets = keys[:, None] * v_row + values[None, :] * v_column
    q_mask = queries[:, None] < n_queries
    v_mask = values[None, :] < head_dim
    q = tl.load(q_start + q_offsets, mask=q_mask & (features < head_dim)[None, :], other=0.0) if HELD else 0.0

    highest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    weighted = tl.zeros((BLOCK_M, BLOCK_V), tl.float32)
    stop = tl.minimum((tile + 1) * BLOCK_M, n_keys) if CAUSAL else n_keys
    whole = (tl.minimum(tile * BLOCK_M, n_keys) if CAUSAL else n_keys) // BLOCK_N * BLOCK_N
    for _ in tl.range(0, whole, BLOCK_N, num_stages=STAGES):
        scores = scores_of(
            q, q_start, q_offsets, q_column, q_mask, k_start, k_offsets, k_column, True, head_dim, scale,
            BLOCK_M, BLOCK_N, BLOCK_D, HELD,
        )  # fmt: skip
        v = tl.load(v_start + v_offsets, mask=v_mask, other=0.0)
        highest, total, weighted = attend(scores, v, highest, total, weighted)
        k_start += BLOCK_N * k_row
        v_start += BLOCK_N * v_row
    for start in tl.range(whole, stop, BLOCK_N, num_stages=1):
        at = start + keys
        scores = scores_of(
            q, q_start, q_offsets, q_column, q_mask, k_start, k_offsets, k_column, (at < n_keys)[None, :], head_dim,
            scale, BLOCK_M, BLOCK_N, BLOCK_D, HELD,
        )  # fmt: skip
        seen = (at[None, :] < n_keys) & (at[None, :] <= queries[:, None]) if CAUSAL else at[None, :] < n_keys
        scores = tl.where(seen, scores, float("-inf"))
        v = tl.load(v_start + v_offsets, mask=v_mask & (at < n_keys)[:, None], other=0.0)
        highest, total, weighted = attend(scores, v, highest, total, weighted)
        k_start += BLOCK_N * k_row
        v_start += BLOCK_N * v_row

    out_rows = out_ptr + batch * out_batch + head * out_head + queries.to(tl.int64)[:, None] * out_row
    out = (weighted / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_rows + values[None, :] * out_column, out, mask=q_mask & v_mask)


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
    block_n = max(16, min(128, KEY_ELEMENTS // whole_dim)) if held else WIDE_N
    block_n = min(block_n, widest, max(16, triton.next_power_of_2(n_keys)))
    block_d = whole_dim if held else min(WIDE_PIECE, widest)
    block_v = whole_dim if held else min(whole_dim, WIDE_VALUES, 2 * widest)
    n_tiles, n_slices = triton.cdiv(n_queries, block_m), triton.cdiv(head_dim, block_v)
    walk_keys[(n_batch * n_heads * n_slices * n_tiles,)](
        q, k, v, out, *q.stride(), *k.stride(), *v.stride(), *out.stride(),
        n_heads, n_queries, n_keys, head_dim, n_tiles, n_slices, head_dim**-0.5 * 1.4426950408889634,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=block_d, BLOCK_V=block_v, HELD=held, CAUSAL=CAUSAL == 1,
        STAGES=STAGES, num_warps=NUM_WARPS, num_stages=STAGES,
    )  # fmt: skip
    return out
