"""Slow because every element finds its place by dividing 64-bit indices, once a feature and pass."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_by_index(x_ptr, out_ptr, n_features, n_pixels, n_columns, eps, BLOCK: tl.constexpr):
    columns = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < n_columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for feature in range(n_features):
        flat = columns * n_features + feature
        image = flat // (n_pixels * n_features)
        pixel = (flat // n_features) % n_pixels
        channel = flat % n_features
        x = tl.load(x_ptr + (image * n_features + channel) * n_pixels + pixel, mask=inside, other=0.0)
        squares += x * x
    rms = tl.sqrt(squares / n_features + eps)
    for feature in range(n_features):
        flat = columns * n_features + feature
        image = flat // (n_pixels * n_features)
        pixel = (flat // n_features) % n_pixels
        channel = flat % n_features
        at = (image * n_features + channel) * n_pixels + pixel
        x = tl.load(x_ptr + at, mask=inside, other=0.0)
        tl.store(out_ptr + at, x / rms, mask=inside)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    n_images, n_features, height, width = x.shape
    n_pixels = height * width
    n_columns = n_images * n_pixels
    out = torch.empty_like(x)
    grid = (triton.cdiv(n_columns, 512),)
    rms_norm_by_index[grid](x, out, n_features, n_pixels, n_columns, 1e-5, BLOCK=512, num_warps=4)
    return out
