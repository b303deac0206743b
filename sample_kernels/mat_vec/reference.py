"""Matrix-vector product: out[i] = sum over j of matrix[i, j] * vector[j]."""

import torch

from sample_kernels.distributions import draw


def reference(matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """matrix: (rows, cols), vector: (cols,) -> (rows,)."""
    return torch.mv(matrix, vector)


def make_inputs(shape, generator, device, distribution, dtype="float32"):
    """Each row holds a share of the vector, so that no sum nearly cancels: relative error would say nothing there."""
    rows, cols = shape["rows"], shape["cols"]
    how = {"generator": generator, "device": device, "dtype": dtype, "wide": 100.0, "offset": 3.0}
    vector = draw(distribution, (cols,), **how)
    matrix = draw(distribution, (rows, cols), **how).add_(vector, alpha=0.25)
    return matrix, vector
