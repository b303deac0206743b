"""Grouped convolution, direct: a program takes a run of pixels and several output channels of one group.

y[n, o, p] = sum_i sum_t w[o, i, t] x[n, i, p + t], i over the group's input channels, t over the taps. Every pixel that
is loaded serves all of the program's output channels, products are on CUDA cores in fp32: for groups too narrow to fill
a tensor core's tile. The taps are unrolled; each channel's loads overlap, so all but the first come from L1.
"""

import torch
import triton
import triton.language as tl

STRIDE = 1
PADDING = 1
DILATION = 1
PIXELS = 256
OUT_CHANNELS = 8
NUM_WARPS = 4
UNROLL = 1


@triton.jit
def group_pixels(
    x_ptr, weight_ptr, out_ptr, x_image, x_channel, x_row, x_column, w_out, w_in, w_y, w_x,
    out_image, out_channel, out_row, out_column, height, width, out_w, n_pixels, n_groups, in_per_group, out_per_group,
    n_out_tiles, n_tiles, OUT: tl.constexpr, PIXELS: tl.constexpr, KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr,
    STRIDE: tl.constexpr, PADDING: tl.constexpr, DILATION: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % n_tiles
    out_tile = (tl.program_id(0) // n_tiles) % n_out_tiles
    plane = tl.program_id(0) // (n_tiles * n_out_tiles)
    group = plane % n_groups
    image = (plane // n_groups).to(tl.int64)
    pixels = tile * PIXELS + tl.arange(0, PIXELS)
    in_pixels = pixels < n_pixels
    rows, columns = pixels // out_w, pixels % out_w
    outs = out_tile * OUT + tl.arange(0, OUT)
    in_outs = outs < out_per_group
    w_ptrs = weight_ptr + (group * out_per_group + outs) * w_out
    x_group = x_ptr + image * x_image + (group * in_per_group).to(tl.int64) * x_channel
    total = tl.zeros((OUT, PIXELS), tl.float32)
    for i in tl.range(0, in_per_group, loop_unroll_factor=UNROLL):
        x_plane = x_group + i * x_channel
        for dy in tl.static_range(KERNEL_H):
            for dx in tl.static_range(KERNEL_W):
                y = rows * STRIDE + dy * DILATION - PADDING
                x = columns * STRIDE + dx * DILATION - PADDING
                inside = in_pixels & (y >= 0) & (y < height) & (x >= 0) & (x < width)
                pixel = tl.load(x_plane + y * x_row + x * x_column, mask=inside, other=0.0).to(tl.float32)
                w = tl.load(w_ptrs + i * w_in + dy * w_y + dx * w_x, mask=in_outs, other=0.0).to(tl.float32)
                total += w[:, None] * pixel[None, :]
    out_start = out_ptr + image * out_image + (group * out_per_group).to(tl.int64) * out_channel
    out_ptrs = out_start + outs[:, None] * out_channel + (rows * out_row + columns * out_column)[None, :]
    tl.store(out_ptrs, total.to(out_ptr.dtype.element_ty), mask=in_outs[:, None] & in_pixels[None, :])


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
    outs = min(OUT_CHANNELS, triton.next_power_of_2(out_per_group))
    # Fewer channels a program leave registers for more pixels.
    pixels = min(PIXELS * max(1, OUT_CHANNELS // outs // 2), max(32, triton.next_power_of_2(out_h * out_w)))
    n_out_tiles, n_tiles = triton.cdiv(out_per_group, outs), triton.cdiv(out_h * out_w, pixels)
    group_pixels[(n_images * n_groups * n_out_tiles * n_tiles,)](
        x, weight, out, *x.stride(), *weight.stride(), *out.stride(), height, width, out_w, out_h * out_w, n_groups,
        in_per_group, out_per_group, n_out_tiles, n_tiles, OUT=outs, PIXELS=pixels, KERNEL_H=kernel_h,
        KERNEL_W=kernel_w, STRIDE=STRIDE, PADDING=PADDING, DILATION=DILATION, UNROLL=UNROLL, num_warps=NUM_WARPS,
    )  # fmt: skip
    return out
