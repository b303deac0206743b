"""Whether a problem's gate can tell a kernel that computes from one that does not: null kernels are run against it.

A null kernel is never a source: its answers are made from the reference, in a trusted child, and judged as the gate
judges a candidate's. Roles and what they use import torch; ``vet``, ``plan``, ``advice`` and ``cache`` do not.
"""
