"""Matrix-vector product with a constant for sizes that the tile divides."""

import torch
import triton
import triton.language as tl


@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def gemv(A, X, Y, M, K, stride_am, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_K: tl.constexpr):
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M,), tl.float32)
    for k in range(0, K, BLOCK_K):
        if EVEN_K:
            a = tl.load(A + rm[:, None] * stride_am + (k + rk)[None, :], mask=rm[:, None] < M, other=0.0)
            x = tl.load(X + k + rk)
        else:
            a = tl.load(
                A + rm[:, None] * stride_am + (k + rk)[None, :],
                mask=(rm[:, None] < M) & (k + rk[None, :] < K),
                other=0.0,
            )
            x = tl.load(X + k + rk, mask=k + rk < K, other=0.0)
        acc += tl.sum(a * x[None, :], axis=1)
    tl.store(Y + rm, acc, mask=rm < M)


def kernel_function(matrix, vector):
    M, K = matrix.shape
    y = torch.empty((M,), device=matrix.device, dtype=matrix.dtype)
    grid = lambda META: (triton.cdiv(M, META["BLOCK_M"]),)
    gemv[grid](matrix, vector, y, M, K, matrix.stride(0), BLOCK_M=8, BLOCK_K=128)
    return y
