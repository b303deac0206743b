"""The ladder as a funnel: how many each rung saw and what became of them, and what it spent. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kbtui.domain.event import Decision
from kbtui.leaving.page.text import esc, seconds, share, tag
from kbtui.leaving.rows import RungRow
from kbtui.scheduler.state import RunState

#: Order in a bar, and the class that colours it.
_PARTS = (
    (Decision.CROWN, "champion"),
    (Decision.PROMOTE, "promoted"),
    (Decision.PRUNE, "pruned"),
    (Decision.SET_ASIDE, "set aside"),
    (Decision.REJECT, "rejected"),
)


@dataclass(frozen=True, slots=True)
class RungSum:
    """One rung: decisions by kind, reasons of those that failed, seconds spent."""

    name: str
    index: int
    decisions: Counter[Decision]
    reasons: Counter[str]
    waiting: int
    wall_s: float
    gpu_s: float

    @property
    def seen(self) -> int:
        return sum(self.decisions.values())


def sums(rows: Sequence[RungRow], state: RunState) -> list[RungSum]:
    """Each candidate counts once a rung, with its last decision there; time spent counts each time."""
    assert state.started is not None
    out = []
    for rung in state.started.ladder:
        here = [r for r in rows if r.event.rung == rung.index]
        last = {r.tried.candidate.id: r.event for r in here}.values()
        failed = (e for e in last if not e.outcome.verdict.ok)
        reasons = Counter(str(e.outcome.verdict.reason).replace("_", " ") for e in failed)
        spent = sum(r.event.outcome.wall_s for r in here), sum(r.event.outcome.gpu_s for r in here)
        waiting = len(state.waiting(rung.index))
        out.append(RungSum(rung.name, rung.index, Counter(e.decision for e in last), reasons, waiting, *spent))
    return out


def funnel_section(rows: Sequence[RungRow], state: RunState) -> str:
    rungs = sums(rows, state)
    most = max((r.seen for r in rungs), default=0) or 1
    head = ("rung", "", "seen", *(name for _, name in _PARTS), "still waiting", "wall", "GPU", "of the wall time")
    cells = "".join(tag("th", esc(h), class_=None if i < 2 else "num", scope="col") for i, h in enumerate(head))
    body = "".join(_row(r, most, state.wall_s) for r in rungs)
    table = tag("table", tag("thead", tag("tr", cells)) + tag("tbody", body), class_="funnel")
    reasons = [f"{r.name}: " + ", ".join(f"{n} {w}" for w, n in r.reasons.most_common(4)) for r in rungs if r.reasons]
    why = tag("p", esc("Why candidates failed. " + "; ".join(reasons) + "."), class_="note") if reasons else ""
    return tag("div", table, class_="scroll") + why


def _row(rung: RungSum, most: int, whole_s: float) -> str:
    parts = "".join(
        tag("i", "", class_=f"part {name.replace(' ', '-')}", style=f"width:{100 * n / most:.2f}%", title=f"{n} {name}")
        for decision, name in _PARTS
        if (n := rung.decisions[decision])
    )
    numbers = [str(rung.seen), *(str(rung.decisions[d]) if rung.decisions[d] else "" for d, _ in _PARTS)]
    numbers.append(str(rung.waiting or ""))
    spent = [seconds(rung.wall_s), seconds(rung.gpu_s), share(rung.wall_s, whole_s)]
    cells = "".join(tag("td", esc(n), class_="num") for n in (*numbers, *spent))
    name = tag("th", esc(f"{rung.index} {rung.name}"), scope="row")
    return tag("tr", name + tag("td", tag("span", parts, class_="bar"), class_="wide") + cells)
