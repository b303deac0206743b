"""Matrix-vector product, its tile autotuned."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK_K": 256}, num_warps=2), triton.Config({"BLOCK_K": 1024}, num_warps=8)], key=["K"]
)
@triton.jit
def gemv(a_ptr, x_ptr, y_ptr, K, BLOCK_K: tl.constexpr):
    row = tl.program_id(0)
    acc = 0.0
    for k in range(0, K, BLOCK_K):
        offs = k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + row * K + offs, mask=offs < K, other=0.0)
        x = tl.load(x_ptr + offs, mask=offs < K, other=0.0)
        acc += tl.sum(a * x, axis=0)
    tl.store(y_ptr + row, acc)


def kernel_function(matrix, vector):
    M, K = matrix.shape
    y = torch.empty(M, device=matrix.device, dtype=matrix.dtype)
    gemv[(M,)](matrix, vector, y, K)
    return y
