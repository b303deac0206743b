"""SwiGLU in a fused-kernel library's style: a helper for SiLU, one row a program."""

import torch
import triton
import triton.language as tl


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def _swiglu_forward_kernel(a_ptr, b_ptr, c_ptr, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    program_id = tl.program_id(0).to(tl.int64)
    a_ptr += program_id * stride
    b_ptr += program_id * stride
    c_ptr += program_id * stride
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols
    a_row = tl.load(a_ptr + col_offsets, mask=mask, other=0).to(tl.float32)
    b_row = tl.load(b_ptr + col_offsets, mask=mask, other=0)
    c_row = silu(a_row).to(b_row.dtype) * b_row
    tl.store(c_ptr + col_offsets, c_row, mask=mask)


def kernel_function(gate, up):
    n_rows, n_cols = gate.shape
    c = torch.empty_like(gate)
    block = triton.next_power_of_2(n_cols)
    _swiglu_forward_kernel[(n_rows,)](gate, up, c, c.stride(0), n_cols=n_cols, BLOCK_SIZE=block, num_warps=4)
    return c
