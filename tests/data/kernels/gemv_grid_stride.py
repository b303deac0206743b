"""Matrix-vector product, rows dealt to a fixed number of programs, as a library's grid-stride loop deals them."""

import torch
import triton
import triton.language as tl


@triton.jit
def gemv_grid_stride_kernel(A, B, C, M, N, stride_am, stride_an, BLOCK_N: tl.constexpr):
    offset_n = tl.arange(0, BLOCK_N)
    for m in range(tl.program_id(0), M, tl.num_programs(0)):
        acc = tl.zeros([BLOCK_N], tl.float32)
        for n in range(0, N, BLOCK_N):
            n_mask = n + offset_n < N
            a = tl.load(A + m * stride_am + (n + offset_n) * stride_an, mask=n_mask, other=0.0).to(tl.float32)
            b = tl.load(B + n + offset_n, mask=n_mask, other=0.0).to(tl.float32)
            acc += a * b
        tl.store(C + m, tl.sum(acc))


def kernel_function(matrix, vector):
    M, N = matrix.shape
    out = torch.empty((M,), device=matrix.device, dtype=matrix.dtype)
    grid = (min(M, 432),)
    gemv_grid_stride_kernel[grid](
        matrix, vector, out, M, N, matrix.stride(0), matrix.stride(1), BLOCK_N=1024, num_warps=4
    )
    return out
