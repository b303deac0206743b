"""Deterministic edits of any Triton source, and the generator that chooses among them by the diagnosis."""

from kbtui.generation.rewrites import (
    accumulate_type,
    alignment_hints,
    cache_modifier,
    dot_precision,
    even_tiles,
    eviction_policy,
    exp2,
    flatten_loops,
    freeze_autotune,
    grid_swizzle,
    known_sizes,
    loop_order,
    max_registers,
    narrow_offsets,
    num_stages,
    num_warps,
    online_pass,
    peel_masked_tail,
    persistent_grid,
    pipelined_range,
    reciprocal,
    rows_per_program,
    split_reduction,
    tile_size,
    unrolled_range,
)
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target

#: Coarse to fine: on a tie the earlier is tried first.
REWRITES: tuple[Rewrite, ...] = tuple(
    module.REWRITE
    for module in (
        freeze_autotune,
        online_pass,
        dot_precision,
        split_reduction,
        tile_size,
        num_warps,
        pipelined_range,
        eviction_policy,
        grid_swizzle,
        persistent_grid,
        rows_per_program,
        num_stages,
        even_tiles,
        peel_masked_tail,
        loop_order,
        known_sizes,
        exp2,
        reciprocal,
        accumulate_type,
        alignment_hints,
        narrow_offsets,
        cache_modifier,
        flatten_loops,
        unrolled_range,
        max_registers,
    )
)

__all__ = ["REWRITES", "Edit", "Rewrite", "Target"]
