"""Attention: a program takes two tiles of queries and walks the keys once for both.

out_i = sum_j exp(s_ij - m_i) v_j / sum_j exp(s_ij - m_i), s = q k^T / sqrt(d), with a running maximum and sum (Dao et
al. 2022, arXiv:2205.14135), exponents in base 2. Keys and values are loaded once for both tiles, and while one tile's
exponentials are computed the other's products can run (Shah et al. 2024, arXiv:2407.08608, overlap softmax and products
so). With CAUSAL the tiles lie side by side, and the walk ends at the later one's diagonal. Heads wider than MAX_HELD go
through the scores in pieces, and through the values in slices of WIDE_VALUES, a program each.
"""

import torch
import triton
import triton.language as tl

CAUSAL = 0
BLOCK_M = 64
KEY_ELEMENTS = 4096
NUM_WARPS = 4
STAGES = 3
MAX_HELD = 128
WIDE_M = 16
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
def walk_keys_twice(
    q_ptr, k_ptr, v_ptr, out_ptr, q_batch, q_head, q_row, q_column, k_batch, k_head, k_row, k_column,
    v_batch, v_head, v_row, v_column, out_batch, out_head, out_row, out_column,
    n_heads, n_queries, n_keys, head_dim, n_tiles, n_slices, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr, HELD: tl.constexpr, CAUSAL: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0) % n_tiles
    if CAUSAL:  # The longest walks start first.
        pair = n_tiles - 1 - pair
    value_slice = (tl.program_id(0) // n_tiles) % n_slices
    batch = (tl.program_id(0) // (n_tiles * n_slices) // n_heads).to(tl.int64)
    head = (tl.program_id(0) // (n_tiles * n_slices) % n_heads).to(tl.int64)
    queries_a = pair * 2 * BLOCK_M + tl.arange(0, BLOCK_M)
    queries_b = queries_a + BLOCK_M
    keys = tl.arange(0, BLOCK_N)
    features = tl.arange(0, BLOCK_D)
    values = value_slice * BLOCK_V + tl.arange(0, BLOCK_V)
    # Starts are scalars and offsets within a tile 32 bits wide, so that addresses take few registers.
    qa_start = q_ptr + batch * q_batch + head * q_head + tl.cast(pair * 2 * BLOCK_M, tl.int64) * q_row
    qb_start = qa_start + BLOCK_M * q_row
    k_start = k_ptr + batch * k_batch + head * k_head
    v_start = v_ptr + batch * v_batch + head * v_head
    q_offsets = tl.arange(0, BLOCK_M)[:, None] * q_row + features[None, :] * q_column
    k_offsets = keys[None, :] * k_row + features[:, None] * k_column
    v_offsets = keys[:, None] * v_row + values[None, :] * v_column
    mask_a, mask_b = queries_a[:, None] < n_queries, queries_b[:, None] < n_queries
    in_head = features < head_dim
    v_mask = values[None, :] < head_dim
    qa = tl.load(qa_start + q_offsets, mask=mask_a & in_head[None, :], other=0.0) if HELD else 0.0
    qb = tl.load(qb_start + q_offsets, mask=mask_b & in_head[None, :], other=0.0) if HELD else 0.0

    highest_a = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    highest_b = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total_a = tl.zeros((BLOCK_M,), tl.float32)
    total_b = tl.zeros((BLOCK_M,), tl.float32)
    weighted_a = tl.zeros((BLOCK_M, BLOCK_V), tl.float32)
    weighted_b = tl.zeros((BLOCK_M, BLOCK_V), tl.float32)
    stop = tl.minimum((pair + 1) * 2 * BLOCK_M, n_keys) if CAUSAL else n_keys
    for start in tl.range(0, stop, BLOCK_N, num_stages=STAGES):
        at = start + keys
        in_keys = at < n_keys
        if HELD:
            k = tl.load(k_start + k_offsets, mask=in_keys[None, :] & in_head[:, None], other=0.0)
            scores_a = tl.dot(qa, k, input_precision="tf32x3")
            scores_b = tl.dot(qb, k, input_precision="tf32x3")
        else:
            scores_a = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            scores_b = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            for first in range(0, head_dim, BLOCK_D):
                inside = features < head_dim - first
                k_piece = tl.load(
                    k_start + first * k_column + k_offsets, mask=in_keys[None, :] & inside[:, None], other=0.0
                )
                qa_piece = tl.load(qa_start + first * q_column + q_offsets, mask=mask_a & inside[None, :], other=0.0)
                qb_piece = tl.load(qb_start + first * q_column + q_offsets, mask=mask_b & inside[None, :], other=0.0)
                scores_a = tl.dot(qa_piece, k_piece, scores_a, input_precision="tf32x3")
                scores_b = tl.dot(qb_piece, k_piece, scores_b, input_precision="tf32x3")
        scores_a *= scale
        scores_b *= scale
        if CAUSAL:
            scores_a = tl.where(at[None, :] <= queries_a[:, None], scores_a, float("-inf"))
            scores_b = tl.where(at[None, :] <= queries_b[:, None], scores_b, float("-inf"))
        if start + BLOCK_N > n_keys:
            scores_a = tl.where(in_keys[None, :], scores_a, float("-inf"))
            scores_b = tl.where(in_keys[None, :], scores_b, float("-inf"))
        v = tl.load(v_start + v_offsets, mask=v_mask & in_keys[:, None], other=0.0)
        highest_a, total_a, weighted_a = attend(scores_a, v, highest_a, total_a, weighted_a)
        highest_b, total_b, weighted_b = attend(scores_b, v, highest_b, total_b, weighted_b)
        k_start += BLOCK_N * k_row
        v_start += BLOCK_N * v_row

    out_head_ptr = out_ptr + batch * out_batch + head * out_head + values[None, :] * out_column
    out_a = (weighted_a / total_a[:, None]).to(out_ptr.dtype.element_ty)
    out_b = (weighted_b / total_b[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_head_ptr + queries_a.to(tl.int64)[:, None] * out_row, out_a, mask=mask_a & v_mask)
    tl.store(out_head_ptr + queries_b.to(tl.int64)[:, None] * out_row, out_b, mask=mask_b & v_mask)


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
    # Two tiles of wide heads fill the registers: half as many queries each.
    tile_m = (BLOCK_M if whole_dim <= 64 else max(16, BLOCK_M // 2)) if held else WIDE_M
    block_m = min(tile_m, widest, max(16, triton.next_power_of_2(triton.cdiv(n_queries, 2))))
    block_n = max(16, min(128, KEY_ELEMENTS // whole_dim)) if held else WIDE_N
    block_n = min(block_n, widest, max(16, triton.next_power_of_2(n_keys)))
    block_d = whole_dim if held else min(WIDE_PIECE, widest)
    block_v = whole_dim if held else min(whole_dim, WIDE_VALUES, 2 * widest)
    n_pairs, n_slices = triton.cdiv(n_queries, 2 * block_m), triton.cdiv(head_dim, block_v)
    walk_keys_twice[(n_batch * n_heads * n_slices * n_pairs,)](
        q, k, v, out, *q.stride(), *k.stride(), *v.stride(), *out.stride(),
        n_heads, n_queries, n_keys, head_dim, n_pairs, n_slices, head_dim**-0.5 * 1.4426950408889634,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=block_d, BLOCK_V=block_v, HELD=held, CAUSAL=CAUSAL == 1,
        STAGES=STAGES, num_warps=NUM_WARPS, num_stages=STAGES,
    )  # fmt: skip
    return out
