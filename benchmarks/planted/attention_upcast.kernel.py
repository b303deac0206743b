"""Slow because queries, keys and values are widened before both products, which takes them off the tensor cores."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_tile(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, head_dim, n_tiles, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    head = (tl.program_id(0) // n_tiles).to(tl.int64) * seq * head_dim
    queries = (tl.program_id(0) % n_tiles) * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    features = tl.arange(0, BLOCK_D)
    q_offsets = queries[:, None] * head_dim + features[None, :]
    q_inside = (queries[:, None] < seq) & (features[None, :] < head_dim)
    q = tl.load(q_ptr + head + q_offsets, mask=q_inside, other=0.0)
    highest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    weighted = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, seq, BLOCK_N):
        at = start + keys
        inside = (at[:, None] < seq) & (features[None, :] < head_dim)
        offsets = at[:, None] * head_dim + features[None, :]
        k = tl.load(k_ptr + head + offsets, mask=inside, other=0.0)
        scores = tl.dot(q.to(tl.float32), tl.trans(k).to(tl.float32), input_precision="ieee") * scale
        scores = tl.where(at[None, :] < seq, scores, float("-inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_highest[:, None])
        shrink = tl.exp(highest - new_highest)
        v = tl.load(v_ptr + head + offsets, mask=inside, other=0.0)
        total = total * shrink + tl.sum(weights, axis=1)
        weighted = weighted * shrink[:, None] + tl.dot(weights, v.to(tl.float32), input_precision="ieee")
        highest = new_highest
    out = weighted / total[:, None]
    tl.store(out_ptr + head + q_offsets, out.to(out_ptr.dtype.element_ty), mask=q_inside)


def kernel_function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    n_batch, n_heads, seq, head_dim = q.shape
    out = torch.empty_like(q)
    block_d = max(16, triton.next_power_of_2(head_dim))
    block_m, block_n, warps = (32, 32, 4) if block_d <= 128 else (16, 16, 8)
    n_tiles = triton.cdiv(seq, block_m)
    attention_tile[(n_batch * n_heads * n_tiles,)](
        q, k, v, out, seq, head_dim, n_tiles, head_dim**-0.5,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=block_d, num_warps=warps, num_stages=1,
    )  # fmt: skip
    return out
