import torch
import torch.nn as nn


class Model(nn.Module):
    """Cross-entropy of scores against class labels, averaged over the batch."""

    def forward(self, scores, labels):
        return nn.functional.cross_entropy(scores, labels)


batch_size = 4096
num_classes = 1000


def get_inputs():
    return [torch.rand(batch_size, num_classes), torch.randint(0, num_classes, (batch_size,))]


def get_init_inputs():
    return []
