"""Where a candidate stands: its state in one word, its number against another, how it ranks."""

from dataclasses import dataclass
from enum import StrEnum
from statistics import geometric_mean

from kbtui.domain.event import Decision
from kbtui.domain.measurement import Comparison
from kbtui.domain.rung import CONFIRM
from kbtui.scheduler.best import best_so_far
from kbtui.scheduler.state import RunState, Tried
from kbtui.tui import fmt
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Part, Role


class Standing(StrEnum):
    """A candidate's state, as every pane words it."""

    RUNNING = "running"
    WAITING = "waiting"
    UNFINISHED = "unfinished"  # it waited when the run ended
    CHAMPION = "champion"
    INCUMBENT = "incumbent"
    WAS_BEST = "was best"
    PROMOTED = "promoted"
    PRUNED = "pruned"
    REJECTED = "rejected"
    UNVERIFIED = "unverified"


ROLES: dict[Standing, Role] = {
    Standing.RUNNING: Role.ACCENT,
    Standing.WAITING: Role.PLAIN,
    Standing.UNFINISHED: Role.DIM,
    Standing.CHAMPION: Role.GOOD,
    Standing.INCUMBENT: Role.GOOD,
    Standing.WAS_BEST: Role.PLAIN,
    Standing.PROMOTED: Role.PLAIN,
    Standing.PRUNED: Role.DIM,
    Standing.REJECTED: Role.BAD,
    Standing.UNVERIFIED: Role.WARN,
}


def glyph_of(standing: Standing, g: Glyphs) -> str:
    """The sign that stands for a state where colour cannot."""
    return {
        Standing.RUNNING: g.running,
        Standing.WAITING: g.waiting,
        Standing.UNFINISHED: g.waiting,
        Standing.CHAMPION: g.champion,
        Standing.INCUMBENT: g.incumbent,
        Standing.WAS_BEST: g.was_best,
        Standing.PROMOTED: g.promoted,
        Standing.PRUNED: g.pruned,
        Standing.REJECTED: g.rejected,
        Standing.UNVERIFIED: g.unverified,
    }[standing]


def standing_of(moment: Moment, tried: Tried) -> Standing:
    state, candidate = moment.state, tried.candidate.id
    running = moment.running
    if running is not None and running[0] == candidate:
        return Standing.RUNNING
    if candidate == state.champion:
        return Standing.CHAMPION
    if tried.waiting_at is not None:
        return Standing.WAITING if state.ended is None else Standing.UNFINISHED
    decision = tried.last.decision if tried.last else Decision.PRUNE
    if decision is Decision.REJECT:
        return Standing.REJECTED
    if decision is Decision.SET_ASIDE:
        return Standing.UNVERIFIED
    if candidate in state.incumbents.values():
        return Standing.INCUMBENT
    if decision is Decision.CROWN:
        return Standing.WAS_BEST
    return Standing.PRUNED


def rung_of(moment: Moment, tried: Tried) -> int:
    """The rung it runs or waits on, else the last one it finished."""
    running = moment.running
    if running is not None and running[0] == tried.candidate.id:
        return running[1]
    if tried.waiting_at is not None:
        return tried.waiting_at
    return tried.last.rung if tried.last else 0


def versus(tried: Tried) -> Comparison | None:
    """The comparison that decided its last timed rung: against another candidate, else the first kernel."""
    for _, result in sorted(tried.results.items(), reverse=True):
        measurement = result.outcome.measurement
        if measurement is None or not measurement.comparisons:
            continue
        others = [c for c in measurement.comparisons if c.against not in ("eager", "compile", "first")]
        return others[0] if others else measurement.against("first")
    return None


def number_of(tried: Tried, g: Glyphs) -> Part:
    """Its ratio against the incumbent it met, or why there is none."""
    against = versus(tried)
    if against is not None:
        role = {"faster": Role.GOOD, "slower": Role.DIM}.get(against.outcome.value, Role.PLAIN)
        return f"{fmt.ratio(against.ratio, g)} vs {against.against}", role
    last = tried.last
    if last is None:
        return "", Role.DIM
    if not last.outcome.verdict.ok:
        return last.outcome.verdict.reason.value.replace("_", " "), ROLES[Standing.REJECTED]
    if last.outcome.bound_us is not None and last.score is None:
        return f"bound {fmt.time_us(last.outcome.bound_us, g)}", Role.DIM
    return "", Role.DIM


@dataclass(frozen=True, slots=True)
class Best:
    """The best so far: ``over`` what, with its interval; ``confirmed`` in fresh processes at the top or not yet."""

    candidate: str
    ratio: float
    low: float
    high: float
    over: str
    confirmed: bool


def best_of(state: RunState) -> Best | None:
    """Whoever the run would hand over now; over PyTorch where it was timed, else the first kernel."""
    tried = best_so_far(state)
    if tried is None:
        return None
    name = tried.candidate.id
    confirmed = name == state.champion and CONFIRM in tried.results
    for over, label in (("eager", "PyTorch"), ("first", "first kernel")):
        found = against(tried, over)
        if found is not None:
            return Best(name, found.ratio, found.low, found.high, label, confirmed)
    score = tried.score
    return Best(name, score, score, score, "first kernel", confirmed) if score is not None else None


def against(tried: Tried, other: str) -> Comparison | None:
    """Its comparison with ``other`` at the highest rung that has one."""
    for _, result in sorted(tried.results.items(), reverse=True):
        found = result.outcome.measurement.against(other) if result.outcome.measurement else None
        if found is not None:
            return found
    return None


def eager_level(state: RunState) -> float | None:
    """PyTorch eager on the scale of scores (speedup over the run's first kernel), where both were timed."""
    levels = []
    for tried in state.tried.values():
        for result in tried.results.values():
            measured = result.outcome.measurement
            eager = measured.against("eager") if measured else None
            if eager is not None and result.score is not None and eager.ratio > 0:
                levels.append((result.rung, result.score / eager.ratio))
    return max(levels)[1] if levels else None


def compile_over_eager(state: RunState) -> float | None:
    """How much faster ``torch.compile`` is than eager, over the shapes that both were timed on."""
    baselines = state.opened.report.baselines if state.opened else ()
    times = {b.name: {t.shape: t.device_us for t in b.measurement.timings} for b in baselines if b.measurement}
    eager, compiled = times.get("eager", {}), times.get("compile", {})
    ratios = [eager[s] / compiled[s] for s in eager if compiled.get(s, 0) > 0 and eager[s] > 0]
    return geometric_mean(ratios) if ratios else None


def hint_word(moment: Moment, tried: Tried, g: Glyphs) -> str:
    """What became of a candidate, as the bottleneck pane says it beside its hint."""
    standing, against_it = standing_of(moment, tried), versus(tried)
    if standing is Standing.REJECTED and tried.last is not None:
        return f"{standing.value}, {number_of(tried, g)[0]}"
    if standing is Standing.RUNNING or against_it is None:
        return standing.value
    return f"{standing.value}, {fmt.ratio(against_it.ratio, g)}"
