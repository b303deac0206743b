"""What a search did, out of its events: how soon it was as good as in the end, and what it spent on what. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.six.record import Counts, RungSpent, Step, Story
from kbtui.domain.event import Decision, Envelope, ProblemOpened, RungCompleted
from kbtui.domain.rung import SCREEN
from kbtui.domain.verdict import VerdictKind
from kbtui.scheduler.state import RunState, Tried

#: As good as the final champion: within so much of its score.
CLOSE = 0.02


def story_of(
    envelopes: Sequence[Envelope], state: RunState, best: Tried | None, idle_share: float | None = None
) -> Story:
    """``best``: the result, whose score the others are held against. What a rung found wrong was never as good."""
    assert state.started is not None
    names = {rung.index: rung.name for rung in state.started.ladder}
    done = [(e, e.event) for e in envelopes if isinstance(e.event, RungCompleted)]
    sound = [(e, event) for e, event in done if _stands(state.tried[event.candidate])]
    close = next((e for e, event in sound if best and _is_close(event, best.score)), None)
    ended = [event for _, event in done if event.decision in (Decision.REJECT, Decision.SET_ASIDE)]
    return Story(
        run=state.started.run,
        ended=f"{state.ended.reason}: {state.ended.detail}" if state.ended else "not ended",
        wall_s=state.wall_s,
        gpu_s=state.gpu_s,
        open_s=next((e.wall_s for e in envelopes if isinstance(e.event, ProblemOpened)), 0.0),
        n_candidates=len(state.tried),
        n_evaluations=len(done),
        within_wall_s=close.wall_s if close else None,
        within_gpu_s=close.gpu_s if close else None,
        rejected=_by_reason(ended, VerdictKind.REJECTED),
        unverified=_by_reason(ended, VerdictKind.UNVERIFIED),
        pruned=_counts(names[event.rung] for _, event in done if event.decision is Decision.PRUNE),
        n_set_aside=sum(event.decision is Decision.SET_ASIDE for event in ended),
        spent=tuple(RungSpent(names[r], s.wall_s, s.gpu_s) for r, s in sorted(state.spend.items())),
        asked_s=sum(got.wall_s for got in state.yields.values()),
        steps=_steps([e for e, _ in sound]),
        n_drafts=len(drafts(state)),
        idle_share=idle_share,
    )


def drafts(state: RunState) -> tuple[Tried, ...]:
    """Every playbook structure as it was first drafted: at its defaults, of no parent, before any search."""
    found: dict[str, Tried] = {}
    for tried in state.tried.values():
        candidate = tried.candidate
        if candidate.origin.generator == "playbook" and not candidate.parents:
            found.setdefault(candidate.origin.operator, tried)
    return tuple(found.values())


def best_draft(state: RunState) -> Tried | None:
    """The fastest of the drafts that the gate let pass and that were timed."""
    timed = [t for t in drafts(state) if t.score is not None and _stands(t)]
    return max(timed, key=lambda t: t.score or 0.0, default=None)


def ranked(state: RunState, best: Tried | None) -> tuple[Tried, ...]:
    """The search's result, then whoever stands, by score; the first kernel among them."""
    others = [t for t in state.tried.values() if t is not best and t.score is not None and _stands(t)]
    others.sort(key=lambda t: -(t.score or 0.0))
    return ((best,) if best else ()) + tuple(others)


def _stands(tried: Tried) -> bool:
    """No rung has found fault with it."""
    return all(r.outcome.verdict.ok for r in tried.results.values())


def _is_close(event: RungCompleted, final: float | None) -> bool:
    return final is not None and event.rung >= SCREEN and event.score is not None and event.score * (1 + CLOSE) >= final


def _by_reason(events: Iterable[RungCompleted], kind: VerdictKind) -> Counts:
    return _counts(e.outcome.verdict.reason.value for e in events if e.outcome.verdict.kind is kind)


def _counts(words: Iterable[str]) -> Counts:
    return tuple(Counter(words).most_common())


def _steps(envelopes: Iterable[Envelope]) -> tuple[Step, ...]:
    """A case has one shape, so that all rungs' scores are of the same thing."""
    found: list[Step] = []
    for envelope in envelopes:
        event = envelope.event
        assert isinstance(event, RungCompleted)
        if not event.new_incumbent or event.score is None:
            continue
        if not found or event.score > found[-1].score:
            found.append(Step(envelope.wall_s, envelope.gpu_s, event.score, event.candidate))
    return tuple(found)
