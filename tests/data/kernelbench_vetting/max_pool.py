import torch
import torch.nn as nn


class Model(nn.Module):
    """Maxima over windows of four by four."""

    def __init__(self, kernel_size):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size)

    def forward(self, x):
        return self.pool(x)


batch_size = 16
channels = 32
height = 256
width = 256
kernel_size = 4


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [kernel_size]
