"""`kbtui bench`: times of kernels beside PyTorch's, for a person who runs no search."""
