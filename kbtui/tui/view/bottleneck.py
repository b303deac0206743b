"""The bottleneck: one sentence, the numbers behind it, what caps occupancy, the hints and what became of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from kbtui.domain.event import RungCompleted
from kbtui.domain.profile import Diagnosis, Evidence, KernelResources, Profile
from kbtui.scheduler.state import RunState, Tried
from kbtui.tui import fmt
from kbtui.tui.draw import bar
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment, children_of
from kbtui.tui.text import Line, Role, fit, line, wrap
from kbtui.tui.view.standing import ROLES, Standing, glyph_of, hint_word, standing_of

_SOURCES = {
    "counters": "from hardware counters",
    "compiled": "from the compiled kernel, no counters",
    "model": "from the model",
}
#: ncu's names and ours as a person says them; other names have their underscores turned to spaces.
_NAMES = {
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "compute",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram",
    "lts__t_sectors_hit_rate.pct": "L2 hits",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps active",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A hint or operator that was tried on this kernel, and what became of it."""

    name: str
    candidate: str
    standing: Standing
    words: str


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
        missing = f"it has not come so far; {where}"
    return BottleneckView(
        shown.candidate.id,
        why,
        diagnosis,
        profile,
        resources,
        missing,
        _answers(moment, shown.candidate.id, g),
        _times(shown),
    )


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
    return next((r.outcome.diagnosis for r in _from_top(tried) if r.outcome.diagnosis), None)


def _newest_profile(tried: Tried) -> Profile | None:
    return next((r.outcome.profile for r in _from_top(tried) if r.outcome.profile), None)


def _answers(moment: Moment, candidate: str, g: Glyphs) -> tuple[Answer, ...]:
    """The newest child of each hint first, then of each operator that had no hint."""
    newest: dict[str, Tried] = {}
    for child in children_of(moment.state, candidate):
        origin = child.candidate.origin
        name = (origin.hint or origin.operator).replace("_", " ")
        kept = newest.get(name)
        if kept is None or (child.score or 0) >= (kept.score or 0) or child.waiting_at is not None:
            newest[name] = child
    return tuple(
        Answer(name, t.candidate.id, standing_of(moment, t), hint_word(moment, t, g)) for name, t in newest.items()
    )


def bottleneck_title(view: BottleneckView | None) -> str:
    if view is None:
        return "Bottleneck"
    return f"Bottleneck of {view.candidate}{', ' + view.why_here if view.why_here else ''}"


def bottleneck_lines(view: BottleneckView | None, width: int, g: Glyphs, height: int = 40) -> list[Line]:
    if view is None:
        return wrap(
            "What bounds the kernel under the cursor appears here once one has been compiled and measured: "
            "the resource, the numbers behind it, and which hints it led to.",
            width,
            Role.DIM,
        )
    out: list[Line] = []
    if view.diagnosis is not None:
        out += wrap(view.diagnosis.sentence, width, Role.STRONG, most=3)
        out += _headroom(view.diagnosis, width, g)
        out += _evidence(view, width, g)
    out += _resources(view.resources, width)
    if view.profile is not None and view.profile.stalls:
        out += _stalls(view.profile.stalls, width)
    if view.not_profiled:
        out += wrap(f"not profiled: {view.not_profiled}", width, Role.WARN, most=2)
    return out + _answer_lines(view.answers, width, g) + _time_lines(view.times, g)


def _time_lines(times: Sequence[ShapeTime], g: Glyphs) -> list[Line]:
    return [
        line(
            (f"{'times' if i == 0 else '':<12}", Role.DIM),
            f"{t.shape:<12} {fmt.time_us(t.time_us, g):>9}",
            (f"  {fmt.ratio(t.ratio, g)} over {t.over}" if t.ratio is not None else "", Role.DIM),
        )
        for i, t in enumerate(times)
    ]


def _headroom(diagnosis: Diagnosis, width: int, g: Glyphs) -> list[Line]:
    if diagnosis.bound_us <= 0:
        return []
    reached = diagnosis.bound_us / diagnosis.time_us if diagnosis.time_us > 0 else 0.0
    text = f"{reached:>5.0%}  {fmt.time_us(diagnosis.time_us, g)}, bound {fmt.time_us(diagnosis.bound_us, g)}"
    room = max(min(width - 12 - len(text) - 1, 24), 6)
    source = _SOURCES.get(diagnosis.source, diagnosis.source)
    rows = [line((f"{'bound':<11} ", Role.DIM), (bar(reached, room, g), Role.GOOD), text)]
    return [*rows, ((f"{'':<12}{diagnosis.shape}, {source}", Role.DIM),)]


def _evidence(view: BottleneckView, width: int, g: Glyphs) -> list[Line]:
    """Shares of a peak as bars, heaviest finding first; other numbers as words. Occupancy has its own line."""
    numbers: dict[str, Evidence] = {}
    found = [e for f in view.diagnosis.findings for e in f.evidence] if view.diagnosis else []
    for item in found + list(view.profile.metrics if view.profile else ()):
        if view.resources and item.name == "occupancy":
            continue
        numbers.setdefault(_NAMES.get(item.name, item.name.replace("_", " ")), item)
    bars = [(n, e) for n, e in numbers.items() if e.unit.startswith("%")][:4]
    room = max(min(width - 12 - 20, 24), 6)
    out = [
        line(
            (f"{fit(n, 11, g.ellipsis)} ", Role.DIM),
            (bar(e.value / 100, room, g), Role.ACCENT),
            f"{e.value:>4.0f} {e.unit}",
        )
        for n, e in bars
    ]
    others = [f"{n} {e.value:.4g} {e.unit}".strip() for n, e in numbers.items() if not e.unit.startswith("%")][:4]
    return out + (wrap(f" {g.dot} ".join(others), width, Role.DIM, most=2) if others else [])


def _resources(resources: Sequence[KernelResources], width: int) -> list[Line]:
    """Each kernel as compiled, once for all shapes it compiles alike for."""
    alike: dict[tuple[object, ...], KernelResources] = {}
    for r in resources:
        alike.setdefault((r.kernel, r.registers, r.spill_bytes, r.shared_bytes, r.num_warps, r.occupancy), r)
    out: list[Line] = []
    for r in list(alike.values())[:3]:
        name = f"{r.kernel}, {r.shape}: " if len(alike) > 1 else ""
        spills = f", spills {r.spill_bytes} B" if r.spill_bytes else ""
        text = f"{name}{r.registers} registers{spills}, {fmt.bytes_text(r.shared_bytes)} shared, {r.num_warps} warps"
        head = line(("occupancy   ", Role.DIM), (f"{r.occupancy:.0%}", Role.STRONG), f" limited by {r.limiter}")
        joined = (*head, (f"; {text}", Role.DIM))
        if sum(len(t) for t, _ in joined) <= width:
            out.append(joined)
        else:
            out += [head, ((f"{'':<12}{text}", Role.DIM),)]
    return out


def _stalls(stalls: Sequence[tuple[str, float]], width: int) -> list[Line]:
    ranked = sorted(stalls, key=lambda s: -s[1])[:4]
    shown: list[str] = []
    for name, percent in ranked:
        text = f"{name.replace('_', ' ')} {percent:.0f} %"
        if sum(len(s) + 2 for s in shown) + len(text) + 12 <= width:
            shown.append(text)
    return [line(("stalls      ", Role.DIM), "  ".join(shown))]


def _answer_lines(answers: Sequence[Answer], width: int, g: Glyphs) -> list[Line]:
    if not answers:
        return [((fit("hints       none tried on it yet; h adds one", width).rstrip(), Role.DIM),)]
    out: list[Line] = []
    for i, a in enumerate(answers):
        name_room = max(min(width - 12 - 31, 30), 12)
        out.append(
            line(
                (f"{'hints' if i == 0 else '':<12}", Role.DIM),
                f"{fit(a.name, name_room, g.ellipsis)} {g.arrow} ",
                (f"{glyph_of(a.standing, g)} {a.candidate} {a.words}", ROLES[a.standing]),
            )
        )
    return out
