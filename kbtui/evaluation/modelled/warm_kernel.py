"""A small kernel for spares to trace, so that the first candidate's trace is as fast as any."""

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def _scaled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, n):
        x = tl.load(x_ptr + start + offsets, mask=offsets < n, other=0.0).to(tl.float32)
        total += tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + offsets, total / tl.sum(total, axis=0), mask=offsets < n)


def warm_copy(x: torch.Tensor) -> torch.Tensor:
    """x: (n,) -> (n,)."""
    out = torch.empty_like(x)
    _scaled[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
