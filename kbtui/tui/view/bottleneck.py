"""The bottleneck: one sentence, the numbers behind it, what caps occupancy, the hints and what became of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from kbtui.domain.event import RungCompleted
from kbtui.domain.profile import Diagnosis, KernelResources, Profile
from kbtui.scheduler.state import RunState, Tried
from kbtui.tui import fmt
from kbtui.tui.draw import bar
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Line, Role, clip, fit, line, longest_fitting, width_of, wrap
from kbtui.tui.view.answers import Answer, answer_lines, answers_of
from kbtui.tui.view.roofline import Roofline, diagnosed, roofline_lines, roofline_of
from kbtui.tui.view.speed import speed_lines, speed_of_light, stall_lines

_SOURCES = {
    "counters": "from hardware counters",
    "compiled": "from the compiled kernel, no counters",
    "model": "from the model",
}
#: Evidence that has a line of its own, or a bar of the speed of light.
_ELSEWHERE = ("occupancy", "dram", "memory", "compute", "arithmetic")
#: Findings that get a line, each with its weight: the part of the time that curing it could save.
_FINDINGS_SHOWN = 3
#: From this width on the roofline stands beside the rest.
_BESIDE_FROM = 88
_ROOFLINE_LINES = 13
_LABEL = 12


@dataclass(frozen=True, slots=True)
class ShapeTime:
    """Its time on one shape in microseconds, and the speedup over ``over`` where one was measured."""

    shape: str
    time_us: float
    ratio: float | None
    over: str


@dataclass(frozen=True, slots=True)
class BottleneckView:
    """``why_here``: how the shown kernel relates to the one under the cursor, empty when it is that one."""

    candidate: str
    why_here: str
    diagnosis: Diagnosis | None
    profile: Profile | None
    resources: tuple[KernelResources, ...]
    not_profiled: str | None
    answers: tuple[Answer, ...]
    times: tuple[ShapeTime, ...] = ()
    roofline: Roofline | str = ""


def bottleneck_view(moment: Moment, selected: str | None, g: Glyphs) -> BottleneckView | None:
    """The selected kernel's diagnosis, else that of the kernel it was made from, else the best one's."""
    state = moment.state
    shown, why = _subject(state, selected)
    if shown is None:
        return None
    diagnosis = _newest_diagnosis(shown)
    profile = _newest_profile(shown)
    resources = next((r.outcome.resources for r in _from_top(shown) if r.outcome.resources), ())
    missing = profile.not_profiled if profile else None
    if profile is None:
        rung = next((r for r in state.started.ladder if r.profile), None) if state.started else None
        where = f"profiling starts at rung {rung.index} {rung.name}" if rung else "no rung of this ladder profiles"
        past = rung is not None and max(shown.results, default=-1) > rung.index
        missing = f"it was confirmed without; {where}" if past else f"it has not come so far; {where}"
    return BottleneckView(
        shown.candidate.id,
        why,
        diagnosis,
        profile,
        resources,
        missing,
        answers_of(moment, shown.candidate.id, diagnosis, g),
        _times(shown),
        _roofline(moment, shown),
    )


def _roofline(moment: Moment, shown: Tried) -> Roofline | str:
    started, parents = moment.state.started, shown.candidate.parents
    if started is None:
        return ""
    parent = moment.state.tried.get(parents[0]) if parents else None
    beside = (parents[0], parent) if parent is not None else None
    return roofline_of(started.device, moment.problem, (shown.candidate.id, shown), beside)


def _times(tried: Tried) -> tuple[ShapeTime, ...]:
    """Its times at the highest rung that has them, beside PyTorch's or the first kernel's."""
    measured = next((r.outcome.measurement for r in _from_top(tried) if r.outcome.measurement), None)
    if measured is None:
        return ()
    over = next((c for name in ("eager", "first") if (c := measured.against(name)) is not None), None)
    ratios = {s.shape: s.ratio for s in over.shapes} if over else {}
    name = "PyTorch" if over and over.against == "eager" else "first kernel"
    return tuple(ShapeTime(t.shape, t.device_us, ratios.get(t.shape), name) for t in measured.timings)


def _subject(state: RunState, selected: str | None) -> tuple[Tried | None, str]:
    chosen = state.tried.get(selected or "")
    if chosen is not None and _newest_diagnosis(chosen) is not None:
        return chosen, ""
    seen = chosen
    steps = 0
    while seen is not None and seen.candidate.parents and steps < 64:
        seen = state.tried.get(seen.candidate.parents[0])
        steps += 1
        if seen is not None and _newest_diagnosis(seen) is not None and chosen is not None:
            return seen, f"{'parent' if steps == 1 else 'ancestor'} of {chosen.candidate.id}"
    best = next((c for _, c in sorted(state.incumbents.items(), reverse=True)), None)
    if chosen is None and best is not None:
        return state.tried[best], "the best so far"
    return chosen, ""


def _from_top(tried: Tried) -> list[RungCompleted]:
    return [tried.results[rung] for rung in sorted(tried.results, reverse=True)]


def _newest_diagnosis(tried: Tried) -> Diagnosis | None:
    found = diagnosed(tried)
    return found[0] if found is not None else None


def _newest_profile(tried: Tried) -> Profile | None:
    return next((r.outcome.profile for r in _from_top(tried) if r.outcome.profile), None)


def bottleneck_title(view: BottleneckView | None) -> str:
    if view is None:
        return "Bottleneck"
    return f"Bottleneck of {view.candidate}{', ' + view.why_here if view.why_here else ''}"


def bottleneck_lines(view: BottleneckView | None, width: int, g: Glyphs, height: int = 40) -> list[Line]:
    if view is None:
        return wrap(
            "What bounds the kernel under the cursor appears here once one has been compiled and measured: "
            "the resource, the numbers behind it, and which hints it led to. Choose a candidate with the arrows in "
            "1, 5 or 6; where no engine works, R starts one.",
            width,
            Role.DIM,
        )
    if width < _BESIDE_FROM:
        rows = [*_told(view, width, g), *_roofline_lines(view, width, _ROOFLINE_LINES, g)]
        return [clip(row, width, g.ellipsis) for row in rows]
    half = width // 2
    left = _told(view, half - 2, g)
    right = _roofline_lines(view, width - half, min(max(height - 1, 9), 20), g)
    padded = [clip(left[i], half - 2, g.ellipsis) if i < len(left) else () for i in range(max(len(left), len(right)))]
    return [
        (*row, (" " * max(half - width_of(row), 1), Role.PLAIN), *(right[i] if i < len(right) else ()))
        for i, row in enumerate(padded)
    ]


def _told(view: BottleneckView, width: int, g: Glyphs) -> list[Line]:
    """Everything but the roofline."""
    out: list[Line] = []
    if view.diagnosis is not None:
        out += wrap(view.diagnosis.sentence, width, Role.STRONG, most=3)
        out += _headroom(view.diagnosis, width, g)
        out += speed_lines(speed_of_light(view.diagnosis, view.profile), width, g)
        out += _evidence(view, width)
    if view.profile is not None and view.profile.stalls:
        out += [((fit("stalls", 12), Role.DIM),), *stall_lines(view.profile.stalls, width, 4, g)]
    out += _resources(view.resources, width)
    if view.not_profiled:
        out += wrap(f"not profiled: {view.not_profiled}", width, Role.WARN, most=2)
    return [*out, *answer_lines(view.answers, width, g), *_time_lines(view.times, width, g)]


def _roofline_lines(view: BottleneckView, width: int, height: int, g: Glyphs) -> list[Line]:
    if isinstance(view.roofline, Roofline):
        return roofline_lines(view.roofline, width, height, g)
    return wrap(view.roofline, width, Role.DIM)


def _time_lines(times: Sequence[ShapeTime], width: int, g: Glyphs) -> list[Line]:
    out: list[Line] = []
    for t in times:
        label, time = f"{'' if out else 'times':<{_LABEL}}", f"{t.shape:<12} {fmt.time_us(t.time_us, g):>9}"
        ratio = f"  {fmt.ratio(t.ratio, g)}" if t.ratio is not None else ""
        words = (f"{ratio} over {t.over}", ratio) if ratio else ()
        over = longest_fitting(words, width - _LABEL - len(time))
        out.append(line((label, Role.DIM), time, (over, Role.DIM)))
    return out


def _headroom(diagnosis: Diagnosis, width: int, g: Glyphs) -> list[Line]:
    if diagnosis.bound_us <= 0:
        return []
    reached = diagnosis.bound_us / diagnosis.time_us if diagnosis.time_us > 0 else 0.0
    took, bound = f"{reached:>5.0%}  {fmt.time_us(diagnosis.time_us, g)}", f"bound {fmt.time_us(diagnosis.bound_us, g)}"
    where = f"{diagnosis.shape}, {_SOURCES.get(diagnosis.source, diagnosis.source)}"
    fits = width >= _LABEL + 6 + len(f"{took}, {bound}")
    text, below = (f"{took}, {bound}", [where]) if fits else (took, [bound, where])
    room = max(min(width - _LABEL - len(text) - 1, 24), 6)
    rows = [line((f"{'bound':<11} ", Role.DIM), (bar(reached, room, g), Role.GOOD), text)]
    return [*rows, *(row for words in below for row in _beneath(words, width, 2))]


def _beneath(text: str, width: int, most: int) -> list[Line]:
    """Wrapped, under what stands beside a label."""
    rows = wrap(text, max(width - _LABEL, 8), Role.DIM, most=most)
    return [((" " * _LABEL, Role.PLAIN), *row) for row in rows]


def _evidence(view: BottleneckView, width: int) -> list[Line]:
    """What was found, heaviest first, with the numbers that no bar shows; a number that does not fit is left out."""
    out: list[Line] = []
    for finding in view.diagnosis.findings[:_FINDINGS_SHOWN] if view.diagnosis else ():
        told = [e.told for e in finding.evidence if e.name not in _ELSEWHERE]
        head = f"{finding.bottleneck.value.replace('_', ' ')} {finding.weight:.2f}"
        label = (f"{'' if out else 'why':<{_LABEL}}", Role.DIM)
        beside, left = _fitting(told, width - _LABEL - len(head) - 3)
        below, _ = _fitting(left if not out else (), width - _LABEL)
        comma = "," if beside and below else ""
        out.append((label, (head, Role.PLAIN), (f": {beside}{comma}" if beside else "", Role.DIM)))
        out += _beneath(below, width, 1) if below else []
    return out


def _fitting(items: Sequence[str], room: int) -> tuple[str, Sequence[str]]:
    """As many of them, joined, as there is room for, and the rest."""
    n = next((n for n in range(len(items), 0, -1) if len(", ".join(items[:n])) <= room), 0)
    return ", ".join(items[:n]), items[n:]


def _resources(resources: Sequence[KernelResources], width: int) -> list[Line]:
    """Each kernel as compiled, once for all shapes it compiles alike for."""
    alike: dict[tuple[object, ...], KernelResources] = {}
    for r in resources:
        alike.setdefault((r.kernel, r.registers, r.spill_bytes, r.shared_bytes, r.num_warps, r.occupancy), r)
    out: list[Line] = []
    for r in list(alike.values())[:3]:
        name = f"{r.kernel}, {r.shape}: " if len(alike) > 1 else ""
        spills = f", spills {r.spill_bytes:,} B" if r.spill_bytes else ""
        warps = f"{r.num_warps} warp{'' if r.num_warps == 1 else 's'}"
        text = f"{name}{r.registers} registers{spills}, {fmt.bytes_text(r.shared_bytes)} shared, {warps}"
        head = line(("occupancy   ", Role.DIM), (f"{r.occupancy:.0%}", Role.STRONG), f" limited by {r.limiter}")
        joined = (*head, (f"; {text}", Role.DIM))
        if sum(len(t) for t, _ in joined) <= width:
            out.append(joined)
        else:
            out += [head, *_beneath(text, width, 2)]
    return out
