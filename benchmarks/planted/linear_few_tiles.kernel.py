"""Slow because the answer has eight tiles of 128 by 128: 124 of 132 SMs get none, and k is long."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_tile(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_batch, n_in, n_out, divisor,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rows.to(tl.int64)[:, None] * n_in + ks[None, :]
    weight_ptrs = weight_ptr + columns.to(tl.int64)[None, :] * n_in + ks[:, None]
    products = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, n_in, BLOCK_K):
        x = tl.load(x_ptrs + start, mask=(rows[:, None] < n_batch) & (start + ks[None, :] < n_in), other=0.0)
        w = tl.load(weight_ptrs + start, mask=(columns[None, :] < n_out) & (start + ks[:, None] < n_in), other=0.0)
        products = tl.dot(x, w, products, input_precision="ieee")
    bias = tl.load(bias_ptr + columns, mask=columns < n_out, other=0.0).to(tl.float32)
    out = tl.maximum(products + bias[None, :], 0.0) / divisor
    out_ptrs = out_ptr + rows.to(tl.int64)[:, None] * n_out + columns[None, :]
    inside = (rows[:, None] < n_batch) & (columns[None, :] < n_out)
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=inside)


def kernel_function(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    n_batch, n_in = x.shape
    n_out = weight.shape[0]
    out = torch.empty((n_batch, n_out), device=x.device, dtype=x.dtype)
    block_m, block_n, block_k = 128, 128, 64
    grid = (triton.cdiv(n_batch, block_m), triton.cdiv(n_out, block_n))
    linear_tile[grid](
        x, weight, bias, out, n_batch, n_in, n_out, 2.0,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=8, num_stages=3,
    )  # fmt: skip
    return out
