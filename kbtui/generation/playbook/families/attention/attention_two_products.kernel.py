"""Attention as two matrix products, the weights between them in memory, for heads too wide for one program.

First kernel: p_ij = exp(s_ij - m_it), s = q k^T / sqrt(d), for a tile of queries and the t-th tile of keys, with the
tile's maxima m_it and sums of p. Second: out_i = sum_j p_ij exp(m_it - m_i) v_j / sum_t exp(m_it - m_i) sum_j p_ij, m_i
= max_t m_it (the associative combination of online softmax, Milakov and Gimelshein 2018, arXiv:1805.02867). Both walk
their long dimension as any matrix product does, so that a head dimension of a thousand needs no registers to hold it
and no score is computed twice. Heads go in slices whose weights fit in WORKSPACE_MIB. With CAUSAL, tiles beyond the
diagonal are neither computed nor read.
"""

import torch
import triton
import triton.language as tl

CAUSAL = 0
BLOCK_M = 128
KEYS = 128
PIECE = 64
VALUES = 256
NUM_WARPS = 8
STAGES = 3
WORKSPACE_MIB = 2048


@triton.jit
def weigh_keys(
    q_ptr, k_ptr, weights_ptr, highest_ptr, total_ptr, q_batch, q_head, q_row, q_column,
    k_batch, k_head, k_row, k_column, first_head, n_heads, n_queries, n_keys, head_dim, n_tiles, n_key_tiles, scale,
    BLOCK_M: tl.constexpr, KEYS: tl.constexpr, PIECE: tl.constexpr, EVEN_D: tl.constexpr, CAUSAL: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % n_tiles
    key_tile = (tl.program_id(0) // n_tiles) % n_key_tiles
    in_slice = (tl.program_id(0) // (n_tiles * n_key_tiles)).to(tl.int64)
    batch, head = (first_head + in_slice) // n_heads, (first_head + in_slice) % n_heads
    if (not CAUSAL) or key_tile * KEYS < (tile + 1) * BLOCK_M:
        queries = tile * BLOCK_M + tl.arange(0, BLOCK_M)
        keys = key_tile * KEYS + tl.arange(0, KEYS)
        features = tl.arange(0, PIECE)
        # Queries and keys past the end read the last again; what comes of them is masked below. Starts are scalars and
        # offsets within a tile 32 bits wide, so that addresses take few registers.
        q_start = q_ptr + batch * q_batch + head * q_head + tl.cast(tile * BLOCK_M, tl.int64) * q_row
        k_start = k_ptr + batch * k_batch + head * k_head + tl.cast(key_tile * KEYS, tl.int64) * k_row
        q_lanes = tl.minimum(tl.arange(0, BLOCK_M), n_queries - 1 - tile * BLOCK_M)
        k_lanes = tl.minimum(tl.arange(0, KEYS), n_keys - 1 - key_tile * KEYS)
        q_offsets = q_lanes[:, None] * q_row + features[None, :] * q_column
        k_offsets = k_lanes[None, :] * k_row + features[:, None] * k_column
        scores = tl.zeros((BLOCK_M, KEYS), tl.float32)
        for first in tl.range(0, head_dim, PIECE, num_stages=STAGES):
            if EVEN_D:
                q = tl.load(q_start + q_offsets)
                k = tl.load(k_start + k_offsets)
            else:
                q = tl.load(q_start + q_offsets, mask=features[None, :] < head_dim - first, other=0.0)
                k = tl.load(k_start + k_offsets, mask=features[:, None] < head_dim - first, other=0.0)
            q_start += PIECE * q_column
            k_start += PIECE * k_column
            scores = tl.dot(q, k, scores, input_precision="tf32x3")
        seen = keys[None, :] < n_keys
        if CAUSAL:
            seen = seen & (keys[None, :] <= queries[:, None])
        scores = tl.where(seen, scores * scale, float("-inf"))
        # A query may see none of the tile's keys: shifting by -inf would make NaN of them.
        highest = tl.maximum(tl.max(scores, axis=1), -1.0e30)
        weights = tl.exp2(scores - highest[:, None])
        rows = in_slice * n_queries + queries
        tl.store(highest_ptr + rows * n_key_tiles + key_tile, highest, mask=queries < n_queries)
        tl.store(total_ptr + rows * n_key_tiles + key_tile, tl.sum(weights, axis=1), mask=queries < n_queries)
        inside = (queries < n_queries)[:, None] & (keys < n_keys)[None, :]
        weights_ptrs = weights_ptr + rows[:, None] * n_keys + keys[None, :]
        tl.store(weights_ptrs, weights.to(weights_ptr.dtype.element_ty), mask=inside)


@triton.jit
def weigh_values(
    weights_ptr, highest_ptr, total_ptr, v_ptr, out_ptr, v_batch, v_head, v_row, v_column,
    out_batch, out_head, out_row, out_column, first_head, n_heads, n_queries, n_keys, head_dim, n_tiles, n_slices,
    n_key_tiles, BLOCK_M: tl.constexpr, KEYS: tl.constexpr, PIECE: tl.constexpr, VALUES: tl.constexpr,
    KEY_TILES: tl.constexpr, CAUSAL: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    value_slice = tl.program_id(0) % n_slices
    tile = (tl.program_id(0) // n_slices) % n_tiles
    in_slice = (tl.program_id(0) // (n_tiles * n_slices)).to(tl.int64)
    batch, head = (first_head + in_slice) // n_heads, (first_head + in_slice) % n_heads
    queries = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    values = value_slice * VALUES + tl.arange(0, VALUES)
    keys = tl.arange(0, PIECE)
    rows = in_slice * n_queries + queries % n_queries
    stop = tl.minimum((tile + 1) * BLOCK_M, n_keys) if CAUSAL else n_keys

    key_tiles = tl.arange(0, KEY_TILES)
    written = ((key_tiles < n_key_tiles) & (key_tiles * KEYS < stop))[None, :]
    tile_highest = tl.load(highest_ptr + rows[:, None] * n_key_tiles + key_tiles[None, :], mask=written, other=-1.0e30)
    tile_total = tl.load(total_ptr + rows[:, None] * n_key_tiles + key_tiles[None, :], mask=written, other=0.0)
    highest = tl.max(tile_highest, axis=1)
    total = tl.sum(tile_total * tl.exp2(tile_highest - highest[:, None]), axis=1)

    v_ptrs = v_ptr + batch * v_batch + head * v_head + (values % head_dim)[None, :] * v_column
    weighted = tl.zeros((BLOCK_M, VALUES), tl.float32)
    for start in tl.range(0, stop, PIECE, num_stages=STAGES):
        at = start + keys
        of_tile = tl.load(highest_ptr + rows * n_key_tiles + start // KEYS)
        weights = tl.load(weights_ptr + rows[:, None] * n_keys + at[None, :], mask=(at < n_keys)[None, :], other=0.0)
        v = tl.load(v_ptrs + at.to(tl.int64)[:, None] * v_row, mask=(at < n_keys)[:, None], other=0.0)
        shifted = (weights * tl.exp2(of_tile - highest)[:, None]).to(v.dtype)
        weighted = tl.dot(shifted, v, weighted, input_precision="tf32x3")
    out_rows = out_ptr + batch * out_batch + head * out_head + queries.to(tl.int64)[:, None] * out_row
    out = (weighted / total[:, None]).to(out_ptr.dtype.element_ty)
    inside = (queries < n_queries)[:, None] & (values < head_dim)[None, :]
    tl.store(out_rows + values[None, :] * out_column, out, mask=inside)


def loads_whole_words(*tensors):
    """Whether rows begin at multiples of 16 bytes: others are loaded element by element, an address a register pair."""
    return all(x.stride(-1) == 1 and x.stride(-2) * x.element_size() % 16 == 0 for x in tensors)


def kernel_function(q, k, v):
    n_batch, n_heads, n_queries, head_dim = q.shape
    n_keys = k.shape[2]
    out = torch.empty_like(q)
    widest = 256 if loads_whole_words(q, k, v) and n_keys * q.element_size() % 16 == 0 else 32
    block_m = min(BLOCK_M, widest, max(16, triton.next_power_of_2(n_queries)))
    keys = min(KEYS, widest, max(16, triton.next_power_of_2(n_keys)))
    values = min(VALUES, widest, max(16, triton.next_power_of_2(head_dim)))
    d_piece = min(PIECE, widest, max(16, triton.next_power_of_2(head_dim)))
    n_tiles, n_key_tiles = triton.cdiv(n_queries, block_m), triton.cdiv(n_keys, keys)
    n_slices = triton.cdiv(head_dim, values)
    n_all = n_batch * n_heads
    at_once = min(n_all, max(1, WORKSPACE_MIB * 1048576 // (n_queries * n_keys * q.element_size())))
    weights = torch.empty((at_once, n_queries, n_keys), dtype=q.dtype, device=q.device)
    highest = torch.empty((at_once, n_queries, n_key_tiles), dtype=torch.float32, device=q.device)
    total = torch.empty((at_once, n_queries, n_key_tiles), dtype=torch.float32, device=q.device)
    for first in range(0, n_all, at_once):
        n_here = min(at_once, n_all - first)
        weigh_keys[(n_here * n_key_tiles * n_tiles,)](
            q, k, weights, highest, total, *q.stride(), *k.stride(), first, n_heads, n_queries, n_keys, head_dim,
            n_tiles, n_key_tiles, head_dim**-0.5 * 1.4426950408889634, BLOCK_M=block_m, KEYS=keys, PIECE=d_piece,
            EVEN_D=head_dim % d_piece == 0, CAUSAL=CAUSAL == 1, STAGES=STAGES, num_warps=NUM_WARPS,
        )  # fmt: skip
        weigh_values[(n_here * n_tiles * n_slices,)](
            weights, highest, total, v, out, *v.stride(), *out.stride(), first, n_heads, n_queries, n_keys, head_dim,
            n_tiles, n_slices, n_key_tiles, BLOCK_M=block_m, KEYS=keys, PIECE=min(PIECE, keys), VALUES=values,
            KEY_TILES=triton.next_power_of_2(n_key_tiles), CAUSAL=CAUSAL == 1, STAGES=STAGES, num_warps=NUM_WARPS,
        )  # fmt: skip
    return out
