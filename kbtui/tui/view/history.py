"""Every candidate of the run as rows of a table, filtered and ordered."""

from dataclasses import dataclass
from enum import StrEnum

from kbtui.domain.rung import MEASURE
from kbtui.scheduler.state import Tried
from kbtui.tui import fmt
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Line, Role, columns, fit
from kbtui.tui.view.board import matches
from kbtui.tui.view.lineage import bests, nothing_listed
from kbtui.tui.view.standing import ROLES, Standing, glyph_of, number_of, rung_of, standing_of


class Order(StrEnum):
    NEWEST = "newest first"
    BEST = "fastest first"
    HIGHEST = "highest rung first"


_FAILED = (Standing.REJECTED, Standing.UNVERIFIED)


def history_keys(moment: Moment, query: str, order: Order, only_bests: bool = False) -> tuple[str, ...]:
    """Ids of the matching candidates; those that failed come last unless the order is by age."""
    tried = moment.state.tried
    among = [tried[name] for name in bests(moment) if name in tried] if only_bests else tried.values()
    chosen = [t for t in among if matches(moment, t, query)]
    chosen.sort(key=lambda t: _rank(moment, t, order))
    return tuple(t.candidate.id for t in chosen)


def _rank(moment: Moment, tried: Tried, order: Order) -> tuple[float, ...]:
    failed = standing_of(moment, tried) in _FAILED
    if order is Order.BEST:  # a screening times one shape only: its score says little beside one of all shapes
        measured = any(rung >= MEASURE and r.score is not None for rung, r in tried.results.items())
        return (failed, tried.score is None, not measured, -(tried.score or 0.0), tried.admitted_seq)
    if order is Order.HIGHEST:
        return (failed, -rung_of(moment, tried), -(tried.score or 0.0), tried.admitted_seq)
    return (-tried.admitted_seq,)


@dataclass(frozen=True, slots=True)
class Widths:
    """Column widths for a pane's width; 0 leaves a column out. The summary takes what is left."""

    summary: int
    operator: int
    hint: int

    @classmethod
    def of(cls, width: int) -> "Widths":
        fixed = 2 + 6 + 3 + 11 + 8 + 18 + 6
        operator = 20 if width >= 110 else 14 if width >= 92 else 0
        hint = 22 if width >= 130 else 0
        extra = sum(w + 1 for w in (operator, hint) if w)
        return cls(max(width - fixed - extra, 8), operator, hint)


def head_line(width: int) -> Line:
    w = Widths.of(width)
    cells = [("", 3, False), ("id", 6, False), ("what it is", w.summary, False)]
    cells += [("operator", w.operator, False)] if w.operator else []
    cells += [("for hint", w.hint, False)] if w.hint else []
    cells += [("r", 2, True), ("state", 10, False), ("score", 7, True), ("against incumbent", 18, False)]
    return ((columns([(fit(t, n) if len(t) > n else t, n, r) for t, n, r in cells]), Role.DIM),)


def history_line(moment: Moment, candidate: str, width: int, g: Glyphs) -> Line:
    """One candidate as a row. ``score`` is its speedup over the run's first kernel."""
    tried = moment.state.tried[candidate]
    standing, w, c = standing_of(moment, tried), Widths.of(width), tried.candidate
    role = ROLES[standing]
    text_role = Role.DIM if standing in (*_FAILED, Standing.PRUNED) else Role.PLAIN
    score = fmt.ratio(tried.score, g) if tried.score is not None else ""
    middle = [(fit(c.summary, w.summary, g.ellipsis), w.summary, False)]
    middle += [(fit(c.origin.operator, w.operator, g.ellipsis), w.operator, False)] if w.operator else []
    middle += [(fit(c.origin.hint or "", w.hint, g.ellipsis), w.hint, False)] if w.hint else []
    number = number_of(tried, g)
    return (
        (f"{glyph_of(standing, g)} {c.id:<6} ", role),
        (columns(middle) + " ", text_role),
        (f"r{rung_of(moment, tried)} ", Role.DIM),
        (f"{standing.value:<10} ", role),
        (f"{score:>7} ", Role.STRONG if standing in (Standing.CHAMPION, Standing.INCUMBENT) else text_role),
        (fit(number[0], 18, g.ellipsis), number[1]),
    )


def empty_history(width: int, query: str, only_bests: bool) -> list[Line]:
    what = (
        "Every candidate of the run appears here as a row: where it came from, its state and its speed over the first "
        "kernel."
    )
    return nothing_listed(what, width, query, only_bests)
