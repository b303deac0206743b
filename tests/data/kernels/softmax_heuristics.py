"""Softmax in an operator library's style: heuristics choose the tile."""

import torch
import triton
import triton.language as tl


@triton.heuristics(
    {"TILE_N": lambda args: triton.next_power_of_2(args["N"]), "ONE_TILE": lambda args: args["N"] <= 4096}
)
@triton.jit
def softmax_kernel(output_ptr, input_ptr, M, N, TILE_N: tl.constexpr, ONE_TILE: tl.constexpr):
    pid_m = tl.program_id(0)
    n_offsets = tl.arange(0, TILE_N)
    offset = pid_m * N + n_offsets
    input_ptrs = input_ptr + offset
    mask = n_offsets < N
    inp = tl.load(input_ptrs, mask=mask, other=-float("inf")).to(output_ptr.dtype.element_ty)
    m = tl.max(inp, 0)
    e = tl.exp(inp - m)
    z = tl.sum(e, 0)
    out = e / z
    tl.store(output_ptr + offset, out, mask=mask)


def kernel_function(x):
    M, N = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(M,)](out, x, M, N, num_warps=4)
    return out
