"""Slow because a program takes the features of one pixel, which lie an image apart: 4 bytes used of each 32."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_one_pixel(x_ptr, out_ptr, n_features, n_pixels, eps, BLOCK: tl.constexpr):
    image = (tl.program_id(0) // n_pixels).to(tl.int64)
    features = tl.arange(0, BLOCK)
    at = (image * n_features + features) * n_pixels + tl.program_id(0) % n_pixels
    x = tl.load(x_ptr + at, mask=features < n_features, other=0.0)
    rms = tl.sqrt(tl.sum(x * x, axis=0) / n_features + eps)
    tl.store(out_ptr + at, x / rms, mask=features < n_features)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_images, n_features, height, width = x.shape
    n_pixels = height * width
    out = torch.empty_like(x)
    block = triton.next_power_of_2(n_features)
    rms_norm_one_pixel[(n_images * n_pixels,)](x, out, n_features, n_pixels, 1e-5, BLOCK=block, num_warps=1)
    return out
