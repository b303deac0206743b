"""softmax(q k^T / sqrt(head_dim) + mask) v for two heads, the mask minus infinity above the diagonal."""

import torch

from sample_kernels.distributions import draw


def reference(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def make_inputs(shape, generator, device, distribution, dtype="float16"):
    how = {"generator": generator, "device": device, "dtype": dtype}
    size = (1, 2, shape["seq"], shape["head_dim"])
    return draw(distribution, size, **how), draw(distribution, size, **how), draw(distribution, size, **how)
