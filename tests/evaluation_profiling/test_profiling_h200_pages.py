"""Real pages of Nsight Compute from an H200: the parser reads them and the diagnosis says what was planted."""

from pathlib import Path

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.profile import Bottleneck, KernelResources
from kbtui.evaluation.profiling.diagnose import diagnose
from kbtui.evaluation.profiling.ncu_csv import parse_raw_page, profile_of
from kbtui.problems import load_problem

PAGES = Path(__file__).parents[1] / "data/ncu"
PLANTED = {
    "softmax_one_pass": {Bottleneck.AT_BOUND, Bottleneck.DRAM},
    "softmax_one_program": {Bottleneck.TOO_FEW_PROGRAMS},
    "softmax_uncoalesced": {Bottleneck.UNCOALESCED},
    "softmax_first": {Bottleneck.EXTRA_PASSES, Bottleneck.DRAM},
}
SHAPE = "4096x16384"
DURATION = "gpu__time_duration.sum"


@pytest.mark.parametrize("page", sorted(PAGES.glob("*_h200.csv")), ids=lambda p: p.stem)
def test_every_page_parses_to_a_kernel_with_its_duration(page: Path) -> None:
    launches = parse_raw_page(page.read_text())
    profile = profile_of("shape", launches)
    assert profile.kernels
    assert (profile.metric(DURATION) or 0) > 1_000
    assert profile.stalls
    assert sum(percent for _, percent in profile.stalls) <= 101.0


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_the_first_finding_is_what_was_planted(name: str) -> None:
    problem = load_problem("softmax")
    shape = next(s for s in problem.spec.shapes if s.name == SHAPE)
    profile = profile_of(SHAPE, parse_raw_page((PAGES / f"{name}_h200.csv").read_text()))
    time_us = (profile.metric(DURATION) or 0.0) / 1e3
    grid = (1, 1, 1) if name == "softmax_one_program" else (4096, 1, 1)
    resources = (KernelResources(profile.kernels[0], SHAPE, grid, 8, 3, 32, 0, 0, 1.0, "warps"),)
    found = diagnose(problem.spec, DATA_SHEETS["h200"], shape, time_us, resources, profile)
    assert found.findings[0].bottleneck in PLANTED[name], found.sentence
    assert found.source == "counters"
