"""Grouped convolution over channels-last copies: channels side by side in memory, one matrix product a tap.

y[p, o] = sum_t sum_i X[p + t, i] W[t, i, o]: x is laid out as (image, row, column, channel) by a kernel of its own,
unless it lies so already, so that the channels of a pixel are read as one piece and no index is divided in the loop
(the layout cuDNN's tensor-core kernels want). Tensor cores: for fp32 in three TF32 passes (Ootomo and Yokota 2022,
arXiv:2203.03341), sums in fp32. Pays where a group has many channels.
"""

import torch
import triton
import triton.language as tl

STRIDE = 1
PADDING = 1
DILATION = 1
PIXELS = 128
OUT_CHANNELS = 64
IN_CHANNELS = 32
NUM_WARPS = 4
STAGES = 3
COPIED_PIXELS = 64
PRECISION = "tf32x3"


@triton.jit
def lay_channels_last(
    x_ptr, copy_ptr, x_image, x_channel, x_row, x_column, width, n_pixels, n_channels, n_tiles, n_channel_tiles,
    PIXELS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    pixels = (tl.program_id(0) % n_tiles) * PIXELS + tl.arange(0, PIXELS)
    channels = ((tl.program_id(0) // n_tiles) % n_channel_tiles) * CHANNELS + tl.arange(0, CHANNELS)
    image = (tl.program_id(0) // (n_tiles * n_channel_tiles)).to(tl.int64)
    at = (pixels // width) * x_row + (pixels % width) * x_column
    mask = (channels < n_channels)[:, None] & (pixels < n_pixels)[None, :]
    x_ptrs = x_ptr + image * x_image + channels.to(tl.int64)[:, None] * x_channel + at[None, :]
    x = tl.load(x_ptrs, mask=mask, other=0.0)
    copy_ptrs = copy_ptr + (image * n_pixels + pixels)[:, None] * n_channels + channels[None, :]
    tl.store(copy_ptrs, tl.trans(x), mask=tl.trans(mask))


@triton.jit
def product_of_taps(
    x_ptr, weight_ptr, out_ptr, x_image, x_channel, x_row, x_column, w_out, w_in, w_y, w_x,
    out_image, out_channel, out_row, out_column, height, width, out_w, n_pixels, n_groups, in_per_group, out_per_group,
    n_out_tiles, n_tiles, OUT: tl.constexpr, PIXELS: tl.constexpr, IN: tl.constexpr, KERNEL_H: tl.constexpr,
    KERNEL_W: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, DILATION: tl.constexpr,
    STAGES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % n_tiles
    out_tile = (tl.program_id(0) // n_tiles) % n_out_tiles
    plane = tl.program_id(0) // (n_tiles * n_out_tiles)
    group = plane % n_groups
    image = (plane // n_groups).to(tl.int64)
    pixels = tile * PIXELS + tl.arange(0, PIXELS)
    rows, columns = pixels // out_w, pixels % out_w
    outs = out_tile * OUT + tl.arange(0, OUT)
    ins = tl.arange(0, IN)
    x_group = x_ptr + image * x_image + (group * in_per_group).to(tl.int64) * x_channel
    w_columns = weight_ptr + (group * out_per_group + outs)[None, :] * w_out
    in_tiles = tl.cdiv(in_per_group, IN)
    total = tl.zeros((PIXELS, OUT), tl.float32)
    for step in tl.range(0, KERNEL_H * KERNEL_W * in_tiles, num_stages=STAGES):
        tap = step // in_tiles
        dy, dx = tap // KERNEL_W, tap % KERNEL_W
        channels = (step % in_tiles) * IN + ins
        y = rows * STRIDE + dy * DILATION - PADDING
        x = columns * STRIDE + dx * DILATION - PADDING
        inside = (pixels < n_pixels) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
        in_group = channels < in_per_group
        x_ptrs = x_group + (y * x_row + x * x_column)[:, None] + channels[None, :] * x_channel
        patches = tl.load(x_ptrs, mask=inside[:, None] & in_group[None, :], other=0.0)
        w_mask = in_group[:, None] & (outs < out_per_group)[None, :]
        w = tl.load(w_columns + (channels * w_in)[:, None] + dy * w_y + dx * w_x, mask=w_mask, other=0.0)
        total = tl.dot(patches, w, total, input_precision=PRECISION)
    out_start = out_ptr + image * out_image + (group * out_per_group).to(tl.int64) * out_channel
    at = rows * out_row + columns * out_column
    out_ptrs = out_start + outs[None, :] * out_channel + at[:, None]
    mask = (pixels < n_pixels)[:, None] & (outs < out_per_group)[None, :]
    tl.store(out_ptrs, total.to(out_ptr.dtype.element_ty), mask=mask)


def sizes_of(x, weight):
    """Images, channels, output size, kernel size and the group's channels."""
    n_images, c_in, height, width = x.shape
    c_out, in_per_group, kernel_h, kernel_w = weight.shape
    out_h = (height + 2 * PADDING - DILATION * (kernel_h - 1) - 1) // STRIDE + 1
    out_w = (width + 2 * PADDING - DILATION * (kernel_w - 1) - 1) // STRIDE + 1
    return n_images, height, width, c_out, c_in // in_per_group, out_h, out_w, kernel_h, kernel_w


def channels_last(x):
    """x itself where its channels lie side by side, else a copy of it in which they do; strides as x has them."""
    n_images, n_channels, height, width = x.shape
    if x.stride(1) == 1:
        return x
    copy = torch.empty((n_images, height, width, n_channels), dtype=x.dtype, device=x.device)
    n_pixels = height * width
    channels = min(64, triton.next_power_of_2(n_channels))
    n_tiles, n_channel_tiles = triton.cdiv(n_pixels, COPIED_PIXELS), triton.cdiv(n_channels, channels)
    lay_channels_last[(n_images * n_channel_tiles * n_tiles,)](
        x, copy, *x.stride(), width, n_pixels, n_channels, n_tiles, n_channel_tiles, PIXELS=COPIED_PIXELS,
        CHANNELS=channels, num_warps=4,
    )  # fmt: skip
    return copy.permute(0, 3, 1, 2)


def kernel_function(x, weight):
    n_images, height, width, c_out, n_groups, out_h, out_w, kernel_h, kernel_w = sizes_of(x, weight)
    out = torch.empty((n_images, c_out, out_h, out_w), dtype=x.dtype, device=x.device)
    out_per_group, in_per_group = c_out // n_groups, weight.shape[1]
    outs = min(OUT_CHANNELS, max(16, triton.next_power_of_2(out_per_group)))
    ins = min(IN_CHANNELS, max(16, triton.next_power_of_2(in_per_group)))
    pixels = min(PIXELS, max(16, triton.next_power_of_2(out_h * out_w)))
    n_out_tiles, n_tiles = triton.cdiv(out_per_group, outs), triton.cdiv(out_h * out_w, pixels)
    x = channels_last(x)
    product_of_taps[(n_images * n_groups * n_out_tiles * n_tiles,)](
        x, weight, out, *x.stride(), *weight.stride(), *out.stride(), height, width, out_w, out_h * out_w, n_groups,
        in_per_group, out_per_group, n_out_tiles, n_tiles, OUT=outs, PIXELS=pixels, IN=ins, KERNEL_H=kernel_h,
        KERNEL_W=kernel_w, STRIDE=STRIDE, PADDING=PADDING, DILATION=DILATION, STAGES=STAGES, PRECISION=PRECISION,
        num_warps=NUM_WARPS,
    )  # fmt: skip
    return out
