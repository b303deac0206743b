"""Matrix-vector product, one row a program, a sum a lane."""

import torch
import triton
import triton.language as tl


@triton.jit
def gemv(a_ptr, x_ptr, y_ptr, K, BLOCK_K: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK_K,), tl.float32)
    for k in range(0, K, BLOCK_K):
        offs = k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + row * K + offs, mask=offs < K, other=0.0)
        x = tl.load(x_ptr + offs, mask=offs < K, other=0.0)
        acc += a * x
    tl.store(y_ptr + row, tl.sum(acc, axis=0))


def kernel_function(matrix, vector):
    M, K = matrix.shape
    y = torch.empty(M, device=matrix.device, dtype=matrix.dtype)
    gemv[(M,)](matrix, vector, y, K, BLOCK_K=512, num_warps=4)
    return y
