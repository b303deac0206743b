"""Matrix-vector product in a library's form: a block of rows by a block of columns, added up along the columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def mv_kernel(A, B, C, N, M, stride_an, stride_am, stride_bm, stride_cn, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr):
    pid = tl.program_id(0)
    rows = pid * BLOCK_N + tl.arange(0, BLOCK_N)
    offset_n = rows[:, None]
    offset_m = tl.arange(0, BLOCK_M)[None, :]
    n_mask = offset_n < N
    acc = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
    for m in range(0, M, BLOCK_M):
        m_mask = m + offset_m < M
        a = tl.load(A + offset_n * stride_an + (m + offset_m) * stride_am, mask=n_mask & m_mask, other=0.0)
        b = tl.load(B + (m + offset_m) * stride_bm, mask=m_mask, other=0.0)
        acc += a.to(tl.float32) * b.to(tl.float32)
    total = tl.sum(acc, axis=1)
    tl.store(C + rows * stride_cn, total, mask=rows < N)


def kernel_function(matrix, vector):
    N, M = matrix.shape
    out = torch.empty((N,), device=matrix.device, dtype=matrix.dtype)
    mv_kernel[(triton.cdiv(N, 8),)](
        matrix, vector, out, N, M, matrix.stride(0), matrix.stride(1), vector.stride(0), out.stride(0),
        BLOCK_N=8, BLOCK_M=256, num_warps=4,
    )  # fmt: skip
    return out
