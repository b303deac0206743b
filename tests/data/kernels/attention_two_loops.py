"""Attention in a flash-attention style: scale folded into base 2, whole tiles, then the last one."""

import torch
import triton
import triton.language as tl


@triton.jit
def attn_fwd(Q, K, V, Out, sm_scale, N_CTX, D, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    start_m = tl.program_id(0)
    off_hz = tl.program_id(1)
    base = off_hz.to(tl.int64) * N_CTX * D
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, BLOCK_D)
    d_mask = offs_d < D
    q = tl.load(
        Q + base + offs_m[:, None] * D + offs_d[None, :], mask=(offs_m[:, None] < N_CTX) & d_mask[None, :], other=0.0
    )
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    qk_scale = sm_scale * 1.44269504
    for start_n in range(0, N_CTX, BLOCK_N):
        n = start_n + offs_n
        k = tl.load(K + base + n[None, :] * D + offs_d[:, None], mask=(n[None, :] < N_CTX) & d_mask[:, None], other=0.0)
        qk = tl.dot(q, k) * qk_scale
        qk = tl.where(n[None, :] < N_CTX, qk, float("-inf"))
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(V + base + n[:, None] * D + offs_d[None, :], mask=(n[:, None] < N_CTX) & d_mask[None, :], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_ij
    acc = acc / l_i[:, None]
    tl.store(
        Out + base + offs_m[:, None] * D + offs_d[None, :],
        acc.to(Out.dtype.element_ty),
        mask=(offs_m[:, None] < N_CTX) & d_mask[None, :],
    )


def kernel_function(q, k, v):
    B, H, N_CTX, D = q.shape
    o = torch.empty_like(q)
    block_d = max(16, triton.next_power_of_2(D))
    attn_fwd[(triton.cdiv(N_CTX, 32), B * H)](
        q, k, v, o, D**-0.5, N_CTX, D, BLOCK_M=32, BLOCK_N=32, BLOCK_D=block_d, num_warps=4, num_stages=2
    )
    return o
