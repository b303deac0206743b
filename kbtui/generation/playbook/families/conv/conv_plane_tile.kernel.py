"""Grouped convolution, direct, a rectangle of one output plane a program; made for depthwise convolution.

y[n, o, r, c] = sum_i sum_t w[o, i, t] x[n, i, r + t_y, c + t_x]. With one input channel a group there is nothing to
share between channels: a program takes ROWS by COLUMNS pixels of one output channel, whose shifted reads overlap in L1,
and device memory is read once. The taps are unrolled, their weights are scalars.
"""

import torch
import triton
import triton.language as tl

STRIDE = 1
PADDING = 1
DILATION = 1
TILE_PIXELS = 4096
COLUMNS = 64
NUM_WARPS = 8


@triton.jit
def plane_tile(
    x_ptr, weight_ptr, out_ptr, x_image, x_channel, x_row, x_column, w_out, w_in, w_y, w_x,
    out_image, out_channel, out_row, out_column, height, width, out_h, out_w, c_out, in_per_group, out_per_group,
    row_tiles, column_tiles, ROWS: tl.constexpr, COLUMNS: tl.constexpr, KERNEL_H: tl.constexpr,
    KERNEL_W: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, DILATION: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % (row_tiles * column_tiles)
    plane = tl.program_id(0) // (row_tiles * column_tiles)
    channel = plane % c_out
    image = (plane // c_out).to(tl.int64)
    rows = (tile // column_tiles) * ROWS + tl.arange(0, ROWS)[:, None]
    columns = (tile % column_tiles) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    first_in = (channel // out_per_group) * in_per_group
    x_group = x_ptr + image * x_image + first_in.to(tl.int64) * x_channel
    w_channel = weight_ptr + channel * w_out
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for i in range(in_per_group):
        for dy in tl.static_range(KERNEL_H):
            for dx in tl.static_range(KERNEL_W):
                y = rows * STRIDE + dy * DILATION - PADDING
                x = columns * STRIDE + dx * DILATION - PADDING
                inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
                pixel = tl.load(x_group + i * x_channel + y * x_row + x * x_column, mask=inside, other=0.0)
                total += pixel.to(tl.float32) * tl.load(w_channel + i * w_in + dy * w_y + dx * w_x).to(tl.float32)
    out_plane = out_ptr + image * out_image + channel.to(tl.int64) * out_channel
    mask = (rows < out_h) & (columns < out_w)
    tl.store(out_plane + rows * out_row + columns * out_column, total.to(out_ptr.dtype.element_ty), mask=mask)


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
    columns = min(COLUMNS, triton.next_power_of_2(out_w))
    rows = min(TILE_PIXELS // columns, triton.next_power_of_2(out_h))
    row_tiles, column_tiles = triton.cdiv(out_h, rows), triton.cdiv(out_w, columns)
    plane_tile[(n_images * c_out * row_tiles * column_tiles,)](
        x, weight, out, *x.stride(), *weight.stride(), *out.stride(), height, width, out_h, out_w, c_out,
        weight.shape[1], c_out // n_groups, row_tiles, column_tiles, ROWS=rows, COLUMNS=columns, KERNEL_H=kernel_h,
        KERNEL_W=kernel_w, STRIDE=STRIDE, PADDING=PADDING, DILATION=DILATION,
        num_warps=min(NUM_WARPS, max(1, rows * columns // 128)),
    )  # fmt: skip
    return out
