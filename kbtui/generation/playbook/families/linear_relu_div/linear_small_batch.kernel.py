"""Linear, ReLU and division for few rows, the answer computed transposed: W x^T, long reads of the weights.

y^T_ji = max(sum_k w_jk x_ik + b_j, 0) / d. Output features lie along the tensor core's 16 rows and the batch along its
8 columns, so that a batch of 1 to 32 wastes little; a program takes a narrow strip of features and all of k in wide
pieces, the weights read once past the cache. Products of fp32 are three TF32 passes (Ootomo and Yokota 2022,
arXiv:2203.03341). Strips are halved until every SM has one.
"""

import torch
import triton
import triton.language as tl

DIVISOR = 2.0
FEATURES = 64
BATCH = 32
K_BYTES = 256
MIN_FEATURES = 16
NUM_WARPS = 4
STAGES = 4
PRECISION = "tf32x3"
WEIGHT_READ = "evict_first"
N_SMS = 132


@triton.jit
def feature_strip(
    x_ptr, weight_ptr, bias_ptr, out_ptr, x_row, x_k, weight_row, weight_k, bias_step, out_row, out_column,
    n_batch, n_in, n_out, divisor: tl.constexpr, FEATURES: tl.constexpr, BATCH: tl.constexpr, BLOCK_K: tl.constexpr,
    EVEN_K: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr, WEIGHT_READ: tl.constexpr,
):  # fmt: skip
    batch_tiles = tl.cdiv(n_batch, BATCH)
    features = (tl.program_id(0) // batch_tiles) * FEATURES + tl.arange(0, FEATURES)
    rows = (tl.program_id(0) % batch_tiles) * BATCH + tl.arange(0, BATCH)
    ks = tl.arange(0, BLOCK_K)
    # Rows and features past the end read others again, so that only k needs a mask.
    weight_ptrs = weight_ptr + (features % n_out).to(tl.int64)[:, None] * weight_row + ks[None, :] * weight_k
    x_ptrs = x_ptr + (rows % n_batch).to(tl.int64)[None, :] * x_row + ks[:, None] * x_k
    products = tl.zeros((FEATURES, BATCH), tl.float32)
    for start in tl.range(0, n_in, BLOCK_K, num_stages=STAGES):
        if EVEN_K:
            w = tl.load(weight_ptrs + start * weight_k, eviction_policy=WEIGHT_READ)
            x = tl.load(x_ptrs + start * x_k, eviction_policy="evict_last")
        else:
            left = n_in - start
            w = tl.load(weight_ptrs + start * weight_k, mask=ks[None, :] < left, other=0.0, eviction_policy=WEIGHT_READ)
            x = tl.load(x_ptrs + start * x_k, mask=ks[:, None] < left, other=0.0, eviction_policy="evict_last")
        products = tl.dot(w, x, products, input_precision=PRECISION)
    bias = tl.load(bias_ptr + features * bias_step, mask=features < n_out, other=0.0).to(tl.float32)
    out = tl.maximum(products + bias[:, None], 0.0) / divisor
    out_ptrs = out_ptr + rows.to(tl.int64)[None, :] * out_row + features[:, None] * out_column
    inside = (features[:, None] < n_out) & (rows[None, :] < n_batch)
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=inside)


def kernel_function(x, weight, bias):
    n_batch, n_in = x.shape
    n_out = weight.shape[0]
    out = torch.empty((n_batch, n_out), dtype=x.dtype, device=x.device)
    batch = min(BATCH, max(8, triton.next_power_of_2(n_batch)))
    batch_tiles = triton.cdiv(n_batch, batch)
    features = min(FEATURES, max(16, triton.next_power_of_2(n_out)))
    while batch_tiles * triton.cdiv(n_out, features) < N_SMS and features > MIN_FEATURES:
        features //= 2
    block_k = min(K_BYTES // x.element_size(), max(16, triton.next_power_of_2(n_in)))
    feature_strip[(batch_tiles * triton.cdiv(n_out, features),)](
        x, weight, bias, out, x.stride(0), x.stride(1), weight.stride(0), weight.stride(1), bias.stride(0),
        out.stride(0), out.stride(1), n_batch, n_in, n_out, DIVISOR,
        FEATURES=features, BATCH=batch, BLOCK_K=block_k, EVEN_K=n_in % block_k == 0, STAGES=STAGES,
        PRECISION=PRECISION, WEIGHT_READ=WEIGHT_READ, num_warps=NUM_WARPS,
    )  # fmt: skip
    return out
