"""Attention whose tiles come through tensor descriptors (Hopper's TMA): no addresses in registers, no masks inside.

out_i = sum_j exp(s_ij - m_i) v_j / sum_j exp(s_ij - m_i), s = q k^T / sqrt(d). Up to 128 features a program keeps a
tile of queries and walks the keys with a running maximum and sum (Milakov and Gimelshein 2018, arXiv:1805.02867; Dao et
al. 2022, arXiv:2205.14135); maxima are of unscaled scores, so that scale and shift are one multiply-add. Wider heads
are two plain matrix products: first spans of scores and their weights, then those and the values, a slice of features
at a time. Weights of at most two spans stay in registers (HELD_VALUES); of more, as many programs as SMs each have
room in memory for one tile of queries, small enough to stay in L2, where they are brought to the last maximum. Inputs
that no descriptor can be made for, 4-byte ones and chips before Hopper go through pointers.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CAUSAL = 0
NARROW_M = 64
NARROW_N = 128
NARROW_WARPS = 4
NARROW_STAGES = 2
NARROW_REGISTERS = 0
MIDDLE_M = 128
MIDDLE_N = 64
MIDDLE_WARPS = 4
MIDDLE_STAGES = 2
MIDDLE_REGISTERS = 0
WIDE_M = 128
SPAN = 256
PIECE = 64
KEYS = 64
VALUES = 256
WIDE_WARPS = 8
WIDE_STAGES = 4
PROGRAMS_PER_SM = 1
STORE_STAGES = 2
HELD_VALUES = 64
HELD_STAGES = 3
N_SMS = 132
SHARED_BYTES = 232448
ARCH = 90
LOG2_E = 1.4426950408889634


@triton.jit
def soften(scores, highest, total, scale):
    """Weights of one tile of unscaled scores, the maximum and sum after it, and what earlier sums shrink by."""
    new_highest = tl.maximum(highest, tl.max(scores, axis=1))
    weights = tl.exp2(scores * scale - (new_highest * scale)[:, None])
    shrink = tl.exp2((highest - new_highest) * scale)
    return weights, new_highest, total * shrink + tl.sum(weights, axis=1), shrink


@triton.jit
def attend(scores, v, highest, total, weighted, scale):
    weights, highest, total, shrink = soften(scores, highest, total, scale)
    return highest, total, tl.dot(weights.to(v.dtype), v, weighted * shrink[:, None])


@triton.jit
def bits(weights, dtype: tl.constexpr):
    """Weights as a loop carries them: half words stay in registers for a product; numbers would go through memory."""
    return weights.to(dtype).to(tl.int16, bitcast=True)


@triton.jit
def of_bits(carried, dtype: tl.constexpr):
    return carried.to(dtype, bitcast=True)


@triton.jit
def walk_described(
    q_desc, k_desc, v_desc, out_desc, n_heads, n_keys, n_tiles, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, EVEN: tl.constexpr, CAUSAL: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % n_tiles
    if CAUSAL:  # The longest walks start first.
        tile = n_tiles - 1 - tile
    batch, head = tl.program_id(0) // n_tiles // n_heads, tl.program_id(0) // n_tiles % n_heads
    row = tile * BLOCK_M
    q = q_desc.load([batch, head, row, 0]).reshape(BLOCK_M, BLOCK_D)
    highest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    weighted = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    whole = (tl.minimum(row, n_keys) if CAUSAL else n_keys) // BLOCK_N * BLOCK_N
    for start in tl.range(0, whole, BLOCK_N, num_stages=STAGES):
        k = k_desc.load([batch, head, start, 0]).reshape(BLOCK_N, BLOCK_D)
        scores = tl.dot(q, k.T)
        v = v_desc.load([batch, head, start, 0]).reshape(BLOCK_N, BLOCK_D)
        highest, total, weighted = attend(scores, v, highest, total, weighted, scale)
    if not EVEN:
        stop = tl.minimum(row + BLOCK_M, n_keys) if CAUSAL else n_keys
        for start in tl.range(whole, stop, BLOCK_N, num_stages=1):
            keys = start + tl.arange(0, BLOCK_N)
            seen = (keys < n_keys)[None, :]
            if CAUSAL:
                seen = seen & (keys[None, :] <= (row + tl.arange(0, BLOCK_M))[:, None])
            k = k_desc.load([batch, head, start, 0]).reshape(BLOCK_N, BLOCK_D)
            scores = tl.where(seen, tl.dot(q, k.T), float("-inf"))
            v = v_desc.load([batch, head, start, 0]).reshape(BLOCK_N, BLOCK_D)
            highest, total, weighted = attend(scores, v, highest, total, weighted, scale)
    out = (weighted * (1.0 / total)[:, None]).to(out_desc.dtype)
    out_desc.store([batch, head, row, 0], out.reshape(1, 1, BLOCK_M, BLOCK_D))


@triton.jit
def span_scores(
    q_desc, k_desc, batch, head, row, start, n_keys, head_dim, BLOCK_M: tl.constexpr, SPAN: tl.constexpr,
    PIECE: tl.constexpr, EVEN: tl.constexpr, CAUSAL: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    scores = tl.zeros((BLOCK_M, SPAN), tl.float32)
    for first in tl.range(0, head_dim, PIECE, num_stages=STAGES):
        q = q_desc.load([batch, head, row, first]).reshape(BLOCK_M, PIECE)
        k = k_desc.load([batch, head, start, first]).reshape(SPAN, PIECE)
        scores = tl.dot(q, k.T, scores)
    if not EVEN:
        keys = start + tl.arange(0, SPAN)
        seen = (keys < n_keys)[None, :]
        if CAUSAL:
            seen = seen & (keys[None, :] <= (row + tl.arange(0, BLOCK_M))[:, None])
        scores = tl.where(seen, scores, float("-inf"))
    return scores


@triton.jit
def weigh_then_sum(
    q_desc, k_desc, v_desc, out_desc, weights_ptr, highest_ptr, n_heads, n_keys, head_dim, n_tiles, n_all, scale,
    BLOCK_M: tl.constexpr, SPAN: tl.constexpr, PIECE: tl.constexpr, KEYS: tl.constexpr, VALUES: tl.constexpr,
    N_PADDED: tl.constexpr, EVEN: tl.constexpr, CAUSAL: tl.constexpr, SCORE_STAGES: tl.constexpr,
    VALUE_STAGES: tl.constexpr, STORE_STAGES: tl.constexpr,
):  # fmt: skip
    rows = tl.arange(0, BLOCK_M)
    weights_ptrs = weights_ptr + tl.program_id(0).to(tl.int64) * BLOCK_M * N_PADDED + rows[:, None] * N_PADDED
    highest_ptrs = highest_ptr + tl.program_id(0) * BLOCK_M * (N_PADDED // SPAN) + rows
    in_span, in_step = tl.arange(0, SPAN), tl.arange(0, KEYS)
    for block in tl.range(tl.program_id(0), n_all, tl.num_programs(0)):
        row = block % n_tiles * BLOCK_M
        batch, head = block // n_tiles // n_heads, block // n_tiles % n_heads
        n_spans = tl.cdiv(tl.minimum(row + BLOCK_M, n_keys) if CAUSAL else n_keys, SPAN)
        # Later spans may hide all their keys from a query: shifting by -inf would make NaN of them.
        highest = tl.full((BLOCK_M,), -1.0e30, tl.float32)
        total = tl.zeros((BLOCK_M,), tl.float32)
        for span in range(n_spans):
            scores = span_scores(
                q_desc, k_desc, batch, head, row, span * SPAN, n_keys, head_dim, BLOCK_M, SPAN, PIECE, EVEN, CAUSAL,
                SCORE_STAGES,
            )  # fmt: skip
            weights, highest, total, _ = soften(scores, highest, total, scale)
            tl.store(weights_ptrs + span * SPAN + in_span[None, :], weights.to(weights_ptr.dtype.element_ty))
            tl.store(highest_ptrs + span * BLOCK_M, highest)
        tl.debug_barrier()
        for span in range(n_spans - 1):
            shrink = tl.exp2((tl.load(highest_ptrs + span * BLOCK_M) - highest) * scale)
            of_span = weights_ptrs + span * SPAN + in_span[None, :]
            tl.store(of_span, (tl.load(of_span) * shrink[:, None]).to(weights_ptr.dtype.element_ty))
        tl.debug_barrier()
        share = 1.0 / total
        # With two store stages a slice is stored while the next is computed, out of shared memory of its own.
        for value in tl.range(0, head_dim, VALUES, num_stages=STORE_STAGES):
            weighted = tl.zeros((BLOCK_M, VALUES), tl.float32)
            for start in tl.range(0, n_spans * SPAN, KEYS, num_stages=VALUE_STAGES):
                weights = tl.load(weights_ptrs + start + in_step[None, :])
                v = v_desc.load([batch, head, start, value]).reshape(KEYS, VALUES)
                weighted = tl.dot(weights, v, weighted)
            out = (weighted * share[:, None]).to(out_desc.dtype)
            out_desc.store([batch, head, row, value], out.reshape(1, 1, BLOCK_M, VALUES))
        tl.debug_barrier()


@triton.jit
def hold_weights(
    q_desc, k_desc, v_desc, out_desc, n_heads, n_keys, head_dim, n_tiles, n_spans, scale, BLOCK_M: tl.constexpr,
    SPAN: tl.constexpr, PIECE: tl.constexpr, VALUES: tl.constexpr, SPANS: tl.constexpr, EVEN: tl.constexpr,
    CAUSAL: tl.constexpr, SCORE_STAGES: tl.constexpr, VALUE_STAGES: tl.constexpr,
):  # fmt: skip
    """Wide heads over one or two spans of keys, the weights of all keys in registers."""
    block = tl.program_id(0)
    row = block % n_tiles * BLOCK_M
    batch, head = block // n_tiles // n_heads, block // n_tiles % n_heads
    highest = tl.full((BLOCK_M,), -1.0e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    near = tl.zeros((BLOCK_M, SPAN), tl.int16)
    far = near
    for span in range(n_spans):
        scores = span_scores(
            q_desc, k_desc, batch, head, row, span * SPAN, n_keys, head_dim, BLOCK_M, SPAN, PIECE, EVEN, CAUSAL,
            SCORE_STAGES,
        )  # fmt: skip
        weights, highest, total, shrink = soften(scores, highest, total, scale)
        near = bits(of_bits(far, q_desc.dtype).to(tl.float32) * shrink[:, None], q_desc.dtype)
        far = bits(weights, q_desc.dtype)
    share = 1.0 / total
    for value in tl.range(0, head_dim, VALUES, num_stages=VALUE_STAGES):
        v = v_desc.load([batch, head, 0, value]).reshape(SPAN, VALUES)
        weighted = tl.dot(of_bits(near if SPANS == 2 else far, v.dtype), v)
        if SPANS == 2:
            v = v_desc.load([batch, head, SPAN, value]).reshape(SPAN, VALUES)
            weighted = tl.dot(of_bits(far, v.dtype), v, weighted)
        out = (weighted * share[:, None]).to(out_desc.dtype)
        out_desc.store([batch, head, row, value], out.reshape(1, 1, BLOCK_M, VALUES))


@triton.jit
def pointed_attend(scores, v, highest, total, weighted):
    """One tile of keys: the running maximum (of base-2 exponents), sum and weighted values after it."""
    new_highest = tl.maximum(highest, tl.max(scores, axis=1))
    weights = tl.exp2(scores - new_highest[:, None])
    shrink = tl.exp2(highest - new_highest)
    total = total * shrink + tl.sum(weights, axis=1)
    weighted = tl.dot(weights.to(v.dtype), v, weighted * shrink[:, None], input_precision="tf32x3")
    return new_highest, total, weighted


@triton.jit
def pointed_scores(
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
def pointed_walk(
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
        scores = pointed_scores(
            q, q_start, q_offsets, q_column, q_mask, k_start, k_offsets, k_column, True, head_dim, scale,
            BLOCK_M, BLOCK_N, BLOCK_D, HELD,
        )  # fmt: skip
        v = tl.load(v_start + v_offsets, mask=v_mask, other=0.0)
        highest, total, weighted = pointed_attend(scores, v, highest, total, weighted)
        k_start += BLOCK_N * k_row
        v_start += BLOCK_N * v_row
    for start in tl.range(whole, stop, BLOCK_N, num_stages=1):
        at = start + keys
        scores = pointed_scores(
            q, q_start, q_offsets, q_column, q_mask, k_start, k_offsets, k_column, (at < n_keys)[None, :], head_dim,
            scale, BLOCK_M, BLOCK_N, BLOCK_D, HELD,
        )  # fmt: skip
        seen = (at[None, :] < n_keys) & (at[None, :] <= queries[:, None]) if CAUSAL else at[None, :] < n_keys
        scores = tl.where(seen, scores, float("-inf"))
        v = tl.load(v_start + v_offsets, mask=v_mask & (at < n_keys)[:, None], other=0.0)
        highest, total, weighted = pointed_attend(scores, v, highest, total, weighted)
        k_start += BLOCK_N * k_row
        v_start += BLOCK_N * v_row

    out_rows = out_ptr + batch * out_batch + head * out_head + queries.to(tl.int64)[:, None] * out_row
    out = (weighted / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_rows + values[None, :] * out_column, out, mask=q_mask & v_mask)


def loads_whole_words(*tensors):
    """Whether rows begin at multiples of 16 bytes: others are loaded element by element, an address a register pair."""
    return all(x.stride(-1) == 1 and x.stride(-2) * x.element_size() % 16 == 0 for x in tensors)


def can_be_described(tensor):
    """Whether a tensor descriptor may be made: unit stride inside, all else at multiples of 16 bytes."""
    steps = [step * tensor.element_size() for step in tensor.stride()[:-1]]
    return tensor.stride(-1) == 1 and all(s > 0 and s % 16 == 0 for s in steps) and tensor.data_ptr() % 16 == 0


def stages_that_fit(stages, held_bytes, stage_bytes):
    """As many stages as asked for, or as shared memory has room for beside what is held."""
    return max(1, min(stages, (SHARED_BYTES - 1024 - held_bytes) // stage_bytes))


def blocks(tensors, *sizes):
    return [TensorDescriptor.from_tensor(x, [1, 1, *size]) for x, size in zip(tensors, sizes, strict=True)]


def described(q, k, v, out, scale):
    n_batch, n_heads, n_queries, head_dim = q.shape
    n_keys, block_d = k.shape[2], max(16, triton.next_power_of_2(head_dim))
    if block_d <= 64:
        block_m, block_n, warps, stages, registers = NARROW_M, NARROW_N, NARROW_WARPS, NARROW_STAGES, NARROW_REGISTERS
    else:
        block_m, block_n, warps, stages, registers = MIDDLE_M, MIDDLE_N, MIDDLE_WARPS, MIDDLE_STAGES, MIDDLE_REGISTERS
    block_m = min(block_m, max(64, triton.next_power_of_2(n_queries)))
    block_n = min(block_n, max(64, triton.next_power_of_2(n_keys)))
    row_bytes = block_d * q.element_size()
    n_tiles = triton.cdiv(n_queries, block_m)
    walk_described[(n_batch * n_heads * n_tiles,)](
        *blocks((q, k, v, out), (block_m, block_d), (block_n, block_d), (block_n, block_d), (block_m, block_d)),
        n_heads, n_keys, n_tiles, scale, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=block_d,
        EVEN=n_keys % block_n == 0 and CAUSAL == 0, CAUSAL=CAUSAL == 1,
        STAGES=stages_that_fit(stages, block_m * row_bytes, 2 * block_n * row_bytes),
        num_warps=min(warps, block_m // 16), maxnreg=registers or None,
    )  # fmt: skip


def described_wide(q, k, v, out, scale):
    n_batch, n_heads, n_queries, head_dim = q.shape
    n_keys = k.shape[2]
    block_m = min(WIDE_M, max(64, triton.next_power_of_2(n_queries)))
    span = min(SPAN, max(64, triton.next_power_of_2(n_keys)))
    n_tiles, n_padded = triton.cdiv(n_queries, block_m), triton.cdiv(n_keys, span) * span
    n_all = n_batch * n_heads * n_tiles
    n_programs = min(N_SMS * PROGRAMS_PER_SM, n_all)
    weights = torch.empty((n_programs, block_m, n_padded), dtype=q.dtype, device=q.device)
    highest = torch.empty((n_programs, n_padded // span, block_m), dtype=torch.float32, device=q.device)
    item, stored = PROGRAMS_PER_SM * q.element_size(), block_m * VALUES * (STORE_STAGES > 1)
    weigh_then_sum[(n_programs,)](
        *blocks((q, k, v, out), (block_m, PIECE), (span, PIECE), (KEYS, VALUES), (block_m, VALUES)),
        weights, highest, n_heads, n_keys, head_dim, n_tiles, n_all, scale, BLOCK_M=block_m, SPAN=span, PIECE=PIECE,
        KEYS=KEYS, VALUES=VALUES, N_PADDED=n_padded, EVEN=n_keys % span == 0 and CAUSAL == 0, CAUSAL=CAUSAL == 1,
        SCORE_STAGES=stages_that_fit(WIDE_STAGES, 0, (block_m + span) * PIECE * item),
        VALUE_STAGES=stages_that_fit(WIDE_STAGES, stored * item, (block_m + VALUES) * KEYS * item),
        STORE_STAGES=STORE_STAGES, num_warps=min(WIDE_WARPS, block_m // 16),
    )  # fmt: skip


def described_held(q, k, v, out, scale):
    n_batch, n_heads, n_queries, head_dim = q.shape
    n_keys = k.shape[2]
    block_m = min(128, max(64, triton.next_power_of_2(n_queries)))
    span = min(256, max(64, triton.next_power_of_2(n_keys)))
    n_tiles, spans, item = triton.cdiv(n_queries, block_m), triton.cdiv(n_keys, span), q.element_size()
    hold_weights[(n_batch * n_heads * n_tiles,)](
        *blocks((q, k, v, out), (block_m, PIECE), (span, PIECE), (span, HELD_VALUES), (block_m, HELD_VALUES)),
        n_heads, n_keys, head_dim, n_tiles, spans, scale, BLOCK_M=block_m, SPAN=span, PIECE=PIECE, VALUES=HELD_VALUES,
        SPANS=spans, EVEN=n_keys % span == 0 and CAUSAL == 0, CAUSAL=CAUSAL == 1,
        SCORE_STAGES=stages_that_fit(WIDE_STAGES, 0, (block_m + span) * PIECE * item),
        VALUE_STAGES=stages_that_fit(HELD_STAGES, block_m * HELD_VALUES * item, spans * span * HELD_VALUES * item),
        num_warps=block_m // 16,
    )  # fmt: skip


def pointed(q, k, v, out, scale):
    n_batch, n_heads, n_queries, head_dim = q.shape
    n_keys, held = k.shape[2], head_dim <= 128
    whole_dim = max(16, triton.next_power_of_2(head_dim))
    widest = 256 if loads_whole_words(q, k, v) else 32
    block_m = min(128 if held else 64, widest, max(16, triton.next_power_of_2(n_queries)))
    block_n = min(max(16, min(128, 4096 // whole_dim)) if held else 64, widest, max(16, triton.next_power_of_2(n_keys)))
    block_d = whole_dim if held else min(64, widest)
    block_v = whole_dim if held else min(whole_dim, 256, 2 * widest)
    n_tiles, n_slices = triton.cdiv(n_queries, block_m), triton.cdiv(head_dim, block_v)
    pointed_walk[(n_batch * n_heads * n_slices * n_tiles,)](
        q, k, v, out, *q.stride(), *k.stride(), *v.stride(), *out.stride(), n_heads, n_queries, n_keys, head_dim,
        n_tiles, n_slices, scale, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=block_d, BLOCK_V=block_v, HELD=held,
        CAUSAL=CAUSAL == 1, STAGES=3, num_warps=8, num_stages=3,
    )  # fmt: skip


def kernel_function(q, k, v):
    out = torch.empty_like(q)
    scale = q.shape[3] ** -0.5 * LOG2_E
    if ARCH < 90 or q.element_size() != 2 or not all(can_be_described(x) for x in (q, k, v, out)):
        pointed(q, k, v, out, scale)
    elif q.shape[3] <= 128:
        described(q, k, v, out, scale)
    elif HELD_VALUES and k.shape[2] <= 512:
        described_held(q, k, v, out, scale)
    else:
        described_wide(q, k, v, out, scale)
    return out
