"""Linear, ReLU and division in a tutorial's persistent matrix product: a loop over tiles around the loop over k."""

import torch
import triton
import triton.language as tl

NUM_SMS = 108


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32}, num_stages=3, num_warps=4),
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 64}, num_stages=2, num_warps=4),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel_persistent(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bn, stride_bk, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_tiles = tl.cdiv(M, BLOCK_M) * num_pid_n
    offs_k = tl.arange(0, BLOCK_K)
    for tile_id in tl.range(tl.program_id(0), num_tiles, tl.num_programs(0)):
        offs_m = (tile_id // num_pid_n) * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = (tile_id % num_pid_n) * BLOCK_N + tl.arange(0, BLOCK_N)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a_ptrs = a_ptr + (offs_m % M)[:, None] * stride_am + (k + offs_k)[None, :] * stride_ak
            b_ptrs = b_ptr + (k + offs_k)[:, None] * stride_bk + (offs_n % N)[None, :] * stride_bn
            a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0.0)
            b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k, other=0.0)
            accumulator = tl.dot(a, b, accumulator, input_precision="ieee")
        bias = tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0)
        c = tl.maximum(accumulator + bias[None, :], 0.0) / 2.0
        c_ptrs = c_ptr + stride_cm * offs_m[:, None] + stride_cn * offs_n[None, :]
        tl.store(c_ptrs, c.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def kernel_function(x, weight, bias):
    M, K = x.shape
    N = weight.shape[0]
    c = torch.empty((M, N), device=x.device, dtype=x.dtype)
    grid = lambda META: (min(NUM_SMS, triton.cdiv(M, META["BLOCK_M"]) * triton.cdiv(N, META["BLOCK_N"])),)
    matmul_kernel_persistent[grid](
        x, weight, bias, c, M, N, K, x.stride(0), x.stride(1), weight.stride(0), weight.stride(1), c.stride(0),
        c.stride(1),
    )  # fmt: skip
    return c
