"""Grouped convolution, 3x3, stride 1, padding 1, no bias."""

import torch

from sample_kernels.distributions import draw


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x: (batch, c_in, height, width), weight: (c_out, c_in / groups, 3, 3) -> (batch, c_out, height, width)."""
    return torch.nn.functional.conv2d(x, weight, padding=1, groups=x.shape[1] // weight.shape[1])


def make_inputs(shape, generator, device, distribution, dtype="float32"):
    """Weights are N(0, 1 / fan_in), as a trained layer's are."""
    in_per_group = shape["c_in"] // shape["groups"]
    how = {"generator": generator, "device": device, "dtype": dtype, "wide": 100.0, "offset": 10.0}
    x = draw(distribution, (shape["batch"], shape["c_in"], shape["height"], shape["width"]), **how)
    weight = draw("normal", (shape["c_out"], in_per_group, 3, 3), **how) * (9 * in_per_group) ** -0.5
    return x, weight
