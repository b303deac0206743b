"""Softmax over each row: exp(x - max(x)) / sum(exp(x - max(x)))."""

import torch

from sample_kernels.distributions import draw


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: (rows, cols) -> (rows, cols)."""
    return torch.softmax(x, dim=-1)


def make_inputs(shape, generator, device, distribution, dtype="float32"):
    """``wide`` and ``offset`` overflow exp in fp32 where the row's maximum is not subtracted first, ``structured``
    where only the maximum of a part of the row is."""
    size = (shape["rows"], shape["cols"])
    how = {"generator": generator, "device": device, "dtype": dtype}
    x = draw(distribution, size, **how, wide=30.0, offset=100.0, tiny=1e-2, ramp=60.0)
    return (x,)
