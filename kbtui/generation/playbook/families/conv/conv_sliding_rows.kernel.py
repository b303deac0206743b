"""Grouped convolution, direct, each program walking down a strip of columns with the rows it still needs in registers.

y[n, o, r, c] = sum_i sum_t w[o, i, t] x[n, i, r + t_y, c + t_x]. A row of x serves three rows of the answer: the
program loads it once in three shifts, adds it to three running rows and stores the one that is complete, so that a
pixel costs three loads and not nine. A strip takes a few planes of one channel side by side. For 3 x 3 kernels of
stride 1 with one input channel a group (depthwise); other convolutions of the family go pixel by pixel.
"""

import torch
import triton
import triton.language as tl

STRIDE = 1
PADDING = 1
DILATION = 1
STRIP_ROWS = 32
STRIP_COLUMNS = 64
IMAGES = 1
NUM_WARPS = 1
UNROLL = 1
PIXELS = 512


@triton.jit
def shifted_rows(x_ptrs, x_column, in_rows, columns, width, PADDING: tl.constexpr):
    """One row of x as it meets the kernel's left, middle and right column."""
    x = columns - PADDING
    left = tl.load(x_ptrs, mask=in_rows & (x >= 0) & (x < width), other=0.0)
    middle = tl.load(x_ptrs + x_column, mask=in_rows & (x + 1 >= 0) & (x + 1 < width), other=0.0)
    right = tl.load(x_ptrs + 2 * x_column, mask=in_rows & (x + 2 >= 0) & (x + 2 < width), other=0.0)
    return left.to(tl.float32), middle.to(tl.float32), right.to(tl.float32)


@triton.jit
def slide_down(
    x_ptr, weight_ptr, out_ptr, x_image, x_channel, x_row, x_column, w_out, w_y, w_x,
    out_image, out_channel, out_row, out_column, n_images, height, width, out_h, out_w, out_per_group, c_out,
    row_tiles, column_tiles, STRIP_ROWS: tl.constexpr, COLUMNS: tl.constexpr, IMAGES: tl.constexpr,
    PADDING: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % (row_tiles * column_tiles)
    channel = (tl.program_id(0) // (row_tiles * column_tiles)) % c_out
    image_tile = tl.program_id(0) // (row_tiles * column_tiles * c_out)
    images = (image_tile * IMAGES + tl.arange(0, IMAGES))[:, None]
    columns = ((tile % column_tiles) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    first_row = (tile // column_tiles) * STRIP_ROWS
    in_images = images < n_images
    w = weight_ptr + channel * w_out
    w00, w01, w02 = (tl.load(w).to(tl.float32), tl.load(w + w_x).to(tl.float32), tl.load(w + 2 * w_x).to(tl.float32))
    w += w_y
    w10, w11, w12 = (tl.load(w).to(tl.float32), tl.load(w + w_x).to(tl.float32), tl.load(w + 2 * w_x).to(tl.float32))
    w += w_y
    w20, w21, w22 = (tl.load(w).to(tl.float32), tl.load(w + w_x).to(tl.float32), tl.load(w + 2 * w_x).to(tl.float32))
    in_channel = (channel // out_per_group).to(tl.int64)
    x_ptrs = x_ptr + images.to(tl.int64) * x_image + in_channel * x_channel + (columns - PADDING) * x_column
    out_ptrs = out_ptr + images.to(tl.int64) * out_image + channel.to(tl.int64) * out_channel + columns * out_column
    # ``above`` lacks one row of x, ``here`` two.
    above = tl.zeros((IMAGES, COLUMNS), tl.float32)
    here = tl.zeros((IMAGES, COLUMNS), tl.float32)
    for step in tl.range(0, STRIP_ROWS + 2, loop_unroll_factor=UNROLL):
        y = first_row + step - PADDING
        in_rows = in_images & (y >= 0) & (y < height)
        left, middle, right = shifted_rows(x_ptrs + y * x_row, x_column, in_rows, columns, width, PADDING)
        done = above + (left * w20 + middle * w21 + right * w22)
        above = here + (left * w10 + middle * w11 + right * w12)
        here = left * w00 + middle * w01 + right * w02
        row = first_row + step - 2
        mask = in_images & (columns < out_w) & (step >= 2) & (row < out_h)
        tl.store(out_ptrs + row * out_row, done.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def channel_pixels(
    x_ptr, weight_ptr, out_ptr, x_image, x_channel, x_row, x_column, w_out, w_in, w_y, w_x,
    out_image, out_channel, out_row, out_column, height, width, out_w, n_pixels, c_out, in_per_group, out_per_group,
    n_tiles, PIXELS: tl.constexpr, KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr, STRIDE: tl.constexpr,
    PADDING: tl.constexpr, DILATION: tl.constexpr,
):  # fmt: skip
    pixels = (tl.program_id(0) % n_tiles) * PIXELS + tl.arange(0, PIXELS)
    channel = (tl.program_id(0) // n_tiles) % c_out
    image = (tl.program_id(0) // (n_tiles * c_out)).to(tl.int64)
    rows, columns = pixels // out_w, pixels % out_w
    x_group = x_ptr + image * x_image + ((channel // out_per_group) * in_per_group).to(tl.int64) * x_channel
    total = tl.zeros((PIXELS,), tl.float32)
    for i in range(in_per_group):
        for dy in tl.static_range(KERNEL_H):
            for dx in tl.static_range(KERNEL_W):
                y = rows * STRIDE + dy * DILATION - PADDING
                x = columns * STRIDE + dx * DILATION - PADDING
                inside = (pixels < n_pixels) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
                pixel = tl.load(x_group + i * x_channel + y * x_row + x * x_column, mask=inside, other=0.0)
                w = tl.load(weight_ptr + channel * w_out + i * w_in + dy * w_y + dx * w_x).to(tl.float32)
                total += pixel.to(tl.float32) * w
    out_plane = out_ptr + image * out_image + channel.to(tl.int64) * out_channel
    out_ptrs = out_plane + rows * out_row + columns * out_column
    tl.store(out_ptrs, total.to(out_ptr.dtype.element_ty), mask=pixels < n_pixels)


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
    if (kernel_h, kernel_w, STRIDE, DILATION, in_per_group) == (3, 3, 1, 1, 1):
        columns = min(STRIP_COLUMNS, triton.next_power_of_2(out_w))
        row_tiles, column_tiles = triton.cdiv(out_h, STRIP_ROWS), triton.cdiv(out_w, columns)
        images = min(IMAGES, triton.next_power_of_2(n_images))
        w_out, _, w_y, w_x = weight.stride()
        slide_down[(triton.cdiv(n_images, images) * c_out * row_tiles * column_tiles,)](
            x, weight, out, *x.stride(), w_out, w_y, w_x, *out.stride(), n_images, height, width, out_h, out_w,
            out_per_group, c_out, row_tiles, column_tiles, STRIP_ROWS=STRIP_ROWS, COLUMNS=columns, IMAGES=images,
            PADDING=PADDING, UNROLL=UNROLL, num_warps=NUM_WARPS,
        )  # fmt: skip
        return out
    pixels = min(PIXELS, triton.next_power_of_2(out_h * out_w))
    n_tiles = triton.cdiv(out_h * out_w, pixels)
    channel_pixels[(n_images * c_out * n_tiles,)](
        x, weight, out, *x.stride(), *weight.stride(), *out.stride(), height, width, out_w, out_h * out_w, c_out,
        in_per_group, out_per_group, n_tiles, PIXELS=pixels, KERNEL_H=kernel_h, KERNEL_W=kernel_w, STRIDE=STRIDE,
        PADDING=PADDING, DILATION=DILATION, num_warps=4,
    )  # fmt: skip
    return out
