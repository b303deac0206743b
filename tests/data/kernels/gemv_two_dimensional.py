"""Matrix-vector product over two-dimensional tiles, rows along the grid."""

import torch
import triton
import triton.language as tl


@triton.jit
def mv_kernel(A, B, C, N, M, stride_an, stride_am, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr):
    pid = tl.program_id(0)
    offset_n = pid * BLOCK_N + tl.arange(0, BLOCK_N)[:, None]
    offset_m = tl.arange(0, BLOCK_M)[None, :]
    n_mask = offset_n < N
    acc = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
    for m in range(0, M, BLOCK_M):
        m_mask = m + offset_m < M
        a = tl.load(A + offset_n * stride_an + (m + offset_m) * stride_am, mask=n_mask & m_mask, other=0.0)
        b = tl.load(B + m + offset_m, mask=m_mask, other=0.0)
        acc += a * b
    acc = tl.sum(acc, axis=1)
    tl.store(C + pid * BLOCK_N + tl.arange(0, BLOCK_N), acc, mask=pid * BLOCK_N + tl.arange(0, BLOCK_N) < N)


def kernel_function(matrix, vector):
    N, M = matrix.shape
    out = torch.empty((N,), device=matrix.device, dtype=matrix.dtype)
    mv_kernel[(triton.cdiv(N, 4),)](
        matrix, vector, out, N, M, matrix.stride(0), matrix.stride(1), BLOCK_N=4, BLOCK_M=128
    )
    return out
