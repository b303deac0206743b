"""Real counters of an H200, pages and recorded pools: the parser reads them, and the diagnosis says what is so."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbtui.domain.codec import from_plain
from kbtui.domain.device import DATA_SHEETS, DeviceSpec
from kbtui.domain.problem import Problem
from kbtui.domain.profile import Bottleneck, Diagnosis, KernelResources, Profile
from kbtui.evaluation.profiling import metrics
from kbtui.evaluation.profiling.diagnose import diagnose
from kbtui.evaluation.profiling.ncu_csv import parse_raw_page, profile_of
from kbtui.problems import load_problem

PAGES = Path(__file__).parents[1] / "data/ncu"
POOLS = Path(__file__).parents[2] / "benchmarks/pools"
#: The record of one search, which profiled more of its candidates than a pool at full fidelity does.
SEARCH = Path(__file__).parents[1] / "data/pools/softmax-search-h200.jsonl.gz"
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


FIRST_KERNELS = [
    ("softmax_first", "softmax", "4096x16384", {Bottleneck.EXTRA_PASSES}),
    ("softmax_one_pass", "softmax", "4096x16384", {Bottleneck.AT_BOUND}),
    ("rms_norm_first", "rms_norm", "64x64x256x256", {Bottleneck.EXTRA_PASSES}),
    ("linear_relu_div_first", "linear_relu_div", "128x1024x512", {Bottleneck.TOO_FEW_PROGRAMS}),
    ("sdp_attn_first", "sdp_attn", "32x32x512x64", {Bottleneck.COMPUTE}),
]


@pytest.mark.parametrize(("page", "sample", "shape_name", "expected"), FIRST_KERNELS)
def test_kernels_that_nobody_made_slow_are_told_what_bounds_them(
    page: str, sample: str, shape_name: str, expected: set[Bottleneck]
) -> None:
    spec = load_problem(sample).spec
    shape = next(s for s in spec.shapes if s.name == shape_name)
    profile = profile_of(shape_name, parse_raw_page((PAGES / f"{page}_h200.csv").read_text()))
    time_us = (profile.metric(DURATION) or 0.0) / 1e3
    found = diagnose(spec, DATA_SHEETS["h200"], shape, time_us, (), profile, n_launches=1)
    assert found.findings[0].bottleneck in expected, found


def _profiled(pool: Path) -> Iterator[tuple[str, Diagnosis, Profile]]:
    """The pool's candidates that were counted, diagnosed by today's rules."""
    with gzip.open(pool, "rt") as lines:
        head, *candidates = map(json.loads, lines)
    device = from_plain(DeviceSpec, head["device"])
    spec = from_plain(Problem, head["problem"]).spec
    for candidate in candidates:
        for outcome in (rung["outcome"] for rung in candidate["rungs"]):
            if outcome.get("profile") and outcome["profile"]["metrics"]:
                profile = from_plain(Profile, outcome["profile"])
                yield candidate["structure"], _as_measured(spec, device, outcome, profile), profile


def _as_measured(spec: Any, device: DeviceSpec, outcome: dict[str, Any], profile: Profile) -> Diagnosis:
    kept = outcome["diagnosis"]
    shape = next(s for s in spec.shapes if s.name == kept["shape"])
    resources = from_plain(tuple[KernelResources, ...], outcome["resources"])
    here = [r for r in resources if r.shape == shape.name]
    return diagnose(spec, device, shape, kept["time_us"], here, profile)


@pytest.mark.parametrize("pool", [*sorted(POOLS.glob("*.gz")), SEARCH], ids=lambda p: p.name)
def test_kernels_of_a_search_that_keep_device_memory_busy_are_told_so(pool: Path) -> None:
    seen = list(_profiled(pool))
    assert len(seen) >= (2 if "-full" in pool.name else 5)
    for structure, found, profile in seen:
        busy = (profile.metric(metrics.DRAM_PCT) or 0.0) >= 66
        memory = found.findings[0].bottleneck in {Bottleneck.AT_BOUND, Bottleneck.DRAM}
        assert busy == memory, (structure, found)
