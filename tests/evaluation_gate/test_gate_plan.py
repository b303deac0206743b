import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.problem import ProblemSpec, Shape, ShapeRole, Tolerance
from kbtui.domain.verdict import Proof
from kbtui.evaluation.gate.plan import CheckKind, n_elements, plan, stages_to_run
from kbtui.evaluation.gate.runner import AGE_S, drawn_age_s

SHAPES = (
    Shape("4096x16384", (("rows", 4096), ("cols", 16384))),
    Shape("16x16384", (("rows", 16), ("cols", 16384)), from_rung=2),
    Shape("1x1", (("rows", 1), ("cols", 1)), ShapeRole.HIDDEN),
    Shape("7x1021", (("rows", 7), ("cols", 1021)), ShapeRole.HIDDEN),
    Shape("129x127", (("rows", 129), ("cols", 127)), ShapeRole.HIDDEN),
    Shape("257x16383", (("rows", 257), ("cols", 16383)), ShapeRole.HIDDEN),
    Shape("4x256", (("rows", 4), ("cols", 256)), ShapeRole.PROXY),
)
SPEC = ProblemSpec(
    "softmax", "", "float32", None, SHAPES, ("normal", "wide", "offset", "tiny"), "rows", "rows", Tolerance(1e-6)
)


@pytest.mark.parametrize(
    ("passed", "asked", "expected"), [(-1, 1, (1,)), (1, 4, (2, 4)), (2, 2, ()), (0, 2, (1, 2)), (-1, 0, ())]
)
def test_only_stages_not_yet_passed_run(passed: int, asked: int, expected: tuple[int, ...]) -> None:
    assert stages_to_run(passed, asked) == expected


def test_the_screen_on_a_gpu_has_its_shape_two_hidden_ones_three_distributions_and_a_no_op_replay() -> None:
    checks = plan(SPEC, 1, 0, Proof.GPU)
    by_shape = {c.shape.name for c in checks}
    assert "4096x16384" in by_shape
    assert len(by_shape) == 3
    for name in by_shape:
        assert {c.distribution for c in checks if c.shape.name == name} == {"normal", "wide", "offset"}
    assert CheckKind.NO_OP in {c.kind for c in checks}
    assert CheckKind.REPEAT in {c.kind for c in checks}


def test_a_shape_comes_back_with_other_values_so_a_cached_answer_shows() -> None:
    for proof in (Proof.GPU, Proof.INTERPRETER):
        values = [c for c in plan(SPEC, 1, 0, proof) if c.kind is CheckKind.VALUES]
        names = [c.shape.name for c in values]
        assert len(names) > len(set(names))
        assert len({c.seed for c in values}) == len(values)


def test_the_interpreter_gets_proxies_and_small_hidden_shapes_only() -> None:
    for stage in (1, 2, 4):
        names = {c.shape.name for c in plan(SPEC, stage, 0, Proof.INTERPRETER)}
        assert names
        assert names <= {"4x256", "1x1"}


def test_the_confirmation_on_a_gpu_runs_all_hidden_shapes_under_all_distributions() -> None:
    checks = plan(SPEC, 4, 0, Proof.GPU)
    assert len([c for c in checks if c.kind is CheckKind.VALUES]) == 4 * 4
    assert CheckKind.REPEAT in {c.kind for c in checks}


def test_the_last_stage_ends_with_new_values_of_every_shape_in_a_process_that_has_grown_old() -> None:
    checks = plan(SPEC, 4, 0, Proof.GPU)
    aged = [c for c in checks if c.kind is CheckKind.AGED]
    assert checks[-len(aged) :] == tuple(aged)
    assert {c.shape for c in aged} == {s for s in SHAPES if s.role is not ShapeRole.PROXY}
    assert {c.seed for c in aged}.isdisjoint({c.seed for c in checks if c.kind is not CheckKind.AGED})
    met = {c.shape for c in checks if c.kind is CheckKind.VALUES}
    assert aged[0].shape in met, "who answers from memory after a rest must have something to remember"
    assert n_elements(aged[0].shape) > 1000, "and be wrong with it"
    assert all(c.kind is not CheckKind.AGED for stage in (1, 2) for c in plan(SPEC, stage, 0, Proof.GPU))
    assert CheckKind.AGED in {c.kind for c in plan(SPEC, 4, 0, Proof.INTERPRETER)}


@given(st.sampled_from(list(Proof)[1:]), st.randoms(use_true_random=False))
def test_the_age_is_drawn_between_its_bounds(proof: Proof, rng: random.Random) -> None:
    low, high = AGE_S[proof]
    assert low <= drawn_age_s(proof, rng) <= high


def test_another_seed_gives_other_inputs() -> None:
    assert {c.seed for c in plan(SPEC, 1, 1, Proof.GPU)}.isdisjoint({c.seed for c in plan(SPEC, 1, 2, Proof.GPU)})


def test_a_problem_without_proxies_is_still_checked_under_the_interpreter() -> None:
    from dataclasses import replace

    bare = replace(SPEC, shapes=SHAPES[:2])
    assert [c.shape.name for c in plan(bare, 1, 0, Proof.INTERPRETER) if c.kind is CheckKind.VALUES]


def test_the_interpreters_second_stage_has_every_proxy_and_every_distribution() -> None:
    proxies = {s.name for s in SHAPES if s.role is ShapeRole.PROXY}
    checks = plan(SPEC, 2, 0, Proof.INTERPRETER)
    assert {c.shape.name for c in checks} == proxies
    assert {c.distribution for c in checks} == set(SPEC.distributions)
