"""Linear, ReLU and division with the long dimension split among programs, partial products added in a second kernel.

y_ij = max(sum_p sum_{k in part p} x_ik w_jk + b_j, 0) / d. As many parts as give every SM PROGRAMS_PER_SM programs,
whole tiles of k each, for answers of few tiles; the second kernel adds the parts in order, so that every call gives the
same bits, and does the epilogue. On Hopper it is launched as a dependent (PTX griddepcontrol): its programs are placed
while the first kernel still runs, and wait for its writes. Products of fp32 are three TF32 passes (Ootomo and Yokota
2022, arXiv:2203.03341).
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

DIVISOR = 2.0
BLOCK_M = 64
BLOCK_N = 64
K_BYTES = 128
NUM_WARPS = 8
STAGES = 3
PROGRAMS_PER_SM = 2
ADDED_AT_ONCE = 1024
PRECISION = "tf32x3"
N_SMS = 132
ARCH = 90


@triton.jit
def product_part(
    x_ptr, weight_ptr, partial_ptr, x_row, x_k, weight_row, weight_k, n_batch, n_in, n_out, part_k, n_parts,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
    PRECISION: tl.constexpr, OVERLAPPED: tl.constexpr,
):  # fmt: skip
    if OVERLAPPED:
        gdc_launch_dependents()
    tiles_n = tl.cdiv(n_out, BLOCK_N)
    part = tl.program_id(0) % n_parts
    tile = tl.program_id(0) // n_parts
    rows = (tile // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (tile % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    # Rows and columns past the end read others again, so that only k needs a mask.
    x_ptrs = x_ptr + (rows % n_batch).to(tl.int64)[:, None] * x_row + ks[None, :] * x_k
    weight_ptrs = weight_ptr + (columns % n_out).to(tl.int64)[None, :] * weight_row + ks[:, None] * weight_k
    stop = tl.minimum((part + 1) * part_k, n_in)
    products = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(part * part_k, stop, BLOCK_K, num_stages=STAGES):
        x = tl.load(x_ptrs + start * x_k, mask=ks[None, :] < stop - start, other=0.0)
        w = tl.load(weight_ptrs + start * weight_k, mask=ks[:, None] < stop - start, other=0.0)
        products = tl.dot(x, w, products, input_precision=PRECISION)
    partial_ptrs = partial_ptr + (part * n_batch + rows).to(tl.int64)[:, None] * n_out + columns[None, :]
    tl.store(partial_ptrs, products, mask=(rows[:, None] < n_batch) & (columns[None, :] < n_out))


@triton.jit
def add_parts(
    partial_ptr, bias_ptr, out_ptr, bias_step, n_all, n_out, divisor: tl.constexpr, N_PARTS: tl.constexpr,
    ADDED_AT_ONCE: tl.constexpr, OVERLAPPED: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(1) * ADDED_AT_ONCE + tl.arange(0, ADDED_AT_ONCE)
    mask = columns < n_out
    at = tl.program_id(0).to(tl.int64) * n_out + columns
    total = tl.load(bias_ptr + columns * bias_step, mask=mask, other=0.0).to(tl.float32)
    if OVERLAPPED:
        gdc_wait()
    for part in range(N_PARTS):
        total += tl.load(partial_ptr + tl.cast(part, tl.int64) * n_all + at, mask=mask, other=0.0)
    tl.store(out_ptr + at, (tl.maximum(total, 0.0) / divisor).to(out_ptr.dtype.element_ty), mask=mask)


def kernel_function(x, weight, bias):
    n_batch, n_in = x.shape
    n_out = weight.shape[0]
    out = torch.empty((n_batch, n_out), dtype=x.dtype, device=x.device)
    block_m = min(BLOCK_M, max(16, triton.next_power_of_2(n_batch)))
    block_n = min(BLOCK_N, max(16, triton.next_power_of_2(n_out)))
    block_k = min(K_BYTES // x.element_size(), max(16, triton.next_power_of_2(n_in)))
    n_tiles = triton.cdiv(n_batch, block_m) * triton.cdiv(n_out, block_n)
    wanted_parts = max(1, N_SMS * PROGRAMS_PER_SM // n_tiles)
    part_k = triton.cdiv(triton.cdiv(n_in, wanted_parts), block_k) * block_k
    n_parts = triton.cdiv(n_in, part_k)
    overlapped = ARCH >= 90 and x.is_cuda
    partial = torch.empty((n_parts, n_batch, n_out), dtype=torch.float32, device=x.device)
    product_part[(n_tiles * n_parts,)](
        x, weight, partial, x.stride(0), x.stride(1), weight.stride(0), weight.stride(1), n_batch, n_in, n_out,
        part_k, n_parts, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, STAGES=STAGES, PRECISION=PRECISION,
        OVERLAPPED=overlapped, num_warps=min(NUM_WARPS, max(2, block_m * block_n // 512)),
    )  # fmt: skip
    added = min(ADDED_AT_ONCE, triton.next_power_of_2(n_out))
    early = {"launch_pdl": True} if overlapped else {}
    add_parts[(n_batch, triton.cdiv(n_out, added))](
        partial, bias, out, bias.stride(0), n_batch * n_out, n_out, DIVISOR, N_PARTS=n_parts,
        ADDED_AT_ONCE=added, OVERLAPPED=overlapped, num_warps=max(1, added // 64), **early,
    )  # fmt: skip
    return out
