"""silu(gate) * up (Shazeer 2020, arXiv:2002.05202)."""

import torch

from sample_kernels.distributions import draw


def reference(gate, up):
    return torch.nn.functional.silu(gate) * up


def make_inputs(shape, generator, device, distribution, dtype="float16"):
    how = {"generator": generator, "device": device, "dtype": dtype}
    size = (shape["rows"], shape["cols"])
    return draw(distribution, size, **how), draw(distribution, size, **how)
