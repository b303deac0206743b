"""RMS norm over dimension 1 of (images, channels, height, width), all channels of a strip of pixels in registers.

y[n, c, p] = x[n, c, p] / sqrt(mean_c x[n, c, p]^2 + eps) (Zhang and Sennrich 2019, arXiv:1910.07467, without a gain).
A program holds a (channels, pixels) tile: threads lie along pixels, so loads are coalesced, and x is read once. Where
MIN_PIXELS pixels of all channels do not fit in TILE_ELEMENTS, channels are walked twice in tiles.
"""

import torch
import triton
import triton.language as tl

EPS = 1e-5
TILE_ELEMENTS = 8192
MIN_PIXELS = 16
ELEMENTS_PER_THREAD = 32
WIDE_CHANNELS = 32


@triton.jit
def strip_in_registers(
    x_ptr, out_ptr, x_image, x_row, x_channel, x_pixel, out_image, out_row, out_channel, out_pixel,
    n_channels, n_rows, n_pixels, n_strips, eps, CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    strip = tl.program_id(0) % n_strips
    line = (tl.program_id(0) // n_strips).to(tl.int64)
    x_ptr += (line // n_rows) * x_image + (line % n_rows) * x_row
    out_ptr += (line // n_rows) * out_image + (line % n_rows) * out_row
    channels = tl.arange(0, CHANNELS).to(tl.int64)[:, None]
    pixels = strip * PIXELS + tl.arange(0, PIXELS)[None, :]
    mask = (channels < n_channels) & (pixels < n_pixels)
    x = tl.load(x_ptr + channels * x_channel + pixels * x_pixel, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_channels + eps)
    tl.store(out_ptr + channels * out_channel + pixels * out_pixel, x * scale[None, :], mask=mask)


@triton.jit
def strip_in_tiles(
    x_ptr, out_ptr, x_image, x_row, x_channel, x_pixel, out_image, out_row, out_channel, out_pixel,
    n_channels, n_rows, n_pixels, n_strips, eps, CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    strip = tl.program_id(0) % n_strips
    line = (tl.program_id(0) // n_strips).to(tl.int64)
    x_ptr += (line // n_rows) * x_image + (line % n_rows) * x_row
    out_ptr += (line // n_rows) * out_image + (line % n_rows) * out_row
    pixels = strip * PIXELS + tl.arange(0, PIXELS)[None, :]
    squares = tl.zeros((CHANNELS, PIXELS), tl.float32)
    for first in range(0, n_channels, CHANNELS):
        channels = (first + tl.arange(0, CHANNELS)).to(tl.int64)[:, None]
        mask = (channels < n_channels) & (pixels < n_pixels)
        x = tl.load(x_ptr + channels * x_channel + pixels * x_pixel, mask=mask, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n_channels + eps)
    for first in range(0, n_channels, CHANNELS):
        channels = (first + tl.arange(0, CHANNELS)).to(tl.int64)[:, None]
        mask = (channels < n_channels) & (pixels < n_pixels)
        x = tl.load(x_ptr + channels * x_channel + pixels * x_pixel, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + channels * out_channel + pixels * out_pixel, x * scale[None, :], mask=mask)


def kernel_function(x):
    n_images, n_channels, height, width = x.shape
    out = torch.empty_like(x)
    # Rows of an image follow one another in memory in nearly every tensor: then an image is one line of pixels.
    joined = x.stride(2) == width * x.stride(3) and out.stride(2) == width * out.stride(3)
    n_rows, n_pixels = (1, height * width) if joined else (height, width)
    channels = triton.next_power_of_2(n_channels)
    in_registers = channels * MIN_PIXELS <= TILE_ELEMENTS
    channels = channels if in_registers else WIDE_CHANNELS
    pixels = min(TILE_ELEMENTS // channels, triton.next_power_of_2(n_pixels))
    n_strips = triton.cdiv(n_pixels, pixels)
    kernel = strip_in_registers if in_registers else strip_in_tiles
    kernel[(n_images * n_rows * n_strips,)](
        x, out, x.stride(0), x.stride(2), x.stride(1), x.stride(3),
        out.stride(0), out.stride(2), out.stride(1), out.stride(3),
        n_channels, n_rows, n_pixels, n_strips, EPS, CHANNELS=channels, PIXELS=pixels,
        num_warps=min(32, max(1, channels * pixels // (32 * ELEMENTS_PER_THREAD))),
    )  # fmt: skip
    return out
