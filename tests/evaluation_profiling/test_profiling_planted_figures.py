"""What was kept of the planted kernels on an H200: the diagnosis names the plants, with counters and without."""

import json
from pathlib import Path
from typing import Any

import pytest

from kbtui.domain.codec import from_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import Shape, ShapeRole
from kbtui.domain.profile import Diagnosis, KernelResources, Profile
from kbtui.evaluation.modelled.time import ModelledTime
from kbtui.evaluation.profiling.diagnose import diagnose
from kbtui.evaluation.profiling.ncu_csv import parse_raw_page, profile_of
from kbtui.problems import load_problem

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "tests/data/ncu/planted"
KEPT = json.loads((ROOT / "benchmarks/results/h200-2026-11-30/planted.json").read_text())
CHIP = from_plain(DeviceSpec, KEPT["device"])
#: Those that were right and slow as they were measured.
ROWS = {row["name"]: row for row in KEPT["plants"] if not row["plant"]["fault"] and row["name"] != "mat_vec_narrow"}
#: What no compiled kernel and no trace can tell, or tells as its consequence.
ONLY_WITH_COUNTERS = {"softmax_bank_conflicts", "linear_tiny_tiles", "linear_shared_tile"}


def _diagnosed(row: dict[str, Any], profile: Profile | None) -> Diagnosis:
    sample = {"softmax": "softmax", "mat": "mat_vec", "rms": "rms_norm", "linear": "linear_relu_div"}
    spec = load_problem(sample.get(row["name"].split("_")[0], "sdp_attn")).spec
    names = [name for name, _ in spec.shapes_of(ShapeRole.TUNE)[0].dims]
    sizes = [int(n) for n in row["shape"].split("x")]
    dtype = "float16" if row["name"].startswith("linear") and "no_tensor" not in row["name"] else None
    shape = Shape(row["shape"], tuple(zip(names, sizes, strict=True)), dtype=dtype)
    resources = from_plain(tuple[KernelResources, ...], row["resources"])
    traced = None if profile else from_plain(ModelledTime, row["traced"])
    return diagnose(spec, CHIP, shape, row["time_us"], resources, profile, traced, row["n_launches"])


@pytest.mark.parametrize(
    "name", [n for n, row in ROWS.items() if row["profile"] and not row["profile"]["not_profiled"]]
)
def test_counters_name_the_plant(name: str) -> None:
    found = _diagnosed(ROWS[name], from_plain(Profile, ROWS[name]["profile"]))
    assert found.source == "counters"
    assert found.findings[0].bottleneck in ROWS[name]["expected"], found


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.csv")), ids=lambda p: p.stem)
def test_a_trimmed_page_is_read_as_it_was_on_the_gpu(page: Path) -> None:
    row = ROWS[page.stem]
    profile = profile_of(row["shape"], parse_raw_page(page.read_text()))
    kept = from_plain(Profile, row["profile"])
    assert profile.kernels == kept.kernels
    assert len(profile.kernels) == row["n_launches"]
    assert {m.name: m.value for m in profile.metrics} == pytest.approx({m.name: m.value for m in kept.metrics})
    assert _diagnosed(row, profile).findings[0].bottleneck in row["expected"]


@pytest.mark.parametrize("name", ROWS)
def test_without_counters_the_plant_is_named_where_it_can_be_known(name: str) -> None:
    found = _diagnosed(ROWS[name], None)
    assert found.source == "compiled"
    named = found.findings[0].bottleneck in ROWS[name]["expected"]
    assert named is (name not in ONLY_WITH_COUNTERS), found


def test_four_of_five_plants_are_named_without_counters_and_cured_by_their_first_hint() -> None:
    cured = [n for n, row in ROWS.items() if row["best"] and row["best"]["ratio"] >= 1.3]
    assert len(ROWS) >= 15
    assert len(ROWS) - len(ONLY_WITH_COUNTERS) >= 0.8 * len(ROWS)
    assert len(cured) >= 0.8 * len(ROWS)
