"""Grouped convolution on tensor cores, eight neighbouring pixels at once: taps lie in a band of a Toeplitz matrix.

y[p, (o, t)] = sum_dy sum_(i, s) x[p + dy, (i, s)] W_dy[(i, s), (o, t)], where a row p of the product is eight pixels
of a row of the image, s and t count within them, and W_dy[(i, s), (o, t)] = w[o, i, dy, s - t], 0 where that is no tap.
x is loaded as it lies, in whole vectors, and the sums are stored so; nothing is shifted. The few columns to the left
and right of the eight that taps reach are a product of their own, over (dy, i, column). Eight channels of a group make
a product 64 wide; most of it multiplies by zeros, which half precision can afford. A program walks over some tiles with
its matrices at hand. For fp32 in three TF32 passes (Ootomo and Yokota 2022, arXiv:2203.03341), sums in fp32. An Inf or
NaN in x reaches its neighbours, for it is multiplied by zeros too.
"""

import torch
import triton
import triton.language as tl

STRIDE = 1
PADDING = 1
DILATION = 1
PIECES = 128
OUT_CHANNELS = 8
IN_CHANNELS = 8
PROGRAMS_PER_SM = 2
NUM_WARPS = 8
STAGES = 1
PRECISION = "tf32x3"
N_SMS = 132


@triton.jit
def taps(
    w_ptr, out, channel, dy, column, t, w_out, w_in, w_y, w_x, in_per_group, out_per_group, KERNEL_H: tl.constexpr,
    KERNEL_W: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, DILATION: tl.constexpr,
):  # fmt: skip
    """The weight by which an input column of the eight counts for output t; zero where there is no tap."""
    beyond = column + PADDING - t * STRIDE
    dx = beyond // DILATION
    inside = (beyond >= 0) & (dx < KERNEL_W) & (dx * DILATION == beyond) & (dy < KERNEL_H)
    mask = inside & (out < out_per_group) & (channel < in_per_group)
    return tl.load(w_ptr + out * w_out + channel * w_in + dy * w_y + dx * w_x, mask=mask, other=0.0)


@triton.jit
def octet_product(
    x_ptr, weight_ptr, out_ptr, x_image, x_channel, x_row, x_column, w_out, w_in, w_y, w_x, out_image, out_channel,
    out_row, out_column, height, width, out_h, out_w, n_groups, in_per_group, out_per_group, n_out_tiles, walks, blocks,
    n_blocks, IN_TILES: tl.constexpr, OCTETS: tl.constexpr, PIECES: tl.constexpr, OUT: tl.constexpr, IN: tl.constexpr,
    EDGE: tl.constexpr, EDGE_K: tl.constexpr, KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr, STRIDE: tl.constexpr,
    PADDING: tl.constexpr, DILATION: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    walk = tl.program_id(0) % walks
    first_out = ((tl.program_id(0) // walks) % n_out_tiles) * OUT
    plane = tl.program_id(0) // (walks * n_out_tiles)
    group = plane % n_groups
    image = (plane // n_groups).to(tl.int64)
    x_group = x_ptr + image * x_image + (group * in_per_group).to(tl.int64) * x_channel
    w_group = weight_ptr + group * out_per_group * w_out
    out_group = out_ptr + image * out_image + (group * out_per_group + first_out).to(tl.int64) * out_channel
    k, n, e = tl.arange(0, IN * 8), tl.arange(0, OUT * 8), tl.arange(0, EDGE_K)
    outs, t = first_out + n // 8, n % 8
    # Columns that are reached beside the eight: PADDING to the left, the others to the right.
    nth = e % EDGE
    edge_column = tl.where(nth < PADDING, nth - PADDING, 8 + nth - PADDING)
    edge_in, edge_dy = e // EDGE % IN, e // EDGE // IN
    middle = ()
    for dy in tl.static_range(KERNEL_H):
        middle = middle + (
            taps(w_group, outs[None, :], (k // 8)[:, None], dy, (k % 8)[:, None], t[None, :], w_out, w_in, w_y, w_x,
                 in_per_group, out_per_group, KERNEL_H, KERNEL_W, STRIDE, PADDING, DILATION),
        )  # fmt: skip
    edge = taps(w_group, outs[None, :], edge_in[:, None], edge_dy[:, None], edge_column[:, None], t[None, :], w_out,
                w_in, w_y, w_x, in_per_group, out_per_group, KERNEL_H, KERNEL_W, STRIDE, PADDING, DILATION)  # fmt: skip
    for block in tl.range(walk * blocks, tl.minimum(walk * blocks + blocks, n_blocks), num_stages=STAGES):
        at = block * PIECES + tl.arange(0, PIECES)
        out_y, first_x = at // OCTETS, (at % OCTETS) * 8
        sums = tl.zeros((PIECES, OUT * 8), tl.float32)
        for first_in in range(0, IN_TILES * IN, IN):
            channels = first_in + k // 8
            x = (first_x * STRIDE)[:, None] + (k % 8)[None, :]
            x_ptrs = x_group + (channels * x_channel)[None, :] + x * x_column
            known = (channels < in_per_group)[None, :] & (x < width)
            for dy in tl.static_range(KERNEL_H):
                y = out_y * STRIDE - PADDING + dy * DILATION
                mask = known & ((y >= 0) & (y < height))[:, None]
                pixels = tl.load(x_ptrs + (y * x_row)[:, None], mask=mask, other=0.0)
                if IN_TILES == 1:
                    band = middle[dy]
                else:
                    band = taps(w_group, outs[None, :], channels[:, None], dy, (k % 8)[:, None], t[None, :], w_out,
                                w_in, w_y, w_x, in_per_group, out_per_group, KERNEL_H, KERNEL_W, STRIDE, PADDING,
                                DILATION)  # fmt: skip
                sums = tl.dot(pixels, band, sums, input_precision=PRECISION)
            channels = first_in + edge_in
            x = (first_x * STRIDE)[:, None] + edge_column[None, :]
            y = (out_y * STRIDE - PADDING)[:, None] + (edge_dy * DILATION)[None, :]
            used = ((channels < in_per_group) & (edge_dy < KERNEL_H))[None, :]
            mask = used & (x >= 0) & (x < width) & (y >= 0) & (y < height)
            beside = tl.load(x_group + (channels * x_channel)[None, :] + y * x_row + x * x_column, mask=mask, other=0.0)
            if IN_TILES > 1:
                edge = taps(w_group, outs[None, :], channels[:, None], edge_dy[:, None], edge_column[:, None],
                            t[None, :], w_out, w_in, w_y, w_x, in_per_group, out_per_group, KERNEL_H, KERNEL_W, STRIDE,
                            PADDING, DILATION)  # fmt: skip
            sums = tl.dot(beside, edge, sums, input_precision=PRECISION)
        out_x = first_x[:, None] + t[None, :]
        mask = (outs < out_per_group)[None, :] & (out_y < out_h)[:, None] & (out_x < out_w)
        out_ptrs = out_group + (n // 8 * out_channel)[None, :] + (out_y * out_row)[:, None] + out_x * out_column
        tl.store(out_ptrs, sums.to(out_ptr.dtype.element_ty), mask=mask)


def kernel_function(x, weight):
    n_images, c_in, height, width = x.shape
    c_out, in_per_group, kernel_h, kernel_w = weight.shape
    out_h = (height + 2 * PADDING - DILATION * (kernel_h - 1) - 1) // STRIDE + 1
    out_w = (width + 2 * PADDING - DILATION * (kernel_w - 1) - 1) // STRIDE + 1
    out = torch.empty((n_images, c_out, out_h, out_w), dtype=x.dtype, device=x.device)
    n_groups = c_in // in_per_group
    out_per_group = c_out // n_groups
    outs = max(2, min(OUT_CHANNELS, triton.next_power_of_2(out_per_group)))
    ins = max(2, min(IN_CHANNELS, triton.next_power_of_2(in_per_group)))
    # Of the columns that taps reach, those beside the first eight; one at least, so that there is a product.
    edge = max(1, PADDING + max(0, 7 * STRIDE + (kernel_w - 1) * DILATION - PADDING - 7))
    edge_k = max(16, triton.next_power_of_2(kernel_h * ins * edge))
    n_out_tiles, octets = triton.cdiv(out_per_group, outs), triton.cdiv(out_w, 8)
    # As many bytes in every dtype: PIECES are of half precision.
    pieces = max(16, min(2 * PIECES // x.element_size(), triton.next_power_of_2(out_h * octets)))
    n_blocks = triton.cdiv(out_h * octets, pieces)
    strips = n_images * n_groups * n_out_tiles
    walks = triton.cdiv(n_blocks, triton.cdiv(strips * n_blocks, N_SMS * PROGRAMS_PER_SM))
    octet_product[(strips * walks,)](
        x, weight, out, *x.stride(), *weight.stride(), *out.stride(), height, width, out_h, out_w, n_groups,
        in_per_group, out_per_group, n_out_tiles, walks, triton.cdiv(n_blocks, walks), n_blocks,
        IN_TILES=triton.cdiv(in_per_group, ins), OCTETS=octets, PIECES=pieces, OUT=outs, IN=ins, EDGE=edge,
        EDGE_K=edge_k, KERNEL_H=kernel_h, KERNEL_W=kernel_w, STRIDE=STRIDE, PADDING=PADDING, DILATION=DILATION,
        STAGES=STAGES, PRECISION=PRECISION, num_warps=NUM_WARPS,
    )  # fmt: skip
    return out
