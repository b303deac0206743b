"""Deterministic edits of any Triton source, and the generator that chooses among them by the diagnosis."""

from kbtui.generation.rewrites import (
    alignment_hints,
    cache_modifier,
    dot_precision,
    eviction_policy,
    exp2,
    flatten_loops,
    freeze_autotune,
    grid_swizzle,
    known_sizes,
    max_registers,
    narrow_offsets,
    num_stages,
    num_warps,
    peel_masked_tail,
    pipelined_range,
    reciprocal,
    tile_size,
    unrolled_range,
)
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target

#: Coarse to fine: on a tie the earlier is tried first.
REWRITES: tuple[Rewrite, ...] = tuple(
    module.REWRITE
    for module in (
        freeze_autotune,
        dot_precision,
        tile_size,
        num_warps,
        pipelined_range,
        eviction_policy,
        grid_swizzle,
        num_stages,
        peel_masked_tail,
        known_sizes,
        exp2,
        reciprocal,
        alignment_hints,
        narrow_offsets,
        cache_modifier,
        flatten_loops,
        unrolled_range,
        max_registers,
    )
)

__all__ = ["REWRITES", "Edit", "Rewrite", "Target"]
