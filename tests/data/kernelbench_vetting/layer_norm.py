import torch
import torch.nn as nn


class Model(nn.Module):
    """Layer normalisation over the last three axes, with a gain and a bias."""

    def __init__(self, normalized_shape):
        super().__init__()
        self.norm = nn.LayerNorm(normalized_shape)

    def forward(self, x):
        return self.norm(x)


batch_size = 16
features = 32
height = 64
width = 64


def get_inputs():
    return [torch.rand(batch_size, features, height, width)]


def get_init_inputs():
    return [(features, height, width)]
