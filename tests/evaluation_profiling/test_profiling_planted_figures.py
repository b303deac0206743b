"""What was kept of the planted kernels on an H200: the diagnosis names the plants, with counters and without."""

import json
from pathlib import Path
from typing import Any

import pytest

from kbtui.domain.codec import from_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.profile import Diagnosis, KernelResources, Profile
from kbtui.evaluation.modelled.time import ModelledTime
from kbtui.evaluation.profiling.diagnose import diagnose
from kbtui.evaluation.profiling.ncu_csv import parse_raw_page, profile_of
from tests.fakes.scripts import load_script

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "tests/data/ncu/planted"
KEPT = json.loads((ROOT / "benchmarks/results/h200-2026-11-30/planted.json").read_text())
CHIP = from_plain(DeviceSpec, KEPT["device"])
ROWS = {row["name"]: row for row in KEPT["plants"]}
#: What no compiled kernel and no trace can tell, or tells as its consequence.
ONLY_WITH_COUNTERS = {"softmax_bank_conflicts", "linear_tiny_tiles"}


SUITE = load_script(ROOT / "benchmarks/planted/suite.py")
PLANTS = {plant.name: plant for plant in SUITE.load_plants()}
#: Those the rules were made with, each of which they must name, and those they were not.
SEEN = [name for name in ROWS if not PLANTS[name].unseen]
UNSEEN = [name for name in ROWS if PLANTS[name].unseen]


def _diagnosed(row: dict[str, Any], profile: Profile | None) -> Diagnosis:
    plant = PLANTS[row["name"]]
    resources = from_plain(tuple[KernelResources, ...], row["resources"])
    traced = None if profile else from_plain(ModelledTime, row["traced"])
    known = (plant.problem.spec, CHIP, plant.shape, row["time_us"], resources)
    return diagnose(*known, profile, traced, row["n_launches"])


def _read(name: str) -> Profile:
    return profile_of(ROWS[name]["shape"], parse_raw_page((PAGES / f"{name}.csv").read_text()))


def test_every_plant_was_right_counted_and_kept() -> None:
    assert [name for name, row in ROWS.items() if row["plant"]["fault"] or row["profile"]["not_profiled"]] == []
    assert sorted(ROWS) == sorted(page.stem for page in PAGES.glob("*.csv"))
    assert {name for name, plant in PLANTS.items() if not plant.unseen} <= set(ROWS)
    assert [name for name, row in ROWS.items() if row["shape"] != PLANTS[name].shape.name] == []


@pytest.mark.parametrize("name", SEEN)
def test_the_page_of_counters_names_the_plant(name: str) -> None:
    found = _diagnosed(ROWS[name], _read(name))
    assert found.source == "counters"
    assert found.findings[0].bottleneck in PLANTS[name].expected, found


@pytest.mark.parametrize("name", ROWS)
def test_a_trimmed_page_is_read_as_it_was_on_the_gpu(name: str) -> None:
    profile, kept = _read(name), from_plain(Profile, ROWS[name]["profile"])
    assert profile.kernels == kept.kernels
    assert len(profile.kernels) == ROWS[name]["n_launches"]
    assert {m.name: m.value for m in profile.metrics} == pytest.approx({m.name: m.value for m in kept.metrics})


@pytest.mark.parametrize("name", SEEN)
def test_without_counters_the_plant_is_named_where_it_can_be_known(name: str) -> None:
    found = _diagnosed(ROWS[name], None)
    assert found.source == "compiled"
    named = found.findings[0].bottleneck in PLANTS[name].expected
    assert named is (name not in ONLY_WITH_COUNTERS), found


def test_four_of_five_plants_are_named_without_counters_and_cured_by_their_first_hint() -> None:
    cured = [n for n, row in ROWS.items() if row["best"] and row["best"]["ratio"] >= 1.3]
    without = [n for n, row in ROWS.items() if row["without"]["right"]]
    assert len(ROWS) >= 15
    assert len(without) >= 0.8 * len(ROWS)
    assert len(cured) >= 0.8 * len(ROWS)


def test_four_of_five_plants_that_the_rules_were_not_made_with_are_named_by_their_counters() -> None:
    right = [n for n in UNSEEN if ROWS[n]["counters"]["right"]]
    assert len(right) >= 0.8 * len(UNSEEN), sorted(set(UNSEEN) - set(right))


@pytest.mark.parametrize("name", ROWS)
def test_what_was_kept_as_the_diagnosis_is_what_the_rules_say(name: str) -> None:
    row = ROWS[name]
    for kept, profile in ((row["counters"], from_plain(Profile, row["profile"])), (row["without"], None)):
        told = {key: value for key, value in kept.items() if key != "right"}
        assert _diagnosed(row, profile) == from_plain(Diagnosis, told)
