"""x / sqrt(mean(x^2) + 1e-5) * gain over rows."""

import torch

from sample_kernels.distributions import draw


def reference(x, gain):
    return x * torch.rsqrt(x.float().square().mean(dim=-1, keepdim=True) + 1e-5).to(x.dtype) * gain


def make_inputs(shape, generator, device, distribution, dtype="float16"):
    how = {"generator": generator, "device": device, "dtype": dtype}
    return draw(distribution, (shape["rows"], shape["cols"]), **how), draw("normal", (shape["cols"],), **how)
