"""Attention: softmax(q k^T / sqrt(head_dim)) v, without a mask (Vaswani et al. 2017, equation 1)."""

import torch

from sample_kernels.distributions import draw


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q, k, v: (batch, heads, seq, head_dim) -> the same."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def make_inputs(shape, generator, device, distribution, dtype="float16"):
    """Queries and keys keep a spread that makes the softmax uneven: on even weights the mean of v would pass."""
    size = (shape["batch"], shape["heads"], shape["seq"], shape["head_dim"])
    how = {"generator": generator, "device": device, "dtype": dtype}
    of_scores = "normal" if distribution == "tiny" else distribution
    q = draw(of_scores, size, **how, wide=2.0, offset=1.0)
    k = draw(of_scores, size, **how, wide=2.0, offset=1.0)
    v = draw(distribution, size, **how, wide=30.0, offset=1.0, tiny=1e-2)
    return q, k, v
