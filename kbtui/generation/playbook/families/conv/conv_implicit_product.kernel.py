"""Grouped convolution as a matrix product whose left operand is gathered as it is needed (implicit im2col).

y[p, o] = sum_k X[p, k] W[k, o], k = (input channel, tap) in the order of the weights, X[p, k] = x[channel, p + tap]: no
patch is ever written to memory (Chetlur et al. 2014, arXiv:1410.0759). Tensor cores: for fp32 in three TF32 passes
(Ootomo and Yokota 2022, arXiv:2203.03341), sums in fp32. Pays where a group has channels enough to fill a tile.
"""

import torch
import triton
import triton.language as tl

STRIDE = 1
PADDING = 1
DILATION = 1
PIXELS = 128
OUT_CHANNELS = 64
BLOCK_K = 32
NUM_WARPS = 4
STAGES = 2
PRECISION = "tf32x3"


@triton.jit
def gathered_product(
    x_ptr, weight_ptr, out_ptr, x_image, x_channel, x_row, x_column, w_out, w_in, w_y, w_x,
    out_image, out_channel, out_row, out_column, height, width, out_w, n_pixels, n_groups, in_per_group, out_per_group,
    n_out_tiles, n_tiles, OUT: tl.constexpr, PIXELS: tl.constexpr, BLOCK_K: tl.constexpr, KERNEL_H: tl.constexpr,
    KERNEL_W: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, DILATION: tl.constexpr,
    STAGES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % n_tiles
    out_tile = (tl.program_id(0) // n_tiles) % n_out_tiles
    plane = tl.program_id(0) // (n_tiles * n_out_tiles)
    group = plane % n_groups
    image = (plane // n_groups).to(tl.int64)
    pixels = tile * PIXELS + tl.arange(0, PIXELS)
    rows, columns = (pixels // out_w)[:, None], (pixels % out_w)[:, None]
    outs = out_tile * OUT + tl.arange(0, OUT)
    x_group = x_ptr + image * x_image + (group * in_per_group).to(tl.int64) * x_channel
    w_columns = weight_ptr + (group * out_per_group + outs)[None, :] * w_out
    n_k = in_per_group * KERNEL_H * KERNEL_W
    total = tl.zeros((PIXELS, OUT), tl.float32)
    for start in tl.range(0, n_k, BLOCK_K, num_stages=STAGES):
        ks = start + tl.arange(0, BLOCK_K)
        channel, tap = ks // (KERNEL_H * KERNEL_W), ks % (KERNEL_H * KERNEL_W)
        dy, dx = tap // KERNEL_W, tap % KERNEL_W
        y = rows * STRIDE + (dy * DILATION)[None, :] - PADDING
        x = columns * STRIDE + (dx * DILATION)[None, :] - PADDING
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & (ks < n_k)[None, :] & (pixels < n_pixels)[:, None]
        patches = tl.load(x_group + channel[None, :] * x_channel + y * x_row + x * x_column, mask=inside, other=0.0)
        w_mask = (ks < n_k)[:, None] & (outs < out_per_group)[None, :]
        w = tl.load(w_columns + (channel * w_in + dy * w_y + dx * w_x)[:, None], mask=w_mask, other=0.0)
        total = tl.dot(patches, w, total, input_precision=PRECISION)
    out_start = out_ptr + image * out_image + (group * out_per_group).to(tl.int64) * out_channel
    out_ptrs = out_start + outs[None, :] * out_channel + rows * out_row + columns * out_column
    mask = (pixels < n_pixels)[:, None] & (outs < out_per_group)[None, :]
    tl.store(out_ptrs, total.to(out_ptr.dtype.element_ty), mask=mask)


def sizes_of(x, weight):
    """Images, channels, output size, kernel size and the group's channels."""
    n_images, c_in, height, width = x.shape
    c_out, in_per_group, kernel_h, kernel_w = weight.shape
    out_h = (height + 2 * PADDING - DILATION * (kernel_h - 1) - 1) // STRIDE + 1
    out_w = (width + 2 * PADDING - DILATION * (kernel_w - 1) - 1) // STRIDE + 1
    return n_images, height, width, c_out, c_in // in_per_group, out_h, out_w, kernel_h, kernel_w


def kernel_function(x, weight):
    n_images, height, width, c_out, n_groups, out_h, out_w, kernel_h, kernel_w = sizes_of(x, weight)
    out = torch.empty((n_images, c_out, out_h, out_w), dtype=x.dtype, device=x.device)
    out_per_group, in_per_group = c_out // n_groups, weight.shape[1]
    outs = min(OUT_CHANNELS, max(16, triton.next_power_of_2(out_per_group)))
    pixels = min(PIXELS, max(16, triton.next_power_of_2(out_h * out_w)))
    n_out_tiles, n_tiles = triton.cdiv(out_per_group, outs), triton.cdiv(out_h * out_w, pixels)
    gathered_product[(n_images * n_groups * n_out_tiles * n_tiles,)](
        x, weight, out, *x.stride(), *weight.stride(), *out.stride(), height, width, out_w, out_h * out_w, n_groups,
        in_per_group, out_per_group, n_out_tiles, n_tiles, OUT=outs, PIXELS=pixels, BLOCK_K=BLOCK_K, KERNEL_H=kernel_h,
        KERNEL_W=kernel_w, STRIDE=STRIDE, PADDING=PADDING, DILATION=DILATION, STAGES=STAGES, PRECISION=PRECISION,
        num_warps=NUM_WARPS,
    )  # fmt: skip
    return out
