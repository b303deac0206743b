"""Linear, ReLU and division by tiles of the answer, the epilogue on the tile before it is stored.

y_ij = max(sum_k x_ik w_jk + b_j, 0) / d. A program takes one tile and walks k; programs that run together come from a
group of GROUP rows of tiles, so that they find each other's operands in L2 (the order of Triton's matrix product
tutorial). Products of fp32 are three TF32 passes (Ootomo and Yokota 2022, arXiv:2203.03341), sums are fp32. Tiles are
halved until every SM has one.
"""

import torch
import triton
import triton.language as tl

DIVISOR = 2.0
BLOCK_M = 128
BLOCK_N = 128
K_BYTES = 128
MIN_TILE = 1024
GROUP = 8
NUM_WARPS = 8
STAGES = 3
PRECISION = "tf32x3"
N_SMS = 132


@triton.jit
def product_tile(
    x_ptr, weight_ptr, bias_ptr, out_ptr, x_row, x_k, weight_row, weight_k, bias_step, out_row, out_column,
    n_batch, n_in, n_out, divisor: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, EVEN_K: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(n_batch, BLOCK_M)
    tiles_n = tl.cdiv(n_out, BLOCK_N)
    pid = tl.program_id(0)
    tile_m, tile_n = tl.swizzle2d(pid // tiles_n, pid % tiles_n, tiles_m, tiles_n, GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    # Rows and columns past the end read others again, so that only k needs a mask.
    x_ptrs = x_ptr + (rows % n_batch).to(tl.int64)[:, None] * x_row + ks[None, :] * x_k
    weight_ptrs = weight_ptr + (columns % n_out).to(tl.int64)[None, :] * weight_row + ks[:, None] * weight_k
    products = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, n_in, BLOCK_K, num_stages=STAGES):
        if EVEN_K:
            x = tl.load(x_ptrs)
            w = tl.load(weight_ptrs)
        else:
            x = tl.load(x_ptrs, mask=ks[None, :] < n_in - start, other=0.0)
            w = tl.load(weight_ptrs, mask=ks[:, None] < n_in - start, other=0.0)
        products = tl.dot(x, w, products, input_precision=PRECISION)
        x_ptrs += BLOCK_K * x_k
        weight_ptrs += BLOCK_K * weight_k
    bias = tl.load(bias_ptr + columns * bias_step, mask=columns < n_out, other=0.0).to(tl.float32)
    out = tl.maximum(products + bias[None, :], 0.0) / divisor
    out_ptrs = out_ptr + rows.to(tl.int64)[:, None] * out_row + columns[None, :] * out_column
    inside = (rows[:, None] < n_batch) & (columns[None, :] < n_out)
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=inside)


def tile_sizes(n_batch, n_out):
    """The largest tile that leaves no SM without one, down to MIN_TILE elements; no wider than the answer needs."""
    block_m = min(BLOCK_M, max(16, triton.next_power_of_2(n_batch)))
    block_n = min(BLOCK_N, max(16, triton.next_power_of_2(n_out)))
    while triton.cdiv(n_batch, block_m) * triton.cdiv(n_out, block_n) < N_SMS and block_m * block_n > MIN_TILE:
        block_m, block_n = (block_m // 2, block_n) if block_m >= block_n else (block_m, block_n // 2)
    return block_m, block_n


def kernel_function(x, weight, bias):
    n_batch, n_in = x.shape
    n_out = weight.shape[0]
    out = torch.empty((n_batch, n_out), dtype=x.dtype, device=x.device)
    block_m, block_n = tile_sizes(n_batch, n_out)
    block_k = min(K_BYTES // x.element_size(), max(16, triton.next_power_of_2(n_in)))
    product_tile[(triton.cdiv(n_batch, block_m) * triton.cdiv(n_out, block_n),)](
        x, weight, bias, out, x.stride(0), x.stride(1), weight.stride(0), weight.stride(1), bias.stride(0),
        out.stride(0), out.stride(1), n_batch, n_in, n_out, DIVISOR,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=GROUP, EVEN_K=n_in % block_k == 0, STAGES=STAGES,
        PRECISION=PRECISION, num_warps=min(NUM_WARPS, max(2, block_m * block_n // 1024)),
    )  # fmt: skip
    return out
