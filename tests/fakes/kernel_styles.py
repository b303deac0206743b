"""Kernels written in styles other than the samples', each with the sample problem whose answer it computes."""

HEADER = "import torch\nimport triton\nimport triton.language as tl\n"

#: Autotuned, grid as a lambda, tile as a keyword.
AUTOTUNED = (
    HEADER
    + """

@triton.autotune(
    configs=[
        triton.Config({"BLOCK_K": 256}, num_warps=2),
        triton.Config({"BLOCK_K": 1024}, num_warps=8, num_stages=2),
    ],
    key=["n_cols"],
)
@triton.jit
def gemv(a, x, y, stride, n_rows, n_cols, BLOCK_K: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK_K,), dtype=tl.float32)
    for k in range(0, n_cols, BLOCK_K):
        offs = k + tl.arange(0, BLOCK_K)
        mask = offs < n_cols
        acc += tl.load(a + row * stride + offs, mask=mask, other=0.0) * tl.load(x + offs, mask=mask, other=0.0)
    tl.store(y + row, tl.sum(acc, axis=0))


def kernel_function(matrix, vector):
    y = torch.empty(matrix.shape[0], device=matrix.device, dtype=matrix.dtype)
    grid = lambda meta: (matrix.shape[0],)
    gemv[grid](matrix, vector, y, matrix.stride(0), *matrix.shape)
    return y
"""
)

#: Two grid axes held in names, sizes positional, tile in a local name, allow_tf32.
NAMED_AXES = (
    HEADER
    + '''

@triton.jit
def linear_kernel(x, w, b, o, M, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One tile of the answer."""
    pid_m = tl.program_id(axis=0)
    pid_n = tl.program_id(axis=1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        inside = rk < K
        xt = tl.load(x + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & inside[None, :], other=0.0)
        wt = tl.load(w + rn[None, :] * K + rk[:, None], mask=(rn[None, :] < N) & inside[:, None], other=0.0)
        acc += tl.dot(xt, wt, allow_tf32=False)
    acc = acc + tl.load(b + rn, mask=rn < N, other=0.0)[None, :]
    acc = tl.where(acc > 0, acc, 0.0) / 2.0
    tl.store(o + rm[:, None] * N + rn[None, :], acc.to(o.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


def kernel_function(x, weight, bias):
    M, K = x.shape
    N = weight.shape[0]
    out = torch.empty((M, N), device=x.device, dtype=x.dtype)
    block = 32
    linear_kernel[(triton.cdiv(M, block), triton.cdiv(N, block))](x, weight, bias, out, M, K, N, block, block, 32)
    return out
'''
)

#: A whole row a program, sizes computed, nothing to scale; two kernels launched one after the other.
TWO_KERNELS = (
    HEADER
    + """

@triton.jit
def row_max(x, m, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + cols, mask=cols < n, other=-float("inf"))
    tl.store(m + row, tl.max(values, axis=0))


@triton.jit
def normalise(x, m, o, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    values = tl.exp(tl.load(x + row * stride + cols, mask=cols < n, other=-float("inf")) - tl.load(m + row))
    tl.store(o + row * stride + cols, values / tl.sum(values, axis=0), mask=cols < n)


def softmax(x):
    n_rows, n_cols = x.shape
    block = triton.next_power_of_2(n_cols)
    m = torch.empty(n_rows, device=x.device, dtype=x.dtype)
    out = torch.empty_like(x)
    warps = 4 if block < 2048 else 16
    row_max[(n_rows,)](x, m, x.stride(0), n_cols, BLOCK=block, num_warps=warps)
    normalise[n_rows,](x, m, out, x.stride(0), n_cols, block, num_warps=8)
    return out


def kernel_function(x):
    return softmax(x)
"""
)

#: KernelBench's form: a module whose forward launches.
AS_MODULE = (
    HEADER
    + """

@triton.jit
def scale(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
"""
)

STYLES = {
    "autotuned": ("mat_vec", AUTOTUNED),
    "named_axes": ("linear_relu_div", NAMED_AXES),
    "two_kernels": ("softmax", TWO_KERNELS),
}
