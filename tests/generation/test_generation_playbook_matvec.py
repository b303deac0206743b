"""Matrix-vector kernels whose sizes are compiled in: huge ones lose no loop, and no mask that is needed."""

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.generation.playbook import load_entries
from kbtui.problems import load_problem
from tests.generation.test_generation_playbook_kernels import Job, jobs_on

H200 = DATA_SHEETS["h200"]


def on(name: str, *sizes: tuple[int, int], **params: int) -> list[Job]:
    """That structure on matrices of these rows and columns."""
    spec = load_problem("mat_vec").spec
    of = next(e for e in load_entries("mat_vec") if e.name == name)
    source = of.instantiate(of.defaults() | params, H200, spec)
    return jobs_on("mat_vec", [(name, source)], [({"rows": r, "cols": c}, "contiguous") for r, c in sizes])


@pytest.mark.parametrize("name", [e.name for e in load_entries("mat_vec")])
def test_rows_of_more_than_two_thousand_million_elements_are_walked(name, ttir_for):
    sizes = (2**31 - 1, 2**31, 2**31 + 4096, 2**32 - 1, 2**33)

    for cols, row in zip(sizes, ttir_for(90, on(name, *((1, n) for n in sizes))), strict=True):
        assert "scf.for" in row["ttir"][0], (cols, row)
        assert row["ttir"][0].count("tt.load") >= 2, cols


def test_rows_are_masked_unless_programs_divide_them(ttir_for):
    odd, even, whole = ttir_for(90, on("matvec_row_block", (7, 4096), (6, 4096), (8, 4096), ROWS=4))
    comparisons = [row["ttir"][0].count("arith.cmpi") for row in (odd, even, whole)]

    assert comparisons[0] == comparisons[1] > comparisons[2]
