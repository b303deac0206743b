"""RMS normalisation over dimension 1: x / sqrt(mean(x^2) + eps) (Zhang and Sennrich 2019, without a gain)."""

import torch

from sample_kernels.distributions import draw

EPS = 1e-5


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: (batch, features, height, width) -> the same."""
    return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + EPS)


def make_inputs(shape, generator, device, distribution, dtype="float32"):
    """``tiny`` makes the mean square smaller than eps, so that eps cannot be left out."""
    size = (shape["batch"], shape["features"], shape["height"], shape["width"])
    x = draw(distribution, size, generator=generator, device=device, dtype=dtype, wide=100.0, offset=10.0, tiny=1e-3)
    return (x,)
