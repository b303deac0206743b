"""Linear, ReLU and division for answers of few tiles, in one launch: the warps of a program share out k.

y_ij = max(sum_k x_ik w_jk + b_j, 0) / d. A dot with a leading dimension of SLICES gives each warp a slice of k and the
whole tile, so that a tile small enough to give every SM one is still worked on by every tensor core of its SM, no
operand is split or read twice within a program, and chains of dependent products are SLICES times shorter; partial
products are added in shared memory, in an order that does not change. Loads run as far ahead as shared memory holds.
Where tiles of WIDE_M by WIDE_N fill the chip, whole tiles are loaded through tensor descriptors (Hopper's TMA) instead.
Products of fp32 are three TF32 passes (Ootomo and Yokota 2022, arXiv:2203.03341).
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

DIVISOR = 2.0
BLOCK_M = 32
BLOCK_N = 32
MIN_TILE = 512
SLICES = 8
K_BYTES = 128
STAGES = 5
WIDE_STAGES = 4
PRECISION = "tf32x3"
N_SMS = 132
SHARED_BYTES = 232448
ARCH = 90
WIDE_M, WIDE_N, WIDE_K_BYTES, WIDE_GROUP = 128, 256, 128, 8
TRITON_DTYPES = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}


@triton.jit
def sliced_tile(
    x_ptr, weight_ptr, bias_ptr, out_ptr, x_row, x_k, weight_row, weight_k, bias_step, out_row, out_column,
    n_batch, n_in, n_out, slice_k, divisor: tl.constexpr, SLICES: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_K: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    # Rows and columns past the end read the last one again, so that only k needs a mask.
    x_rows = tl.minimum(rows, n_batch - 1).to(tl.int64)[None, :, None]
    weight_rows = tl.minimum(columns, n_out - 1).to(tl.int64)[None, None, :]
    begins = tl.arange(0, SLICES).to(tl.int64)[:, None, None] * slice_k
    x_ks = begins + tl.arange(0, BLOCK_K)[None, None, :]
    weight_ks = begins + tl.arange(0, BLOCK_K)[None, :, None]
    x_ptrs = x_ptr + x_rows * x_row + x_ks * x_k
    weight_ptrs = weight_ptr + weight_rows * weight_row + weight_ks * weight_k
    bias = tl.load(bias_ptr + columns * bias_step, mask=columns < n_out, other=0.0).to(tl.float32)
    products = tl.zeros((SLICES, BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, slice_k, BLOCK_K, num_stages=STAGES):
        if EVEN_K:
            x = tl.load(x_ptrs + start * x_k)
            w = tl.load(weight_ptrs + start * weight_k)
        else:
            x = tl.load(x_ptrs + start * x_k, mask=x_ks < n_in - start, other=0.0)
            w = tl.load(weight_ptrs + start * weight_k, mask=weight_ks < n_in - start, other=0.0)
        products = tl.dot(x, w, products, input_precision=PRECISION)
    out = tl.maximum(tl.sum(products, axis=0) + bias[None, :], 0.0) / divisor
    out_ptrs = out_ptr + rows.to(tl.int64)[:, None] * out_row + columns[None, :] * out_column
    inside = (rows[:, None] < n_batch) & (columns[None, :] < n_out)
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def described_tiles(
    x_desc, weight_desc, bias_ptr, out_desc, bias_step, n_batch, n_in, n_out, divisor: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, STAGES: tl.constexpr,
    PRECISION: tl.constexpr, DTYPE: tl.constexpr,
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
        left, right = tl.split(tl.permute(tl.reshape(out, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1)))
        out_desc.store([row, column], left)
        out_desc.store([row, column + BLOCK_N // 2], right)


def tile_sizes(n_batch, n_out):
    """The largest tile whose half would give an SM two, down to MIN_TILE elements; no wider than the answer needs."""
    block_m = min(BLOCK_M, max(16, triton.next_power_of_2(n_batch)))
    block_n = min(BLOCK_N, max(16, triton.next_power_of_2(n_out)))
    while triton.cdiv(n_batch, block_m) * triton.cdiv(n_out, block_n) * 2 <= N_SMS and block_m * block_n > MIN_TILE:
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
    wide_tiles = triton.cdiv(n_batch, WIDE_M) * triton.cdiv(n_out, WIDE_N)
    described = ARCH >= 90 and can_be_described(x) and can_be_described(weight) and can_be_described(out)
    if described and 2 * wide_tiles > N_SMS:
        block_k = WIDE_K_BYTES // x.element_size()
        described_tiles[(min(wide_tiles, N_SMS),)](
            TensorDescriptor.from_tensor(x, [WIDE_M, block_k]),
            TensorDescriptor.from_tensor(weight, [WIDE_N, block_k]),
            bias,
            TensorDescriptor.from_tensor(out, [WIDE_M, WIDE_N // 2]),
            bias.stride(0), n_batch, n_in, n_out, DIVISOR,
            BLOCK_M=WIDE_M, BLOCK_N=WIDE_N, BLOCK_K=block_k, GROUP=WIDE_GROUP, STAGES=WIDE_STAGES,
            PRECISION=PRECISION, DTYPE=TRITON_DTYPES[x.dtype], num_warps=8,
        )  # fmt: skip
        return out
    block_m, block_n = tile_sizes(n_batch, n_out)
    block_k = min(K_BYTES // x.element_size(), max(16, triton.next_power_of_2(triton.cdiv(n_in, SLICES))))
    slice_k = triton.cdiv(n_in, SLICES * block_k) * block_k
    stage_bytes = SLICES * (block_m + block_n) * block_k * x.element_size()
    # A stage less is held than there are: the last is asked for when the first has been used.
    stages = min(STAGES, 1 + slice_k // block_k, 1 + SHARED_BYTES // stage_bytes)
    sliced_tile[(triton.cdiv(n_batch, block_m), triton.cdiv(n_out, block_n))](
        x, weight, bias, out, x.stride(0), x.stride(1), weight.stride(0), weight.stride(1), bias.stride(0),
        out.stride(0), out.stride(1), n_batch, n_in, n_out, slice_k, DIVISOR,
        SLICES=SLICES, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, EVEN_K=n_in == SLICES * slice_k,
        STAGES=max(2, stages), PRECISION=PRECISION, num_warps=SLICES,
    )  # fmt: skip
    return out
