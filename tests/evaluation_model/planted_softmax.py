"""Softmax kernels, each good or slow in one known way. Texts: they are candidates."""

_HEAD = "import torch, triton\nimport triton.language as tl\n"

_ONE_PASS = (
    _HEAD
    + """
@triton.jit
def one_pass(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + c, mask=c < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + c, e / tl.sum(e, axis=0), mask=c < n)


def kernel_function(x):
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    one_pass[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=block, num_warps=WARPS)
    return out
"""
)

_GRID_STRIDE = (
    _HEAD
    + """
@triton.jit
def grid_stride(x, out, stride, rows, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        v = tl.load(x + row * stride + c, mask=c < n, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * stride + c, e / tl.sum(e, axis=0), mask=c < n)


def kernel_function(x):
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    grid = (min(x.shape[0], PROGRAMS),)
    grid_stride[grid](x, out, x.stride(0), x.shape[0], x.shape[1], BLOCK=block, num_warps=16)
    return out
"""
)

#: Threads side by side walk down rows: each load touches one element of 32 rows.
UNCOALESCED = (
    _HEAD
    + """
@triton.jit
def column_walk(x, out, stride, rows, n, R: tl.constexpr):
    row = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    ok = row < rows
    high = tl.full((R,), -float("inf"), tl.float32)
    total = tl.zeros((R,), tl.float32)
    for c in range(0, n):
        high = tl.maximum(high, tl.load(x + row * stride + c, mask=ok, other=0.0))
    for c in range(0, n):
        total += tl.exp(tl.load(x + row * stride + c, mask=ok, other=0.0) - high)
    for c in range(0, n):
        v = tl.load(x + row * stride + c, mask=ok, other=0.0)
        tl.store(out + row * stride + c, tl.exp(v - high) / total, mask=ok)


def kernel_function(x):
    out = torch.empty_like(x)
    column_walk[(triton.cdiv(x.shape[0], 32),)](x, out, x.stride(0), x.shape[0], x.shape[1], R=32, num_warps=1)
    return out
"""
)

#: A launch for every row.
LAUNCH_PER_ROW = _ONE_PASS.replace(
    "    one_pass[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=block, num_warps=WARPS)\n",
    "    for r in range(x.shape[0]):\n"
    "        one_pass[(1,)](x[r:], out[r:], x.stride(0), x.shape[1], BLOCK=block, num_warps=16)\n",
)

#: A copy by PyTorch before the kernel: one more pass.
COPIED_FIRST = _ONE_PASS.replace(
    "    out = torch.empty_like(x)\n", "    x = x.clone()\n    out = torch.empty_like(x)\n"
)

#: Never ends for the tracer: the loop's end is data.
ENDLESS = _ONE_PASS.replace(
    "    c = tl.arange(0, BLOCK)\n", "    c = tl.arange(0, BLOCK)\n    while n > 0:\n        n += 0\n"
)

#: Does what a program cannot do in a sandbox without dying.
CRASHING = "import os\n" + _ONE_PASS.replace("    out = torch.empty_like(x)\n", "    os.abort()\n")


def one_pass(warps: int = 16) -> str:
    return _ONE_PASS.replace("WARPS", str(warps))


def grid_stride(programs: int) -> str:
    return _GRID_STRIDE.replace("PROGRAMS", str(programs))
