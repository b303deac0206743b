"""Edits that move work between programs, tiles and passes keep playbook kernels right on shapes wider than a tile.

The study of the rewrites takes one application of each to a kernel, on that kernel's own shape; here it is all of them.
"""

import importlib

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.generation.playbook import load_entries
from kbtui.generation.rewrites.rewrite import Target
from kbtui.problems import load_problem
from tests.generation.test_generation_playbook_kernels import assert_right, jobs_on

A100 = DATA_SHEETS["a100"]
MOVE_WORK = (
    "even_tiles", "flatten_loops", "grid_swizzle", "known_sizes", "loop_order", "num_stages", "online_pass",
    "peel_masked_tail", "persistent_grid", "rows_per_program", "split_reduction", "tile_size",
)  # fmt: skip
#: Odd sizes, the larger of them beyond one tile of most kernels' defaults.
WIDE = {
    "group_conv": {"batch": 1, "c_in": 3, "c_out": 20, "height": 3, "width": 5, "groups": 1},
    "linear_relu_div": {"batch": 37, "n_in": 150, "n_out": 70},
    "mat_vec": {"rows": 37, "cols": 2500},
    "rms_norm": {"batch": 1, "features": 300, "height": 3, "width": 3},
    "sdp_attn": {"batch": 1, "heads": 1, "seq": 150, "head_dim": 70},
    "softmax": {"rows": 5, "cols": 3001},
}


@pytest.mark.slow
@pytest.mark.parametrize("problem", WIDE)
def test_every_edit_that_moves_work_keeps_every_structure_right(problem, interpret):
    spec = load_problem(problem).spec
    edited = []
    for entry in load_entries(spec.family):
        source = entry.instantiate(entry.defaults(), A100, spec)
        for name in MOVE_WORK:
            rewrite = importlib.import_module(f"kbtui.generation.rewrites.{name}").REWRITE
            edits = rewrite.apply(source, Target.of(A100, spec))
            edited += [(f"{entry.name} {name}: {edit.summary}", edit.source) for edit in edits]
    assert len(edited) >= 80

    assert_right(jobs := jobs_on(problem, edited, [(WIDE[problem], "contiguous")]), interpret(jobs))
