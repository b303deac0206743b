"""Which of a candidate's timed blocks are judged, and on which values."""

import random
from typing import Any, cast

import pytest
from softmax_problem import make_problem

from kbtui.evaluation.devices import cuda_match
from kbtui.evaluation.devices.cuda_match import FaultError, Match
from kbtui.evaluation.devices.cuda_sides import Side, Sides
from kbtui.evaluation.gate.clients import CandidateClient, Judgement
from kbtui.evaluation.gate.told import CheckReport
from kbtui.evaluation.gate.tolerance import OutputErrors
from kbtui.evaluation.measure.loop import NEVER
from kbtui.evaluation.measure.record import MatchLog
from kbtui.evaluation.process import Worker

SPEC = make_problem(rows=2).spec
SHAPE, OTHER = SPEC.shapes[0], SPEC.shapes[1]
RIGHT = OutputErrors(0.0, 0.0, -1, 1.0, 0.0, 0.0, 0, -1, 0, 2)
WRONG = OutputErrors(0.5, 0.5, 0, 1.0, 0.0, 0.0, 0, -1, 0, 2)


class Table:
    """Referee and candidate's child in one: what each is asked, in order; the blocks in ``lazy`` are wrong."""

    def __init__(self, lazy: frozenset[int] = frozenset()) -> None:
        self.lazy, self.asked, self.n_blocks, self.pid, self.copies = lazy, cast(list[str], []), 0, 7, 2
        self.nudges, self.judged = True, cast(list[int], [])
        self.referee = self

    def prepare(self, shape: Any, distribution: str, seeds: list[int]) -> dict[str, Any]:
        self.asked.append(f"prepare {shape.name}")
        return {}

    def judge(self, copy: int, during: str) -> Judgement:
        self.judged.append(self.n_blocks)
        self.asked.append("judge")
        return Judgement((WRONG if self.n_blocks in self.lazy else RIGHT,), (), None)

    def timed(self, n_calls: int, keep: int, seed: str) -> list[float]:
        self.n_blocks += keep != NEVER
        self.asked.append("timed" if keep != NEVER else "probed")
        return [100.0] * n_calls

    def check(self, copy: int, guard: bool, allowed: tuple[str, ...]) -> CheckReport:
        return CheckReport(None, 1, ())

    def refill(self, seeds: list[int]) -> None: ...
    def clear(self) -> None: ...
    def release(self) -> None: ...
    def bind(self, prepared: dict[str, Any]) -> None: ...
    def warm_up(self, at_least_s: float) -> None: ...


def match_at(table: Table) -> Match:
    side = Side("c0001", "sha", cast(Worker, table), cast(CandidateClient, table), nudged=True)
    log = MatchLog((SHAPE.name, OTHER.name))
    return Match(cast(Sides, table), SPEC, side, (), log, 6, lambda: None, lambda _: None, random.Random(1))


def test_alone_the_last_block_on_every_shape_is_judged_before_other_inputs_take_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda_match, "LATE_ODDS", 0.0)
    table = Table()
    match = match_at(table)
    match.alone((SHAPE, OTHER), 3)
    match.judge_last()
    assert table.judged == [3, 6]
    assert table.asked.index("judge") < table.asked.index(f"prepare {OTHER.name}")
    match.judge_last()
    assert table.judged == [3, 6], "once is enough"


def test_alone_any_block_may_be_judged_so_that_none_is_safe_to_cheat_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_match, "LATE_ODDS", 1.0)
    with pytest.raises(FaultError, match="relative L2 error"):
        match_at(Table(lazy=frozenset({1}))).alone((SHAPE,), 4)


def test_a_block_that_was_judged_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_match, "LATE_ODDS", 1.0)
    table = Table()
    match = match_at(table)
    match.alone((SHAPE,), 4)
    match.judge_last()
    assert table.judged == [1, 2, 3, 4]
