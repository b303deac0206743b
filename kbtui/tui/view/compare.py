"""Two candidates side by side: what they are, how they were timed, where they differ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kbtui.domain.measurement import Clock, Comparison, Measurement
from kbtui.domain.profile import KernelResources
from kbtui.scheduler.reasons import evidence_words
from kbtui.scheduler.state import RunState, Tried
from kbtui.tui import fmt
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Line, Role, fit, line, wrap
from kbtui.tui.view.base import Pair
from kbtui.tui.view.standing import ROLES, glyph_of, number_of, standing_of

T = TypeVar("T")

_LABEL, _WIDEST_LABEL = 12, 22


@dataclass(frozen=True, slots=True)
class Row:
    """One fact of both. ``note`` is what the two say beside each other, e.g. a ratio."""

    label: str
    cells: tuple[str, str]
    note: str = ""
    roles: tuple[Role, Role] = (Role.PLAIN, Role.PLAIN)

    @property
    def differs(self) -> bool:
        return self.cells[0] != self.cells[1]


def both_of(values: tuple[T, T], say: Callable[[T], str]) -> tuple[str, str]:
    """What ``say`` makes of each of two."""
    return say(values[0]), say(values[1])


def compare_lines(moment: Moment, pair: Pair, width: int, g: Glyphs) -> list[Line]:
    """The pair's facts in two columns, what differs marked, the verdict on top."""
    if pair.missing:
        return [*wrap(pair.missing, width, Role.DIM), (), *wrap(_HOW, width, Role.DIM)]
    left, right = moment.state.tried[pair.left], moment.state.tried[pair.right]
    rows = compare_rows(moment, left, right, g)
    return [*verdict_lines(left, right, width, g), (), *table(rows, width, g)]


_HOW = (
    "Two candidates appear here side by side: the one under the cursor, and the one that d chooses. "
    "m marks a candidate to compare others with."
)


def head_to_head(left: Tried, right: Tried) -> tuple[Comparison, bool, Clock] | None:
    """Their own comparison at the highest rung that has one; True where it was made of ``left`` against right."""
    for of, other, turned in ((right, left, False), (left, right, True)):
        for _, result in sorted(of.results.items(), reverse=True):
            measured = result.outcome.measurement
            found = measured.against(other.candidate.id) if measured else None
            if measured is not None and found is not None:
                return found, turned, measured.clock
    return None


def verdict_lines(left: Tried, right: Tried, width: int, g: Glyphs) -> list[Line]:
    """How much faster the right one is, and how that is known."""
    a, b = left.candidate.id, right.candidate.id
    met = head_to_head(left, right)
    if met is not None:
        found, turned, clock = met
        subject, other = (a, b) if turned else (b, a)
        numbers = fmt.interval(found.ratio, found.low, found.high, g)
        said = line((f"{subject} is {numbers} as fast as {other}", Role.STRONG), (f"  {found.outcome.value}", Role.DIM))
        measured = clock is Clock.MEASURED
        words = f"paired: {evidence_words(found)}" if measured else "under the model; nothing was measured"
        return [said, *wrap(words, width, Role.DIM)]
    untimed = [t.candidate.id for t in (right, left) if t.score is None]
    if untimed:
        return wrap(f"{untimed[0]} has not been timed, so nothing is said about which is faster", width, Role.WARN)
    return _through_the_first(left, right, width, g)


def _through_the_first(left: Tried, right: Tried, width: int, g: Glyphs) -> list[Line]:
    """Rungs differ in their shapes: scores of one rung are beside each other, those of two say nothing."""
    a, b = left.candidate.id, right.candidate.id
    scores = [{rung: r.score for rung, r in t.results.items() if r.score} for t in (left, right)]
    common = max(scores[0].keys() & scores[1].keys(), default=None)
    if common is None:
        return wrap(
            f"{a} and {b} were timed on no rung in common, so nothing is said of which is faster", width, Role.WARN
        )
    numbers = fmt.ratio(scores[1][common] / scores[0][common], g)
    why = f"never timed against each other: the ratio is of their scores on rung {common} and has no interval"
    return [line((f"{b} is about {numbers} as fast as {a}", Role.STRONG)), *wrap(why, width, Role.WARN)]


def compare_rows(moment: Moment, left: Tried, right: Tried, g: Glyphs) -> list[Row]:
    both = (left, right)
    signs = (standing_of(moment, left), standing_of(moment, right))
    rows = [
        Row("", (left.candidate.id, right.candidate.id), roles=(Role.TITLE, Role.TITLE)),
        Row("what it is", (left.candidate.summary, right.candidate.summary)),
        Row("state", both_of(signs, lambda s: f"{glyph_of(s, g)} {s.value}"), roles=(ROLES[signs[0]], ROLES[signs[1]])),
        Row("made by", both_of(both, lambda t: f"{t.candidate.origin.generator} / {t.candidate.origin.operator}")),
        Row("for hint", both_of(both, lambda t: (t.candidate.origin.hint or g.dash).replace("_", " "))),
        Row("structure", (left.candidate.structure, right.candidate.structure)),
        Row("made from", both_of(both, lambda t: ", ".join(t.candidate.parents) or "a first draft")),
        Row("score", both_of(both, lambda t: fmt.ratio(t.score, g) if t.score else number_of(t, g)[0] or g.dash)),
        Row("gate", both_of(both, lambda t: _gate(t))),
    ]
    rows += _parameters(left, right, g)
    rows += _times(left, right, g)
    rows += _compiled(left, right)
    rows += [Row("bound by", both_of(both, lambda t: _bottleneck(t)))]
    rows += [Row("last said", both_of(both, lambda t: t.last.reason if t.last else "waits"))]
    meeting = common_ancestor(moment.state, left.candidate.id, right.candidate.id)
    if meeting is not None:
        name, up_left, up_right = meeting
        rows.append(Row(f"from {name}", (_steps(up_left), _steps(up_right))))
    return rows


def _steps(n: int) -> str:
    return "it is that one" if n == 0 else f"{n} {'step' if n == 1 else 'steps'} away"


def _gate(tried: Tried) -> str:
    last = tried.last
    if last is None:
        return "not reached"
    verdict = last.outcome.verdict
    why = "" if verdict.ok else f" ({verdict.reason.value.replace('_', ' ')})"
    error = f", error {verdict.error:.1e}" if verdict.error is not None else ""
    return f"{verdict.kind.value}{why}, stage {verdict.stage}, {verdict.proof.value}{error}"


def _parameters(left: Tried, right: Tried, g: Glyphs) -> list[Row]:
    """What both were instantiated with, one row a name, only those that differ."""
    a, b = dict(left.candidate.origin.params), dict(right.candidate.origin.params)
    names = [n for n in dict.fromkeys([*a, *b]) if a.get(n) != b.get(n)]
    return [Row(n, (a.get(n, g.dash), b.get(n, g.dash))) for n in names[:8]]


def measured_of(tried: Tried) -> Measurement | None:
    """Its times at the highest rung that has them."""
    found = (r.outcome.measurement for _, r in sorted(tried.results.items(), reverse=True))
    return next((m for m in found if m is not None), None)


def _times(left: Tried, right: Tried, g: Glyphs) -> list[Row]:
    a, b = measured_of(left), measured_of(right)
    times = tuple({t.shape: t.device_us for t in m.timings} if m else {} for m in (a, b))
    met = head_to_head(left, right)
    ratios = {s.shape: s.ratio for s in met[0].shapes} if met else {}  # of whom the verdict on top speaks of
    how = "paired" if met and met[2] is Clock.MEASURED else "modelled"
    rows = []
    for shape in dict.fromkeys([*times[0], *times[1]]):
        cells = [fmt.time_us(t[shape], g) if shape in t else g.dash for t in times]
        note = f"{fmt.ratio(ratios[shape], g)} {how}" if shape in ratios else ""
        rows.append(Row(shape, (cells[0], cells[1]), note))
    return rows


def _resources(tried: Tried) -> Sequence[KernelResources]:
    found = (r.outcome.resources for _, r in sorted(tried.results.items(), reverse=True))
    return next((r for r in found if r), ())


def _compiled(left: Tried, right: Tried) -> list[Row]:
    a, b = _resources(left), _resources(right)
    if not a and not b:
        return []

    def said(resources: Sequence[KernelResources], what: str) -> str:
        return ", ".join(dict.fromkeys(_resource(r, what) for r in resources)) or "not compiled"

    return [
        Row(what, (said(a, what), said(b, what))) for what in ("registers", "spills", "shared", "warps", "occupancy")
    ]


def _resource(r: KernelResources, what: str) -> str:
    match what:
        case "registers":
            return str(r.registers)
        case "spills":
            return fmt.bytes_text(r.spill_bytes) if r.spill_bytes else "none"
        case "shared":
            return fmt.bytes_text(r.shared_bytes)
        case "warps":
            return str(r.num_warps)
        case _:
            return f"{r.occupancy:.0%} ({r.limiter})"


def _bottleneck(tried: Tried) -> str:
    found = (r.outcome.diagnosis for _, r in sorted(tried.results.items(), reverse=True))
    return next((d.sentence for d in found if d is not None), "not diagnosed")


def common_ancestor(state: RunState, left: str, right: str) -> tuple[str, int, int] | None:
    """The nearest candidate both come from, and how many steps up it is from each."""
    a, b = _generations(state, left), _generations(state, right)
    shared = [(a[name] + b[name], name) for name in a if name in b]
    if not shared:
        return None
    name = min(shared)[1]
    return name, a[name], b[name]


def _generations(state: RunState, candidate: str) -> dict[str, int]:
    out, todo = {candidate: 0}, [candidate]
    for name in todo:
        tried = state.tried.get(name)
        for parent in tried.candidate.parents if tried else ():
            if parent not in out and parent in state.tried:
                out[parent] = out[name] + 1
                todo.append(parent)
    return out


def table(rows: Sequence[Row], width: int, g: Glyphs) -> list[Line]:
    """Label, left, right, note; texts too long for their column go on below; a sign where the two differ."""
    noted = any(row.note for row in rows) and width >= 74
    note_room = max(len(row.note) for row in rows) + 1 if noted else 0
    label = _LABEL if width < 100 else min(max(_LABEL, *(len(row.label) + 1 for row in rows)), _WIDEST_LABEL)
    cell = max((width - label - 3 - note_room) // 2, 8)
    out: list[Line] = []
    for row in rows:
        left, right = (_filled(text, cell) for text in row.cells)
        for i in range(max(len(left), len(right))):
            sign = g.differs if row.differs and row.label and i == 0 else " "
            out.append(
                line(
                    (f"{fit(row.label if i == 0 else '', label - 1, g.ellipsis)} ", Role.DIM),
                    (fit(left[i] if i < len(left) else "", cell), row.roles[0]),
                    (f" {sign} ", Role.WARN),
                    (fit(right[i] if i < len(right) else "", cell), row.roles[1]),
                    (f" {row.note}" if noted and i == 0 else "", Role.DIM),
                )
            )
    return out


def _filled(text: str, width: int) -> list[str]:
    return ["".join(part for part, _ in row) for row in wrap(text, width, most=4)] or [""]
