"""Linear as a plain product, then bias, ReLU and division in a pointwise kernel."""

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        at = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        bt = tl.load(b + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc = tl.dot(at, bt, acc, allow_tf32=False)
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def finish(c, bias, o, n_all, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n_all
    value = tl.load(c + at, mask=mask) + tl.load(bias + at % N, mask=mask)
    tl.store(o + at, (tl.maximum(value, 0.0) / 2.0).to(o.dtype.element_ty), mask=mask)


def kernel_function(x, weight, bias):
    M, K = x.shape
    N = weight.shape[0]
    c = torch.empty((M, N), device=x.device, dtype=torch.float32)
    o = torch.empty((M, N), device=x.device, dtype=x.dtype)
    product[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x, weight, c, M, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
    n_all = M * N
    finish[(triton.cdiv(n_all, 512),)](c, bias, o, n_all, N, BLOCK=512)
    return o
