"""RMS norm over dimension 1 of (images, channels, height, width), channels split, parts added by atomics.

y[n, c, p] = x[n, c, p] / sqrt(mean_c x[n, c, p]^2 + eps) (Zhang and Sennrich 2019, arXiv:1910.07467, without a gain).
Program (strip of pixels, part of the channels) adds the sums of squares of its part to the pixels' own with atomics;
the second kernel reads one sum a pixel and scales one part. For many channels over few pixels: as many parts as give
every SM PROGRAMS_PER_SM programs. The order of additions, and with it the last bit, may differ from call to call.
"""

import torch
import triton
import triton.language as tl

EPS = 1e-5
CHANNELS = 16
PIXELS = 256
PROGRAMS_PER_SM = 4
MAX_PARTS = 32
NUM_WARPS = 4
STAGES = 2
N_SMS = 132


@triton.jit
def add_squares(
    x_ptr, sums_ptr, x_image, x_row, x_channel, x_pixel, n_channels, n_rows, n_pixels, n_strips,
    part_channels, n_parts, CHANNELS: tl.constexpr, PIXELS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0) % n_parts
    strip = (tl.program_id(0) // n_parts) % n_strips
    line = (tl.program_id(0) // (n_parts * n_strips)).to(tl.int64)
    x_ptr += (line // n_rows) * x_image + (line % n_rows) * x_row
    pixels = strip * PIXELS + tl.arange(0, PIXELS)
    stop = tl.minimum((part + 1) * part_channels, n_channels)
    squares = tl.zeros((CHANNELS, PIXELS), tl.float32)
    for first in tl.range(part * part_channels, stop, CHANNELS, num_stages=STAGES):
        channels = (first + tl.arange(0, CHANNELS)).to(tl.int64)[:, None]
        mask = (channels < stop) & (pixels < n_pixels)[None, :]
        x_ptrs = x_ptr + channels * x_channel + pixels[None, :] * x_pixel
        x = tl.load(x_ptrs, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        squares += x * x
    tl.atomic_add(sums_ptr + line * n_pixels + pixels, tl.sum(squares, axis=0), mask=pixels < n_pixels)


@triton.jit
def scale_part(
    x_ptr, out_ptr, sums_ptr, x_image, x_row, x_channel, x_pixel, out_image, out_row, out_channel, out_pixel,
    n_channels, n_rows, n_pixels, n_strips, part_channels, n_parts, eps,
    CHANNELS: tl.constexpr, PIXELS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0) % n_parts
    strip = (tl.program_id(0) // n_parts) % n_strips
    line = (tl.program_id(0) // (n_parts * n_strips)).to(tl.int64)
    x_ptr += (line // n_rows) * x_image + (line % n_rows) * x_row
    out_ptr += (line // n_rows) * out_image + (line % n_rows) * out_row
    pixels = strip * PIXELS + tl.arange(0, PIXELS)
    total = tl.load(sums_ptr + line * n_pixels + pixels, mask=pixels < n_pixels, other=0.0)
    scale = tl.rsqrt(total / n_channels + eps)
    stop = tl.minimum((part + 1) * part_channels, n_channels)
    for first in tl.range(part * part_channels, stop, CHANNELS, num_stages=STAGES):
        channels = (first + tl.arange(0, CHANNELS)).to(tl.int64)[:, None]
        mask = (channels < stop) & (pixels < n_pixels)[None, :]
        x_ptrs = x_ptr + channels * x_channel + pixels[None, :] * x_pixel
        x = tl.load(x_ptrs, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        out_ptrs = out_ptr + channels * out_channel + pixels[None, :] * out_pixel
        tl.store(out_ptrs, x * scale[None, :], mask=mask, eviction_policy="evict_first")


def kernel_function(x):
    n_images, n_channels, height, width = x.shape
    out = torch.empty_like(x)
    # Rows of an image follow one another in memory in nearly every tensor: then an image is one line of pixels.
    joined = x.stride(2) == width * x.stride(3) and out.stride(2) == width * out.stride(3)
    n_rows, n_pixels = (1, height * width) if joined else (height, width)
    channels = min(CHANNELS, triton.next_power_of_2(n_channels))
    pixels = min(PIXELS, triton.next_power_of_2(n_pixels))
    n_strips = triton.cdiv(n_pixels, pixels)
    n_lines = n_images * n_rows
    wanted_parts = min(MAX_PARTS, max(1, N_SMS * PROGRAMS_PER_SM // (n_lines * n_strips)))
    part_channels = triton.cdiv(triton.cdiv(n_channels, wanted_parts), channels) * channels
    n_parts = triton.cdiv(n_channels, part_channels)
    sums = torch.zeros((n_lines, n_pixels), dtype=torch.float32, device=x.device)
    grid = (n_lines * n_strips * n_parts,)
    add_squares[grid](
        x, sums, x.stride(0), x.stride(2), x.stride(1), x.stride(3), n_channels, n_rows, n_pixels, n_strips,
        part_channels, n_parts, CHANNELS=channels, PIXELS=pixels, STAGES=STAGES, num_warps=NUM_WARPS,
    )  # fmt: skip
    scale_part[grid](
        x, out, sums, x.stride(0), x.stride(2), x.stride(1), x.stride(3),
        out.stride(0), out.stride(2), out.stride(1), out.stride(3),
        n_channels, n_rows, n_pixels, n_strips, part_channels, n_parts, EPS,
        CHANNELS=channels, PIXELS=pixels, STAGES=STAGES, num_warps=NUM_WARPS,
    )  # fmt: skip
    return out
