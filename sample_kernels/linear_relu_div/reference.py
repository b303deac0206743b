"""max(x @ weight^T + bias, 0) / divisor."""

import torch

from sample_kernels.distributions import draw

DIVISOR = 2.0


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: (batch, n_in), weight: (n_out, n_in), bias: (n_out,) -> (batch, n_out)."""
    return torch.relu(torch.nn.functional.linear(x, weight, bias)) / DIVISOR


def make_inputs(shape, generator, device, distribution, dtype="float32"):
    """Weights are N(0, 1 / n_in), as a trained layer's are; the bias has the products' magnitude, so both count."""
    batch, n_in, n_out = shape["batch"], shape["n_in"], shape["n_out"]
    how = {"generator": generator, "device": device, "dtype": dtype, "wide": 30.0, "offset": 3.0, "tiny": 1e-2}
    x = draw(distribution, (batch, n_in), **how)
    weight = draw("normal", (n_out, n_in), **how) * n_in**-0.5
    bias = draw(distribution if distribution in ("wide", "tiny") else "normal", (n_out,), **how)
    return x, weight, bias
