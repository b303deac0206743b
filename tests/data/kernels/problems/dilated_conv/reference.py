"""Grouped convolution, 3x3, padding 3, dilation 2, no bias."""

import torch

from sample_kernels.distributions import draw


def reference(x, weight):
    """x: (batch, c_in, height, width), weight: (c_out, c_in / groups, 3, 3)."""
    groups = x.shape[1] // weight.shape[1]
    return torch.nn.functional.conv2d(x, weight, padding=3, dilation=2, groups=groups)


def make_inputs(shape, generator, device, distribution, dtype="float32"):
    how = {"generator": generator, "device": device, "dtype": dtype}
    x = draw(distribution, (shape["batch"], shape["c_in"], shape["height"], shape["width"]), **how)
    return x, draw(distribution, (shape["c_out"], shape["c_in"] // shape["groups"], 3, 3), **how)
