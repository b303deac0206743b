"""Which child a candidate gets, where the referee whose memory a spare sees may be gone."""

from collections import deque
from pathlib import Path
from typing import Any, cast

import pytest
from softmax_problem import make_problem

from kbtui.evaluation.devices.cuda_sides import CANDIDATE_ROLE, REFEREE_ROLE, Sides
from kbtui.evaluation.process import SandboxPolicy, Zygote
from kbtui.evaluation.process.worker import READY_TIMEOUT_S


class Child:
    """A worker that does all it is asked, and keeps it: (method, timeout_s, parameters)."""

    def __init__(self, handle: bytes = b"") -> None:
        self.asked: list[tuple[str, float, dict[str, Any]]] = []
        self.alive, self.value, self.payload = True, 64, handle

    def call(self, method: str, *, timeout_s: float, **params: Any) -> "Child":
        self.asked.append((method, timeout_s, params))
        return self

    def kill(self) -> None:
        self.alive = False

    @property
    def methods(self) -> list[str]:
        return [method for method, _, _ in self.asked]


class Nursery:
    """A zygote whose spares lie ready, and whose referees' arenas have a handle of their own each."""

    def __init__(self) -> None:
        self.spares: deque[Child] = deque()
        self.buried: list[Child] = []
        self.sizes: list[int] = []
        self.n_referees, self.finish = 0, lambda _: None

    def spawn(self, role: str, *, sandbox: SandboxPolicy | None) -> Child:
        if role == REFEREE_ROLE:
            self.n_referees += 1
            return Child(f"arena {self.n_referees}".encode())
        return self.spares.popleft() if self.spares else Child()

    def pool(self, role: str, sandbox: SandboxPolicy | None, size: int, *, at_once: int, finish: Any) -> None:
        self.sizes.append(size)
        self.finish = finish

    def drop_spares(self, role: str, sandbox: SandboxPolicy | None) -> None:
        self.sizes.append(0)

    def bury(self, worker: Child) -> None:
        self.buried.append(worker)

    def spare(self) -> Child:
        """One more that is warm, by whatever was asked for last."""
        self.spares.append(Child())
        self.finish(self.spares[-1])
        return self.spares[-1]


@pytest.fixture
def nursery() -> Nursery:
    return Nursery()


@pytest.fixture
def sides(nursery: Nursery) -> Sides:
    made = Sides(cast(Zygote, nursery), make_problem(rows=2), SandboxPolicy(), lambda _: Path(), 1 << 30, 5.0)
    assert made.referee is not None
    made.spares(2, 2)
    return made


def test_a_spare_sees_the_arena_and_has_its_memory_before_anybody_takes_it(sides: Sides, nursery: Nursery) -> None:
    spare = nursery.spare()
    assert spare.methods == ["warm", "map_arena", "reserve"]
    assert spare.asked[1][2]["payload"] == b"arena 1"
    assert spare.asked[2][2]["n_bytes"] == 2 * 64
    assert cast(Child, sides._start(CANDIDATE_ROLE, None)) is spare
    assert spare.methods == ["warm", "map_arena", "reserve"], "nothing is left to be done"


def test_a_spare_that_is_stopped_while_others_are_timed_is_not_given_up_for_it(nursery: Nursery, sides: Sides) -> None:
    assert min(timeout_s for _, timeout_s, _ in nursery.spare().asked) >= READY_TIMEOUT_S


def test_a_child_that_no_pool_has_warmed_is_shown_the_arena_when_it_is_taken(sides: Sides, nursery: Nursery) -> None:
    assert cast(Child, sides._start(CANDIDATE_ROLE, None)).methods == ["warm", "map_arena"]
    assert nursery.buried == []


def test_a_spare_that_sees_the_memory_of_a_referee_that_is_gone_is_buried(sides: Sides, nursery: Nursery) -> None:
    stale = [nursery.spare(), nursery.spare()]
    cast(Child, sides._referee).kill()
    taken = cast(Child, sides._start(CANDIDATE_ROLE, None))
    assert nursery.buried == stale
    assert taken.asked[-1][2]["payload"] == b"arena 2"
    assert nursery.sizes == [0, 2, 0, 2], "dropped with its referee, kept again with the next"
    assert nursery.spare().asked[1][2]["payload"] == b"arena 2"


def test_without_a_referee_a_spare_waits_for_whoever_takes_it(sides: Sides, nursery: Nursery) -> None:
    sides.drop()
    early = nursery.spare()
    assert early.methods == ["reserve"]
    assert cast(Child, sides._start(CANDIDATE_ROLE, None)) is early
    assert early.methods == ["reserve", "warm", "map_arena"]
