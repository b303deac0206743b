"""What a run's numbers depended on beside the chip, and where that changed when the run was taken up again. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kbtui.domain.event import Envelope, RunResumed, RunStarted

_IN_BRIEF = ("torch", "triton", "driver", "ncu", "python", "kbtui")


@dataclass(frozen=True, slots=True)
class Change:
    """From event ``seq`` on, ``at``: what is otherwise than before; a value is empty where there is none any more."""

    seq: int
    at: str
    now: dict[str, str]


def software(envelopes: Iterable[Envelope]) -> tuple[dict[str, str], tuple[Change, ...]]:
    """(as the run began, every change after); empty for runs recorded before kbtui kept it."""
    first: dict[str, str] = {}
    known: dict[str, str] = {}
    changes: list[Change] = []
    for envelope in envelopes:
        match envelope.event:
            case RunStarted(environment=facts):
                first = known = dict(facts)
            case RunResumed(environment=facts) if facts and dict(facts) != known:
                changes.append(Change(envelope.seq, envelope.at, _differences(known, dict(facts))))
                known = dict(facts)
            case _:
                pass
    return first, tuple(changes)


def in_brief(facts: Mapping[str, str]) -> str:
    """``torch 2.11.0, triton 3.6.0, driver 580.82`` of a run; empty where nothing is known."""
    return ", ".join(f"{name} {facts[name]}" for name in _IN_BRIEF if name in facts)


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    names = [*now, *(name for name in before if name not in now)]
    return {name: now.get(name, "") for name in names if before.get(name) != now.get(name)}
