"""Slow because one warp walks all channels of 128 pixels: 256 warps on a chip that holds 8448."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_in_one_warp(x_ptr, out_ptr, n_features, n_pixels, n_tiles, eps, BLOCK: tl.constexpr):
    image = (tl.program_id(0) // n_tiles).to(tl.int64)
    pixels = (tl.program_id(0) % n_tiles) * BLOCK + tl.arange(0, BLOCK)
    inside = pixels < n_pixels
    first = image * n_features * n_pixels + pixels
    squares = tl.zeros((BLOCK,), tl.float32)
    for feature in range(n_features):
        x = tl.load(x_ptr + first + feature * n_pixels, mask=inside, other=0.0).to(tl.float32)
        squares += x * x
    rms = tl.sqrt(squares / n_features + eps)
    for feature in range(n_features):
        x = tl.load(x_ptr + first + feature * n_pixels, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + first + feature * n_pixels, x / rms, mask=inside)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_images, n_features, height, width = x.shape
    n_pixels = height * width
    out = torch.empty_like(x)
    n_tiles = triton.cdiv(n_pixels, 128)
    rms_norm_in_one_warp[(n_images * n_tiles,)](x, out, n_features, n_pixels, n_tiles, 1e-5, BLOCK=128, num_warps=1)
    return out
