"""Grouped convolution, direct: a thread takes one column of a block of rows, for several output channels of a group.

y[n, o, r, c] = sum_i sum_t w[o, i, t] x[n, i, r + t_y, c + t_x]. The rows that a block meets are loaded once a column
of the kernel and stay in registers while every row and channel of the block adds its products: a pixel that is loaded
feeds up to three rows by eight channels, so that multiply-adds and not loads fill the issue slots. Lanes lie along a
row. The last blocks move back to end at the edge: only what may lie in the padding has a mask. Products are on CUDA
cores in fp32: for groups too narrow to fill a tensor core's tile.
"""

import torch
import triton
import triton.language as tl

STRIDE = 1
PADDING = 1
DILATION = 1
SUMS = 64
OUT_CHANNELS = 8
ROWS = 16
COLUMNS = 128
MAX_REGISTERS = 128
# Pixels of one channel that a thread holds at a time.
MAX_PIXELS = 96


@triton.jit
def load_pixels(x_ptrs, y, x, height, width, ANY_ROW: tl.constexpr, ANY_COLUMN: tl.constexpr):
    """Pixels at row y and columns x, zero in the padding; ANY says of which it may be that they lie there."""
    if ANY_ROW and ANY_COLUMN:
        pixels = tl.load(x_ptrs, mask=(y >= 0) & (y < height) & (x >= 0) & (x < width), other=0.0)
    elif ANY_ROW:
        # The mask's shape is the pointers'.
        pixels = tl.load(x_ptrs, mask=(y >= 0) & (y < height) & (x == x), other=0.0)
    elif ANY_COLUMN:
        pixels = tl.load(x_ptrs, mask=(x >= 0) & (x < width), other=0.0)
    else:
        pixels = tl.load(x_ptrs)
    return pixels.to(tl.float32)


@triton.jit
def row_block(
    x_ptr, weight_ptr, out_ptr, x_image, x_channel, out_image, out_channel, height, width, out_h, out_w, n_groups,
    out_per_group, n_out_tiles, row_tiles, column_tiles, X_ROW: tl.constexpr, X_COLUMN: tl.constexpr,
    OUT_ROW: tl.constexpr, OUT_COLUMN: tl.constexpr, W_OUT: tl.constexpr, W_IN: tl.constexpr, W_Y: tl.constexpr,
    W_X: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr, EVEN: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr, STRIDE: tl.constexpr,
    PADDING: tl.constexpr, DILATION: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % (row_tiles * column_tiles)
    first = ((tl.program_id(0) // (row_tiles * column_tiles)) % n_out_tiles) * OUT
    plane = tl.program_id(0) // (row_tiles * column_tiles * n_out_tiles)
    group = plane % n_groups
    image = (plane // n_groups).to(tl.int64)
    first_row = tl.minimum((tile // column_tiles) * ROWS, out_h - ROWS)
    lanes = tl.maximum(tl.minimum((tile % column_tiles) * COLUMNS, out_w - COLUMNS), 0) + tl.arange(0, COLUMNS)
    # Lanes past a narrow plane's end compute its last column again, and do not store it.
    columns = tl.minimum(lanes, out_w - 1)
    y0 = first_row * STRIDE - PADDING
    x0 = columns * STRIDE - PADDING
    x_plane = x_ptr + image * x_image + (group * IN).to(tl.int64) * x_channel + y0 * X_ROW + x0 * X_COLUMN
    # Channels past the group's last compute the last again, and are not stored.
    last = out_per_group - 1
    w_group = weight_ptr + group * out_per_group * W_OUT
    IN_ROWS: tl.constexpr = (ROWS - 1) * STRIDE + (KERNEL_H - 1) * DILATION + 1
    nothing = tl.zeros((COLUMNS,), tl.float32)
    sums = ()
    for _ in tl.static_range(ROWS * OUT):
        sums = sums + (nothing,)
    for i in range(IN):
        pixels = ()
        for r in tl.static_range(IN_ROWS):
            for dx in tl.static_range(KERNEL_W):
                x_ptrs = x_plane + r * X_ROW + dx * DILATION * X_COLUMN
                any_row = r < PADDING or r >= IN_ROWS - PADDING
                any_column = dx * DILATION < PADDING or (KERNEL_W - 1 - dx) * DILATION < PADDING
                loaded = load_pixels(x_ptrs, y0 + r, x0 + dx * DILATION, height, width, any_row, any_column)
                pixels = pixels + (loaded,)
        added = ()
        for o in tl.static_range(OUT):
            w = w_group + (first + o if EVEN else tl.minimum(first + o, last)) * W_OUT + i * W_IN
            taps = ()
            for dy in tl.static_range(KERNEL_H):
                for dx in tl.static_range(KERNEL_W):
                    taps = taps + (tl.load(w + dy * W_Y + dx * W_X).to(tl.float32),)
            for r in tl.static_range(ROWS):
                total = sums[o * ROWS + r]
                for dy in tl.static_range(KERNEL_H):
                    for dx in tl.static_range(KERNEL_W):
                        total += pixels[(r * STRIDE + dy * DILATION) * KERNEL_W + dx] * taps[dy * KERNEL_W + dx]
                added = added + (total,)
        sums = added
        x_plane += x_channel
    out_plane = out_ptr + image * out_image + (group * out_per_group + first).to(tl.int64) * out_channel
    out_ptrs = out_plane + first_row * OUT_ROW + columns * OUT_COLUMN
    for o in tl.static_range(OUT):
        mask = (lanes < out_w) & (first + o < out_per_group)
        for r in tl.static_range(ROWS):
            total = sums[o * ROWS + r].to(out_ptr.dtype.element_ty)
            tl.store(out_ptrs + o * out_channel + r * OUT_ROW, total, mask=mask)


def sizes_of(x, weight):
    """Images, channels, output size, kernel size and the group's channels."""
    n_images, c_in, height, width = x.shape
    c_out, in_per_group, kernel_h, kernel_w = weight.shape
    out_h = (height + 2 * PADDING - DILATION * (kernel_h - 1) - 1) // STRIDE + 1
    out_w = (width + 2 * PADDING - DILATION * (kernel_w - 1) - 1) // STRIDE + 1
    return n_images, height, width, c_out, c_in // in_per_group, out_h, out_w, kernel_h, kernel_w


def rows_of(out_h, outs, kernel_h, kernel_w):
    """Rows of a block, such that its blocks of a plane are about equally high."""
    rows = max(1, min(ROWS, SUMS // outs, out_h))
    while rows > 1 and ((rows - 1) * STRIDE + (kernel_h - 1) * DILATION + 1) * kernel_w > MAX_PIXELS:
        rows -= 1
    return triton.cdiv(out_h, triton.cdiv(out_h, rows))


def kernel_function(x, weight):
    n_images, height, width, c_out, n_groups, out_h, out_w, kernel_h, kernel_w = sizes_of(x, weight)
    out = torch.empty((n_images, c_out, out_h, out_w), dtype=x.dtype, device=x.device)
    out_per_group = c_out // n_groups
    outs = min(OUT_CHANNELS, triton.next_power_of_2(out_per_group))
    rows = rows_of(out_h, outs, kernel_h, kernel_w)
    columns = min(COLUMNS, max(32, triton.next_power_of_2(out_w)))
    n_out_tiles, row_tiles, column_tiles = (
        triton.cdiv(out_per_group, outs), triton.cdiv(out_h, rows), triton.cdiv(out_w, columns)
    )  # fmt: skip
    (x_image, x_channel, x_row, x_column), (w_out, w_in, w_y, w_x) = x.stride(), weight.stride()
    out_image, out_channel, out_row, out_column = out.stride()
    row_block[(n_images * n_groups * n_out_tiles * row_tiles * column_tiles,)](
        x, weight, out, x_image, x_channel, out_image, out_channel, height, width, out_h, out_w, n_groups,
        out_per_group, n_out_tiles, row_tiles, column_tiles, X_ROW=x_row, X_COLUMN=x_column, OUT_ROW=out_row,
        OUT_COLUMN=out_column, W_OUT=w_out, W_IN=w_in, W_Y=w_y, W_X=w_x, IN=weight.shape[1], OUT=outs,
        EVEN=out_per_group % outs == 0, ROWS=rows, COLUMNS=columns, KERNEL_H=kernel_h, KERNEL_W=kernel_w,
        STRIDE=STRIDE, PADDING=PADDING, DILATION=DILATION, num_warps=columns // 32, maxnreg=MAX_REGISTERS,
    )  # fmt: skip
    return out
