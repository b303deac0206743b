"""RMS norm over dimension 1 of (images, channels, height, width), strips that run across images.

y[n, c, p] = x[n, c, p] / sqrt(mean_c x[n, c, p]^2 + eps) (Zhang and Sennrich 2019, arXiv:1910.07467, without a gain).
Pixels of all images are numbered together, so that a program takes pixels of several small images and no strip ends
half empty. Squares are summed over tiles of channels; with all channels in one tile, x is read once.
"""

import torch
import triton
import triton.language as tl

EPS = 1e-5
TILE_ELEMENTS = 4096
MIN_PIXELS = 16
ELEMENTS_PER_THREAD = 16


@triton.jit
def flat_strip(
    x_ptr, out_ptr, x_image, x_row, x_channel, x_column, out_image, out_row, out_channel, out_column,
    n_channels, height, width, n_all, eps, CHANNELS: tl.constexpr, PIXELS: tl.constexpr, ONE_TILE: tl.constexpr,
):  # fmt: skip
    flat = tl.program_id(0).to(tl.int64) * PIXELS + tl.arange(0, PIXELS)
    inside = (flat < n_all)[None, :]
    image = flat // (height * width)
    row = (flat // width) % height
    column = flat % width
    x_at = (image * x_image + row * x_row + column * x_column)[None, :]
    out_at = (image * out_image + row * out_row + column * out_column)[None, :]
    if ONE_TILE:
        channels = tl.arange(0, CHANNELS).to(tl.int64)[:, None]
        mask = inside & (channels < n_channels)
        x = tl.load(x_ptr + x_at + channels * x_channel, mask=mask, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_channels + eps)
        tl.store(out_ptr + out_at + channels * out_channel, x * scale[None, :], mask=mask)
    else:
        squares = tl.zeros((CHANNELS, PIXELS), tl.float32)
        for first in range(0, n_channels, CHANNELS):
            channels = (first + tl.arange(0, CHANNELS)).to(tl.int64)[:, None]
            mask = inside & (channels < n_channels)
            x = tl.load(x_ptr + x_at + channels * x_channel, mask=mask, other=0.0).to(tl.float32)
            squares += x * x
        scale = tl.rsqrt(tl.sum(squares, axis=0) / n_channels + eps)
        for first in range(0, n_channels, CHANNELS):
            channels = (first + tl.arange(0, CHANNELS)).to(tl.int64)[:, None]
            mask = inside & (channels < n_channels)
            x = tl.load(x_ptr + x_at + channels * x_channel, mask=mask, other=0.0).to(tl.float32)
            tl.store(out_ptr + out_at + channels * out_channel, x * scale[None, :], mask=mask)


def kernel_function(x):
    n_images, n_channels, height, width = x.shape
    out = torch.empty_like(x)
    n_all = n_images * height * width
    channels = min(triton.next_power_of_2(n_channels), TILE_ELEMENTS // MIN_PIXELS)
    pixels = min(TILE_ELEMENTS // channels, triton.next_power_of_2(n_all))
    flat_strip[(triton.cdiv(n_all, pixels),)](
        x, out, x.stride(0), x.stride(2), x.stride(1), x.stride(3),
        out.stride(0), out.stride(2), out.stride(1), out.stride(3),
        n_channels, height, width, n_all, EPS,
        CHANNELS=channels, PIXELS=pixels, ONE_TILE=channels >= n_channels,
        num_warps=min(32, max(1, channels * pixels // (32 * ELEMENTS_PER_THREAD))),
    )  # fmt: skip
    return out
