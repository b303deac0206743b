"""Linear, ReLU and division with k split among programs and among their warps; the second kernel starts early.

y_ij = max(sum_p sum_{k in part p} x_ik w_jk + b_j, 0) / d. Program (tile, part) takes one part of k, its warps a slice
of the part each, as a dot with a leading dimension; the slices are added in shared memory, the parts by the second
kernel, in order. Splitting lets a tile be larger, so that less is read from L2, and still gives every SM
PROGRAMS_PER_SM programs. The second kernel is launched as a dependent (Hopper's programmatic launch, PTX
griddepcontrol): its programs are placed, and the bias is read, while the first still runs; they wait for its writes.
Products of fp32 are three TF32 passes (Ootomo and Yokota 2022, arXiv:2203.03341).
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

DIVISOR = 2.0
BLOCK_M = 32
BLOCK_N = 64
SLICES = 8
K_BYTES = 64
STAGES = 4
PROGRAMS_PER_SM = 1
ADDED_AT_ONCE = 512
PRECISION = "tf32x3"
N_SMS = 132
SHARED_BYTES = 232448
ARCH = 90


@triton.jit
def sliced_part(
    x_ptr, weight_ptr, partial_ptr, x_row, x_k, weight_row, weight_k, n_batch, n_in, n_out, slice_k,
    SLICES: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_K: tl.constexpr,
    STAGES: tl.constexpr, PRECISION: tl.constexpr, OVERLAPPED: tl.constexpr,
):  # fmt: skip
    if OVERLAPPED:
        gdc_launch_dependents()
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    part = tl.program_id(2)
    # Rows and columns past the end read the last one again, so that only k needs a mask.
    x_rows = tl.minimum(rows, n_batch - 1).to(tl.int64)[None, :, None]
    weight_rows = tl.minimum(columns, n_out - 1).to(tl.int64)[None, None, :]
    begins = (part * SLICES + tl.arange(0, SLICES)).to(tl.int64)[:, None, None] * slice_k
    x_ks = begins + tl.arange(0, BLOCK_K)[None, None, :]
    weight_ks = begins + tl.arange(0, BLOCK_K)[None, :, None]
    x_ptrs = x_ptr + x_rows * x_row + x_ks * x_k
    weight_ptrs = weight_ptr + weight_rows * weight_row + weight_ks * weight_k
    products = tl.zeros((SLICES, BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, slice_k, BLOCK_K, num_stages=STAGES):
        if EVEN_K:
            x = tl.load(x_ptrs + start * x_k)
            w = tl.load(weight_ptrs + start * weight_k)
        else:
            x = tl.load(x_ptrs + start * x_k, mask=x_ks < n_in - start, other=0.0)
            w = tl.load(weight_ptrs + start * weight_k, mask=weight_ks < n_in - start, other=0.0)
        products = tl.dot(x, w, products, input_precision=PRECISION)
    partial_ptrs = partial_ptr + (part * n_batch + rows).to(tl.int64)[:, None] * n_out + columns[None, :]
    tl.store(partial_ptrs, tl.sum(products, axis=0), mask=(rows[:, None] < n_batch) & (columns[None, :] < n_out))


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
    tiles_m, tiles_n = triton.cdiv(n_batch, block_m), triton.cdiv(n_out, block_n)
    wanted_parts = max(1, N_SMS * PROGRAMS_PER_SM // (tiles_m * tiles_n))
    widest_slice = triton.cdiv(n_in, wanted_parts * SLICES)
    block_k = min(K_BYTES // x.element_size(), max(16, triton.next_power_of_2(widest_slice)))
    slice_k = triton.cdiv(widest_slice, block_k) * block_k
    n_parts = triton.cdiv(n_in, SLICES * slice_k)
    stage_bytes = SLICES * (block_m + block_n) * block_k * x.element_size()
    # A stage less is held than there are: the last is asked for when the first has been used.
    stages = min(STAGES, 1 + slice_k // block_k, 1 + SHARED_BYTES // (PROGRAMS_PER_SM * stage_bytes))
    overlapped = ARCH >= 90 and x.is_cuda
    partial = torch.empty((n_parts, n_batch, n_out), dtype=torch.float32, device=x.device)
    sliced_part[(tiles_m, tiles_n, n_parts)](
        x, weight, partial, x.stride(0), x.stride(1), weight.stride(0), weight.stride(1), n_batch, n_in, n_out, slice_k,
        SLICES=SLICES, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, EVEN_K=n_in == n_parts * SLICES * slice_k,
        STAGES=max(2, stages), PRECISION=PRECISION, OVERLAPPED=overlapped, num_warps=SLICES,
    )  # fmt: skip
    added = min(ADDED_AT_ONCE, triton.next_power_of_2(n_out))
    early = {"launch_pdl": True} if overlapped else {}
    add_parts[(n_batch, triton.cdiv(n_out, added))](
        partial, bias, out, bias.stride(0), n_batch * n_out, n_out, DIVISOR, N_PARTS=n_parts,
        ADDED_AT_ONCE=added, OVERLAPPED=overlapped, num_warps=max(1, added // 64), **early,
    )  # fmt: skip
    return out
