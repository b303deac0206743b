"""Algorithm 1: decide, act, record."""
