"""Slow because one warp keeps 512 channels of 64 pixels: 1024 values a thread, four times what registers hold."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_in_registers(
    x_ptr, out_ptr, n_features, n_pixels, n_tiles, eps, CHANNELS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    image = (tl.program_id(0) // n_tiles).to(tl.int64)
    pixels = (tl.program_id(0) % n_tiles) * BLOCK + tl.arange(0, BLOCK)
    channels = tl.arange(0, CHANNELS)
    at = image * n_features * n_pixels + channels[:, None] * n_pixels + pixels[None, :]
    inside = (channels[:, None] < n_features) & (pixels[None, :] < n_pixels)
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    rms = tl.sqrt(tl.sum(x * x, axis=0) / n_features + eps)
    tl.store(out_ptr + at, x / rms[None, :], mask=inside)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_images, n_features, height, width = x.shape
    n_pixels = height * width
    out = torch.empty_like(x)
    n_tiles = triton.cdiv(n_pixels, 64)
    channels = max(2, triton.next_power_of_2(n_features))
    rms_norm_in_registers[(n_images * n_tiles,)](
        x, out, n_features, n_pixels, n_tiles, 1e-5, CHANNELS=channels, BLOCK=64, num_warps=1
    )
    return out
