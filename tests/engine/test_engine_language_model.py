"""A generator that costs tokens and may fail: it is asked again later, and what it cost is recorded."""

import itertools
from dataclasses import dataclass, field, replace

import pytest

from kbtui.domain.candidate import Attachment, Proposal
from kbtui.domain.event import Budget, EndReason, ProposalsMade
from kbtui.domain.proposal import ProposalRequest, Receipt
from kbtui.engine.engine import Engine
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.engine.meter import Meter
from kbtui.errors import DeviceError
from kbtui.scheduler.policy import DEFAULT_POLICY
from kbtui.scheduler.state import MAX_EMPTY, RunState
from tests.fakes.search import PROBLEM, Numbered, PlantedDevice, started


@dataclass
class Talker:
    """Answers as ``Numbered`` does, after ``failures`` questions that fail; ``mute``: its replies hold no kernel."""

    failures: int = 0
    mute: bool = False
    name: str = "llm"
    n_asked: int = 0
    attachments: tuple[Attachment, ...] = (Attachment("reply-1.txt", b"no"),)
    _inner: Numbered = field(default_factory=lambda: Numbered("llm"))

    def propose(self, request: ProposalRequest) -> tuple[Proposal, ...]:
        self.n_asked += 1
        if self.n_asked <= self.failures:
            raise DeviceError("no Ollama server answers", "start it")
        return () if self.mute else self._inner.propose(request)

    def receipt(self) -> Receipt:
        return Receipt(100, self.attachments, ("reply 1 of no use: no code",), exhausted=False)


class KeepingLedger(MemoryLedger):
    """Remembers what was attached to which event."""

    def append(self, event, wall_s, gpu_s, attachments=(), best=None):  # type: ignore[no-untyped-def]
        self.attached = [*getattr(self, "attached", []), (event, attachments)]
        return super().append(event, wall_s, gpu_s, attachments, best)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Runs a search with this talker beside a playbook, on a clock that a second passes at each look."""
    monkeypatch.setattr("kbtui.engine.engine.PAUSE_POLL_S", 0.0)

    def search(talker: Talker, budget: Budget | None = None, beside: tuple[str, ...] = ()) -> tuple[Engine, list]:
        ledger = KeepingLedger()
        ledger.append(replace(started(budget or Budget()), generators=(*beside, "llm")), 0.0, 0.0)
        clock = itertools.count(1.0)
        meter = Meter(ledger.spent(), now_s=lambda: next(clock))
        generators = {"playbook": Numbered("playbook"), "llm": talker}
        engine = Engine(PROBLEM, ledger, PlantedDevice(), generators, lambda s, a: (), meter, lambda e, s: None)
        engine.run()
        return engine, ledger.attached

    return search


def asked(state: RunState) -> list[ProposalsMade]:
    return [event for _, event in state.asked if event.generator == "llm"]


def test_a_generator_that_fails_twice_is_asked_again_and_goes_on(run) -> None:  # type: ignore[no-untyped-def]
    engine, _ = run(Talker(failures=2))
    events = asked(engine.state)
    assert [e.failed for e in events[:3]] == [True, True, False]
    assert not any(e.exhausted for e in events[:3])
    assert "no Ollama server answers; start it" in events[0].note
    assert any(t.candidate.origin.generator == "llm" for t in engine.state.tried.values())


def test_it_is_asked_ever_more_seldom_while_it_fails(run) -> None:  # type: ignore[no-untyped-def]
    engine, _ = run(Talker(failures=5))
    at_s = [e.wall_s for e in engine._ledger.events() if isinstance(e.event, ProposalsMade) and e.event.failed]
    gaps = [b - a for a, b in itertools.pairwise(at_s)]
    expected = [min(5.0 * 2**n, 60.0) for n in range(4)]
    assert all(gap >= least for gap, least in zip(gaps, expected, strict=True))


def test_a_generator_that_never_answers_is_given_up_and_the_run_ends(run) -> None:  # type: ignore[no-untyped-def]
    engine, _ = run(Talker(failures=10**6), beside=("playbook",))
    assert len(asked(engine.state)) == DEFAULT_POLICY.failures
    assert engine.state.ended is not None
    assert engine.state.ended.reason is EndReason.EXHAUSTED
    assert engine.state.champion is not None


def test_a_run_that_only_waits_for_a_generator_ends_with_its_budget(run) -> None:  # type: ignore[no-untyped-def]
    engine, _ = run(Talker(failures=10**6), Budget(wall_s=60.0))
    assert engine.state.ended is not None
    assert engine.state.ended.reason is EndReason.BUDGET


def test_tokens_are_counted_and_their_limit_ends_the_asking(run) -> None:  # type: ignore[no-untyped-def]
    engine, _ = run(Talker(), Budget(llm_tokens=250), beside=("playbook",))
    assert [e.tokens for e in asked(engine.state)] == [100, 100, 100]
    assert engine.state.yields["llm"].tokens == 300


def test_replies_without_a_kernel_are_kept_and_end_the_asking_about_a_parent(run) -> None:  # type: ignore[no-untyped-def]
    engine, attached = run(Talker(mute=True))
    events = asked(engine.state)
    assert len(events) == MAX_EMPTY * len({e.parent for e in events})
    kept = [a for e, a in attached if isinstance(e, ProposalsMade)]
    assert kept == [Talker().attachments] * len(events)
    assert all("of no use: no code" in e.note for e in events)


def test_a_resumed_run_knows_what_failed_and_what_was_used(run) -> None:  # type: ignore[no-untyped-def]
    engine, _ = run(Talker(failures=10**6), beside=("playbook",))
    again = RunState()
    for envelope in engine._ledger.events():
        again.apply(envelope)
    assert again.failing == engine.state.failing
    assert again.yields == engine.state.yields
