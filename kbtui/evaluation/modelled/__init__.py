"""The time of a kernel that no GPU has run: trace its memory accesses, then apply a stated formula. A model."""
