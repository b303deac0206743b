"""Sources of the recorded run's candidates: plain softmax kernels in several structures."""

_HEAD = '''"""Row softmax: y[i, j] = exp(x[i, j] - max_j x[i, :]) / sum_j exp(x[i, :] - max_j x[i, :])."""

import torch
import triton
import triton.language as tl

'''

_ONE_ROW = """
@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride_x, stride_y, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf"){evict})
    x = x - tl.max(x, axis=0)
    e = {exp}
    y = e / tl.sum(e, axis=0)
    tl.store(y_ptr + row * stride_y + cols, y, mask=mask)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(n_cols)
    softmax_kernel[(n_rows,)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=block, num_warps={warps})
    return y
"""

_ROWS = """
@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride_x, stride_y, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=-float("inf"){evict})
    x = x - tl.max(x, axis=1)[:, None]
    e = {exp}
    y = e / tl.sum(e, axis=1)[:, None]
    tl.store(y_ptr + rows[:, None] * stride_y + cols[None, :], y, mask=mask)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(n_cols)
    grid = (triton.cdiv(n_rows, {rows}),)
    softmax_kernel[grid](x, y, x.stride(0), y.stride(0), n_rows, n_cols, ROWS={rows}, BLOCK=block, num_warps={warps})
    return y
"""

_ONLINE = """
@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride_x, stride_y, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    high = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, n_cols, BLOCK, num_stages={stages}):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < n_cols, other=-float("inf"))
        new = tl.maximum(high, x)
        total = total * tl.exp(high - new) + tl.exp(x - new)
        high = new
    top = tl.max(high, axis=0)
    norm = tl.sum(total * tl.exp(high - top), axis=0)
    for start in tl.range(0, n_cols, BLOCK, num_stages={stages}):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < n_cols, other=-float("inf"){evict})
        tl.store(y_ptr + row * stride_y + cols, tl.exp(x - top) / norm, mask=cols < n_cols)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(n_rows,)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK={block}, num_warps={warps})
    return y
"""

_BODIES = {"one_row": _ONE_ROW, "rows": _ROWS, "online": _ONLINE}


def source(
    structure: str,
    warps: int = 8,
    stages: int = 2,
    rows: int = 2,
    block: int = 4096,
    exp2: bool = False,
    evict: bool = False,
) -> str:
    """A softmax kernel of a structure (``one_row``, ``rows``, ``online``) with the given constants."""
    body = _BODIES[structure]
    values = {
        "{warps}": str(warps),
        "{stages}": str(stages),
        "{rows}": str(rows),
        "{block}": str(block),
        "{exp}": "tl.exp2(x * 1.4426950408889634)" if exp2 else "tl.exp(x)",
        "{evict}": ', eviction_policy="evict_first"' if evict else "",
    }
    for name, value in values.items():
        body = body.replace(name, value)
    return _HEAD + body
