"""Grouped convolution, direct: a program takes a run of pixels and up to eight output channels of one group.

y[n, o, p] = sum_i sum_t w[o, i, t] x[n, i, p + t], i over the group's input channels, t over the taps. Every pixel that
is loaded serves all of the program's output channels, each with a running sum of its own, so that threads lie along
pixels alone and weights are scalars. Products are on CUDA cores in fp32: for groups too narrow to fill a tensor core's
tile. The taps are unrolled; each channel's loads overlap, so all but the first come from L1.
"""

import torch
import triton
import triton.language as tl

STRIDE = 1
PADDING = 1
DILATION = 1
SUMS = 4096
OUT_CHANNELS = 8
MAX_PIXELS = 1024
PIXELS_PER_THREAD = 8
ARCH = 90


@triton.jit
def group_pixels(
    x_ptr, weight_ptr, out_ptr, x_image, x_channel, x_row, x_column, w_out, w_in, w_y, w_x,
    out_image, out_channel, out_row, out_column, height, width, out_w, n_pixels, n_groups, in_per_group, out_per_group,
    n_out_tiles, n_tiles, OUT: tl.constexpr, PIXELS: tl.constexpr, KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr,
    STRIDE: tl.constexpr, PADDING: tl.constexpr, DILATION: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % n_tiles
    first = ((tl.program_id(0) // n_tiles) % n_out_tiles) * OUT
    plane = tl.program_id(0) // (n_tiles * n_out_tiles)
    group = plane % n_groups
    image = (plane // n_groups).to(tl.int64)
    pixels = tile * PIXELS + tl.arange(0, PIXELS)
    in_pixels = pixels < n_pixels
    rows, columns = pixels // out_w, pixels % out_w
    # Channels past the group's last compute the last again, and are not stored.
    last = out_per_group - 1
    w_group = weight_ptr + group * out_per_group * w_out
    w0 = w_group + first * w_out
    w1 = w_group + tl.minimum(first + 1, last) * w_out
    w2 = w_group + tl.minimum(first + 2, last) * w_out
    w3 = w_group + tl.minimum(first + 3, last) * w_out
    w4 = w_group + tl.minimum(first + 4, last) * w_out
    w5 = w_group + tl.minimum(first + 5, last) * w_out
    w6 = w_group + tl.minimum(first + 6, last) * w_out
    w7 = w_group + tl.minimum(first + 7, last) * w_out
    nothing = tl.zeros((PIXELS,), tl.float32)
    y0, y1, y2, y3 = nothing, nothing, nothing, nothing
    y4, y5, y6, y7 = nothing, nothing, nothing, nothing
    x_plane = x_ptr + image * x_image + (group * in_per_group).to(tl.int64) * x_channel
    for i in range(in_per_group):
        for dy in tl.static_range(KERNEL_H):
            for dx in tl.static_range(KERNEL_W):
                y = rows * STRIDE + dy * DILATION - PADDING
                x = columns * STRIDE + dx * DILATION - PADDING
                inside = in_pixels & (y >= 0) & (y < height) & (x >= 0) & (x < width)
                pixel = tl.load(x_plane + y * x_row + x * x_column, mask=inside, other=0.0).to(tl.float32)
                at = i * w_in + dy * w_y + dx * w_x
                y0 += pixel * tl.load(w0 + at).to(tl.float32)
                if OUT > 1:
                    y1 += pixel * tl.load(w1 + at).to(tl.float32)
                if OUT > 2:
                    y2 += pixel * tl.load(w2 + at).to(tl.float32)
                    y3 += pixel * tl.load(w3 + at).to(tl.float32)
                if OUT > 4:
                    y4 += pixel * tl.load(w4 + at).to(tl.float32)
                    y5 += pixel * tl.load(w5 + at).to(tl.float32)
                    y6 += pixel * tl.load(w6 + at).to(tl.float32)
                    y7 += pixel * tl.load(w7 + at).to(tl.float32)
        x_plane += x_channel
    kind = out_ptr.dtype.element_ty
    out_plane = out_ptr + image * out_image + (group * out_per_group + first).to(tl.int64) * out_channel
    out_ptrs = out_plane + rows * out_row + columns * out_column
    left = out_per_group - first
    tl.store(out_ptrs, y0.to(kind), mask=in_pixels)
    if OUT > 1:
        tl.store(out_ptrs + out_channel, y1.to(kind), mask=in_pixels & (left > 1))
    if OUT > 2:
        tl.store(out_ptrs + 2 * out_channel, y2.to(kind), mask=in_pixels & (left > 2))
        tl.store(out_ptrs + 3 * out_channel, y3.to(kind), mask=in_pixels & (left > 3))
    if OUT > 4:
        tl.store(out_ptrs + 4 * out_channel, y4.to(kind), mask=in_pixels & (left > 4))
        tl.store(out_ptrs + 5 * out_channel, y5.to(kind), mask=in_pixels & (left > 5))
        tl.store(out_ptrs + 6 * out_channel, y6.to(kind), mask=in_pixels & (left > 6))
        tl.store(out_ptrs + 7 * out_channel, y7.to(kind), mask=in_pixels & (left > 7))


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
    outs = min(OUT_CHANNELS, 8, triton.next_power_of_2(out_per_group))  # the kernel has eight sums
    pixels = min(SUMS // outs, MAX_PIXELS, max(32, triton.next_power_of_2(out_h * out_w)))
    n_out_tiles, n_tiles = triton.cdiv(out_per_group, outs), triton.cdiv(out_h * out_w, pixels)
    # Pixels of a row that is no multiple of 16 have an address each: beside several sums a pixel, 350 bytes of a
    # thread's spill. In even rows 128 at most do: left alone on Hopper, where eight pixels a thread were timed.
    ragged = x.stride(2) % 16 or out_w % 16
    a_thread = max(1, PIXELS_PER_THREAD // 2) if outs > 1 and (ragged or ARCH < 90) else PIXELS_PER_THREAD
    group_pixels[(n_images * n_groups * n_out_tiles * n_tiles,)](
        x, weight, out, *x.stride(), *weight.stride(), *out.stride(), height, width, out_w, out_h * out_w, n_groups,
        in_per_group, out_per_group, n_out_tiles, n_tiles, OUT=outs, PIXELS=pixels, KERNEL_H=kernel_h,
        KERNEL_W=kernel_w, STRIDE=STRIDE, PADDING=PADDING, DILATION=DILATION,
        num_warps=min(32, max(1, pixels // (32 * a_thread))),
    )  # fmt: skip
    return out
