"""RMS norm over dimension 1 of (images, channels, height, width) by as many programs as the chip holds.

y[n, c, p] = x[n, c, p] / sqrt(mean_c x[n, c, p]^2 + eps) (Zhang and Sennrich 2019, arXiv:1910.07467, without a gain).
Each program loops over strips of pixels, the next strip loading while this one is scaled (software pipelining, as many
stages as SHARED_BYTES holds). Where MIN_PIXELS pixels of all channels do not fit in TILE_ELEMENTS, channels are walked
twice in tiles.
"""

import torch
import triton
import triton.language as tl

EPS = 1e-5
TILE_ELEMENTS = 4096
MIN_PIXELS = 16
ELEMENTS_PER_THREAD = 32
PROGRAMS_PER_SM = 4
STAGES = 2
N_SMS = 132
SHARED_BYTES = 166912


@triton.jit
def strips(
    x_ptr, out_ptr, x_image, x_row, x_channel, x_pixel, out_image, out_row, out_channel, out_pixel,
    n_channels, n_rows, n_pixels, n_strips, n_work, eps,
    CHANNELS: tl.constexpr, PIXELS: tl.constexpr, STAGES: tl.constexpr, ONE_TILE: tl.constexpr,
):  # fmt: skip
    for work in tl.range(tl.program_id(0), n_work, tl.num_programs(0), num_stages=STAGES):
        line = tl.cast(work // n_strips, tl.int64)
        x_line = x_ptr + (line // n_rows) * x_image + (line % n_rows) * x_row
        out_line = out_ptr + (line // n_rows) * out_image + (line % n_rows) * out_row
        pixels = (work % n_strips) * PIXELS + tl.arange(0, PIXELS)[None, :]
        if ONE_TILE:
            channels = tl.arange(0, CHANNELS).to(tl.int64)[:, None]
            mask = (channels < n_channels) & (pixels < n_pixels)
            x = tl.load(x_line + channels * x_channel + pixels * x_pixel, mask=mask, other=0.0).to(tl.float32)
            scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_channels + eps)
            tl.store(out_line + channels * out_channel + pixels * out_pixel, x * scale[None, :], mask=mask)
        else:
            squares = tl.zeros((CHANNELS, PIXELS), tl.float32)
            for first in range(0, n_channels, CHANNELS):
                channels = (first + tl.arange(0, CHANNELS)).to(tl.int64)[:, None]
                mask = (channels < n_channels) & (pixels < n_pixels)
                x = tl.load(x_line + channels * x_channel + pixels * x_pixel, mask=mask, other=0.0).to(tl.float32)
                squares += x * x
            scale = tl.rsqrt(tl.sum(squares, axis=0) / n_channels + eps)
            for first in range(0, n_channels, CHANNELS):
                channels = (first + tl.arange(0, CHANNELS)).to(tl.int64)[:, None]
                mask = (channels < n_channels) & (pixels < n_pixels)
                x = tl.load(x_line + channels * x_channel + pixels * x_pixel, mask=mask, other=0.0).to(tl.float32)
                tl.store(out_line + channels * out_channel + pixels * out_pixel, x * scale[None, :], mask=mask)


def kernel_function(x):
    n_images, n_channels, height, width = x.shape
    out = torch.empty_like(x)
    # Rows of an image follow one another in memory in nearly every tensor: then an image is one line of pixels.
    joined = x.stride(2) == width * x.stride(3) and out.stride(2) == width * out.stride(3)
    n_rows, n_pixels = (1, height * width) if joined else (height, width)
    channels = min(triton.next_power_of_2(n_channels), TILE_ELEMENTS // MIN_PIXELS)
    pixels = min(TILE_ELEMENTS // channels, triton.next_power_of_2(n_pixels))
    n_strips = triton.cdiv(n_pixels, pixels)
    n_work = n_images * n_rows * n_strips
    one_tile = channels >= n_channels
    # Every stage but one holds a tile in shared memory, beside a little for the reductions.
    stages = min(STAGES, 1 + (SHARED_BYTES - 8192) // (channels * pixels * x.element_size())) if one_tile else 1
    strips[(min(n_work, N_SMS * PROGRAMS_PER_SM),)](
        x, out, x.stride(0), x.stride(2), x.stride(1), x.stride(3),
        out.stride(0), out.stride(2), out.stride(1), out.stride(3),
        n_channels, n_rows, n_pixels, n_strips, n_work, EPS,
        CHANNELS=channels, PIXELS=pixels, STAGES=stages, ONE_TILE=one_tile,
        num_warps=min(32, max(1, channels * pixels // (32 * ELEMENTS_PER_THREAD))),
    )  # fmt: skip
    return out
