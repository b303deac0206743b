"""Linear, ReLU and division by persistent programs that load whole tiles through tensor descriptors (Hopper's TMA).

y_ij = max(sum_k x_ik w_jk + b_j, 0) / d. One thread asks for a tile and the copy engine brings it to shared memory,
bounds included, so that no registers hold addresses and none are masked; each program loops over tiles, and the loads
of the next are in flight during the epilogue, which is stored in EPILOGUE_PARTS pieces (Triton's persistent matrix
product tutorial). Where the chip has no such engine (ARCH below 90) or a row does not begin at a multiple of 16 bytes,
tiles are loaded through pointers. Products of fp32 are three TF32 passes (Ootomo and Yokota 2022, arXiv:2203.03341).
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

DIVISOR = 2.0
BLOCK_M = 128
BLOCK_N = 256
K_BYTES = 128
MIN_TILE = 1024
GROUP = 8
NUM_WARPS = 8
STAGES = 3
PROGRAMS_PER_SM = 1
EPILOGUE_PARTS = 2
PRECISION = "tf32x3"
N_SMS = 132
ARCH = 90
TRITON_DTYPES = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}


@triton.jit
def described_tiles(
    x_desc, weight_desc, bias_ptr, out_desc, bias_step, n_batch, n_in, n_out, divisor: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, STAGES: tl.constexpr,
    PARTS: tl.constexpr, PRECISION: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(n_batch, BLOCK_M)
    tiles_n = tl.cdiv(n_out, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        tile_m, tile_n = tl.swizzle2d(tile // tiles_n, tile % tiles_n, tiles_m, tiles_n, GROUP)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        products = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in tl.range(0, n_in, BLOCK_K, num_stages=STAGES):
            x = x_desc.load([row, start])
            w = weight_desc.load([column, start])
            products = tl.dot(x, w.T, products, input_precision=PRECISION)
        columns = column + tl.arange(0, BLOCK_N)
        bias = tl.load(bias_ptr + columns * bias_step, mask=columns < n_out, other=0.0).to(tl.float32)
        out = (tl.maximum(products + bias[None, :], 0.0) / divisor).to(DTYPE)
        if PARTS == 2:
            halves = tl.permute(tl.reshape(out, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
            left, right = tl.split(halves)
            out_desc.store([row, column], left)
            out_desc.store([row, column + BLOCK_N // 2], right)
        else:
            out_desc.store([row, column], out)


@triton.jit
def pointed_tiles(
    x_ptr, weight_ptr, bias_ptr, out_ptr, x_row, x_k, weight_row, weight_k, bias_step, out_row, out_column,
    n_batch, n_in, n_out, divisor: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(n_batch, BLOCK_M)
    tiles_n = tl.cdiv(n_out, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        tile_m, tile_n = tl.swizzle2d(tile // tiles_n, tile % tiles_n, tiles_m, tiles_n, GROUP)
        rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        x_ptrs = x_ptr + (rows % n_batch).to(tl.int64)[:, None] * x_row + ks[None, :] * x_k
        weight_ptrs = weight_ptr + (columns % n_out).to(tl.int64)[None, :] * weight_row + ks[:, None] * weight_k
        products = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in tl.range(0, n_in, BLOCK_K, num_stages=STAGES):
            x = tl.load(x_ptrs + start * x_k, mask=ks[None, :] < n_in - start, other=0.0)
            w = tl.load(weight_ptrs + start * weight_k, mask=ks[:, None] < n_in - start, other=0.0)
            products = tl.dot(x, w, products, input_precision=PRECISION)
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


def can_be_described(tensor):
    """Whether a tensor descriptor may be made: unit stride inside, rows that begin at multiples of 16 bytes."""
    row_bytes = tensor.stride(0) * tensor.element_size()
    return tensor.stride(1) == 1 and row_bytes > 0 and row_bytes % 16 == 0 and tensor.data_ptr() % 16 == 0


def kernel_function(x, weight, bias):
    n_batch, n_in = x.shape
    n_out = weight.shape[0]
    out = torch.empty((n_batch, n_out), dtype=x.dtype, device=x.device)
    block_m, block_n = tile_sizes(n_batch, n_out)
    block_k = K_BYTES // x.element_size()
    n_tiles = triton.cdiv(n_batch, block_m) * triton.cdiv(n_out, block_n)
    grid = (min(n_tiles, N_SMS * PROGRAMS_PER_SM),)
    warps = min(NUM_WARPS, max(4, block_m * block_n // 1024))
    if ARCH >= 90 and can_be_described(x) and can_be_described(weight) and can_be_described(out):
        parts = EPILOGUE_PARTS if block_n >= 64 else 1
        described_tiles[grid](
            TensorDescriptor.from_tensor(x, [block_m, block_k]),
            TensorDescriptor.from_tensor(weight, [block_n, block_k]),
            bias,
            TensorDescriptor.from_tensor(out, [block_m, block_n // parts]),
            bias.stride(0), n_batch, n_in, n_out, DIVISOR,
            BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=GROUP, STAGES=STAGES, PARTS=parts,
            PRECISION=PRECISION, DTYPE=TRITON_DTYPES[x.dtype], num_warps=warps,
        )  # fmt: skip
        return out
    pointed_tiles[grid](
        x, weight, bias, out, x.stride(0), x.stride(1), weight.stride(0), weight.stride(1), bias.stride(0),
        out.stride(0), out.stride(1), n_batch, n_in, n_out, DIVISOR,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=GROUP, STAGES=STAGES, PRECISION=PRECISION,
        num_warps=warps,
    )  # fmt: skip
    return out
