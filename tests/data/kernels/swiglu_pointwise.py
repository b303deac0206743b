"""SwiGLU as a pointwise kernel over a flat range."""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    g = tl.load(x_ptr + offsets, mask=mask)
    u = tl.load(y_ptr + offsets, mask=mask)
    gated = g * u
    e = tl.exp(0.0 - g.to(tl.float32))
    tl.store(out_ptr + offsets, gated / (1.0 + e), mask=mask)


def kernel_function(gate, up):
    out = torch.empty_like(gate)
    n_elements = out.numel()
    swiglu_kernel[(triton.cdiv(n_elements, 1024),)](gate, up, out, n_elements, BLOCK_SIZE=1024)
    return out
