"""Slow because Python starts a kernel for each image: 40 small ones, one after the other."""

import torch
import triton
import triton.language as tl


@triton.jit
def group_conv_image(
    x_ptr, weight_ptr, out_ptr, c_in, c_out, height, width, in_per_group, out_per_group, n_tiles,
    BLOCK: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(0) // n_tiles
    first_in = (channel // out_per_group) * in_per_group
    n_pixels = height * width
    pixels = (tl.program_id(0) % n_tiles) * BLOCK + tl.arange(0, BLOCK)
    rows = pixels // width
    columns = pixels % width

    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(in_per_group):
        x_plane = x_ptr + (first_in + i).to(tl.int64) * n_pixels
        w_plane = weight_ptr + (channel * in_per_group + i) * 9
        for dy in tl.static_range(3):
            for dx in tl.static_range(3):
                y = rows + (dy - 1)
                x = columns + (dx - 1)
                inside = (pixels < n_pixels) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
                pixel = tl.load(x_plane + y * width + x, mask=inside, other=0.0).to(tl.float32)
                total += pixel * tl.load(w_plane + dy * 3 + dx).to(tl.float32)

    out_plane = out_ptr + channel.to(tl.int64) * n_pixels
    tl.store(out_plane + pixels, total.to(out_ptr.dtype.element_ty), mask=pixels < n_pixels)


def kernel_function(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    n_images, c_in, height, width = x.shape
    c_out, in_per_group = weight.shape[:2]
    groups = c_in // in_per_group
    out = torch.empty((n_images, c_out, height, width), device=x.device, dtype=x.dtype)
    n_tiles = triton.cdiv(height * width, 256)
    for image in range(n_images):
        group_conv_image[(c_out * n_tiles,)](
            x[image], weight, out[image], c_in, c_out, height, width, in_per_group, c_out // groups, n_tiles,
            BLOCK=256, num_warps=4,
        )  # fmt: skip
    return out
