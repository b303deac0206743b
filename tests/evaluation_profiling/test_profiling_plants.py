"""The planted kernels: within the policy, right under the interpreter, answered by a hint that can be carried out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.profile import Bottleneck, Diagnosis, Finding
from kbtui.evaluation.gate.interpreter import InterpreterGate
from kbtui.evaluation.policy import check_policy
from kbtui.evaluation.process import Zygote
from tests.fakes.scripts import load_script

ROOT = Path(__file__).parents[2]
CHIP = DATA_SHEETS["h200"]


SUITE = load_script(ROOT / "benchmarks/planted/suite.py")
PLANTS = SUITE.load_plants()
named = pytest.mark.parametrize("plant", PLANTS, ids=lambda p: p.name)


def test_there_are_fifteen_plants_and_more_of_a_dozen_kinds() -> None:
    assert len(PLANTS) >= 15
    assert len({b for p in PLANTS for b in p.expected}) >= 12


@named
def test_a_plant_keeps_to_the_policy_and_says_what_is_slow(plant: object) -> None:
    assert check_policy(plant.source, plant.problem.spec).ok
    assert plant.source.startswith('"""Slow because ')


@named
def test_the_hint_for_what_is_planted_makes_a_kernel_within_the_policy(plant: object) -> None:
    for bottleneck in plant.expected:
        diagnosis = Diagnosis("slow", (Finding(bottleneck, 0.5, ()),), plant.shape.name, 100.0, 50.0, "counters")
        made = SUITE.remedies(SUITE.first_hint(plant, diagnosis, CHIP), plant, CHIP)
        assert made
        assert [r.operator for r in made if not check_policy(r.source, plant.problem.spec).ok] == []


def test_a_diagnosis_names_a_plant_only_by_its_first_finding() -> None:
    plant = next(p for p in PLANTS if p.name == "softmax_spills")
    findings = tuple(Finding(b, w, ()) for b, w in ((Bottleneck.LATENCY, 0.5), (Bottleneck.SPILLS, 0.4)))
    assert not plant.named_by(Diagnosis("", findings, "s", 1.0, 1.0, "counters"))
    assert plant.named_by(Diagnosis("", findings[::-1], "s", 1.0, 1.0, "counters"))


@pytest.fixture(scope="module")
def interpreting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    with Zygote(tmp_path_factory.mktemp("plants") / "zygote.log", interpret=True) as zygote:
        yield zygote


@pytest.mark.slow
@named
def test_a_plant_is_right(plant: object, interpreting: Zygote) -> None:
    gate = InterpreterGate(interpreting, plant.problem, chip=CHIP)
    try:
        verdict = gate.check(plant.source, 1, 0)
    finally:
        gate.close()
    assert verdict.ok, verdict
