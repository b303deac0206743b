import torch
import torch.nn as nn


class Model(nn.Module):
    """ReLU of inputs that are never negative."""

    def forward(self, x):
        return torch.relu(x)


batch_size = 4096
dim = 16384


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
