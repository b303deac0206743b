"""The pages of one candidate that are made from its record: gate report, samples, profile."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from kbtui.domain.event import RungCompleted
from kbtui.domain.problem import ProblemSpec
from kbtui.domain.wording import counted
from kbtui.scheduler.state import Tried
from kbtui.tui import fmt
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Line, Role, columns, line, wrap
from kbtui.tui.view.roofline import Roofline, diagnosed, roofline_lines, roofline_of
from kbtui.tui.view.speed import speed_lines, speed_of_light, stall_lines

#: What each stage of the gate looks at, as a person reads it.
_STAGES = {
    0: "policy, signature, compile for the target",
    1: "that rung's shape and small hidden ones, three distributions, poisoned outputs, aliasing, no-op replay",
    2: "every shape and distribution of the problem, honesty while timed",
    4: "all hidden shapes too, in fresh processes",
}
#: ncu's own description of the chip: the same for every kernel, so not shown.
_CHIP = ("device__attribute", "c2clink", "nvlink")


def title_line(text: str, width: int, g: Glyphs) -> Line:
    return ((f"{text} ", Role.TITLE), (g.rule * max(width - len(text) - 1, 0), Role.DIM))


# The gate


def gate_lines(moment: Moment, tried: Tried, source: str | None, width: int, g: Glyphs) -> list[Line]:
    """Every stage it went through, what each said and on what proof; the line of the source a refusal points at."""
    if not tried.results:
        return wrap(
            "What the gate says of this candidate appears here once it has been compiled: stage by stage, with the "
            "error it found and the limit. It waits in the queue; P (in the rungs) lets it go first.",
            width,
            Role.DIM,
        )
    out: list[Line] = []
    for rung in sorted(tried.results):
        out += _gate_stage(moment, tried.results[rung], source, width, g)
    return out


def _gate_stage(moment: Moment, result: RungCompleted, source: str | None, width: int, g: Glyphs) -> list[Line]:
    verdict = result.outcome.verdict
    role = Role.GOOD if verdict.ok else Role.BAD if verdict.kind == "rejected" else Role.WARN
    sign = g.step_done if verdict.ok else g.rejected if verdict.kind == "rejected" else g.unverified
    ladder = moment.state.started.ladder if moment.state.started else ()
    name = ladder[result.rung].name if result.rung < len(ladder) else ""
    out = [title_line(f"Stage {verdict.stage}, before rung {result.rung} {name}", width, g)]
    why = "" if verdict.ok else f": {verdict.reason.value.replace('_', ' ')}"
    out.append(line((f"{sign} {verdict.kind.value}{why}", role), (f"   proof: {verdict.proof.value}", Role.DIM)))
    if verdict.kind == "unverified":
        out += wrap("not the candidate's failure: our side or the machine's", width, Role.WARN)
    out += wrap(_STAGES.get(verdict.stage, ""), width, Role.DIM, indent="  ")
    if verdict.error is not None:
        out.append(line(("  largest relative L2 error ", Role.DIM), f"{verdict.error:.2e}"))
    if verdict.detail:
        out += wrap(verdict.detail, width, Role.PLAIN, indent="  ")
    if verdict.line is not None:
        out += _excerpt(source, verdict.line, width, g)
    return [*out, ()]


def _excerpt(source: str | None, number: int, width: int, g: Glyphs) -> list[Line]:
    lines = source.splitlines() if source else []
    out: list[Line] = []
    for n in range(max(number - 2, 1), min(number + 2, len(lines)) + 1):
        here = n == number
        sign = g.cursor if here else " "
        out.append(line((f"  {sign}{n:>4}  {lines[n - 1][: max(width - 9, 8)]}", Role.BAD if here else Role.DIM)))
    return out or [line((f"  line {number}", Role.BAD))]


# The samples


@dataclass(frozen=True, slots=True)
class Match:
    """One opponent on one shape in one process: pairs of times in microseconds, in the order taken."""

    rung: int
    process: int
    against: str
    shape: str
    candidate_us: tuple[float, ...]
    other_us: tuple[float, ...]


def matches_in(text: str) -> tuple[Match, ...]:
    """The matches of a stored log of samples; nothing where the text is none."""
    try:
        plain: Any = json.loads(text)
        if not isinstance(plain, dict) or "processes" not in plain:
            return ()
        return tuple(_matches(plain))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def _matches(plain: Mapping[str, Any]) -> Sequence[Match]:
    out = []
    for n, process in enumerate(plain["processes"], start=1):
        for against, by_shape in process.items():
            for shape, pairs in by_shape.items():
                mine = tuple(t for p in pairs for t in _times(p["candidate"]))
                theirs = tuple(t for p in pairs for t in _times(p["other"]))
                if mine and theirs:
                    out.append(Match(int(plain.get("rung", 0)), n, str(against), str(shape), mine, theirs))
    return out


def _times(value: Any) -> tuple[float, ...]:
    """A pair's side is one time, or the times of both of its turns."""
    return tuple(float(v) for v in value) if isinstance(value, list) else (float(value),)


def samples_lines(tried: Tried, matches: Sequence[Match], width: int, g: Glyphs) -> list[Line]:
    """Each match as two histograms on one scale, with the ratio of its medians; else the intervals alone."""
    if not matches:
        return _intervals(tried, width, g)
    out: list[Line] = []
    name = tried.candidate.id
    for key in dict.fromkeys((m.rung, m.against, m.shape) for m in sorted(matches, key=lambda m: -m.rung)):
        group = [m for m in matches if (m.rung, m.against, m.shape) == key]
        rung, against, shape = key
        out.append(title_line(f"Rung {rung}: {name} against {against} on {shape}", width, g))
        low = min(min(*m.candidate_us, *m.other_us) for m in group)
        high = max(max(*m.candidate_us, *m.other_us) for m in group)
        for m in group:
            out += _match_lines(m, name, low, high, width, g)
        axis = max(width - 24, 8)
        ends = (fmt.time_us(low, g), fmt.time_us(high, g))
        out += [line((f"{'':<8}{ends[0]}{' ' * max(axis - len(ends[0]) - len(ends[1]), 1)}{ends[1]}", Role.DIM)), ()]
    return out


def _match_lines(m: Match, name: str, low: float, high: float, width: int, g: Glyphs) -> list[Line]:
    room = max(width - 24, 8)
    ratio = median(m.other_us) / median(m.candidate_us) if median(m.candidate_us) > 0 else 0.0
    out = [
        line(
            (f"{who:<7} ", role), (histogram(times, low, high, room, g), role), f" {fmt.time_us(median(times), g):>10}"
        )
        for who, times, role in ((m.against, m.other_us, Role.DIM), (name, m.candidate_us, Role.ACCENT))
    ]
    said = f"process {m.process}: {fmt.ratio(ratio, g)}, {counted(len(m.candidate_us), 'sample')} each"
    return [*out, line((f"{'':<8}{said}", Role.DIM))]


def histogram(times: Sequence[float], low: float, high: float, width: int, g: Glyphs) -> str:
    """How many samples fall into each of ``width`` cells between ``low`` and ``high``; empty cells are blank."""
    counts = [0] * width
    for t in times:
        counts[min(int((t - low) / ((high - low) or 1.0) * width), width - 1)] += 1
    top = max(counts)
    return "".join(g.spark[round(c / top * (len(g.spark) - 1))] if c else " " for c in counts)


def _intervals(tried: Tried, width: int, g: Glyphs) -> list[Line]:
    measured = [(rung, r.outcome.measurement) for rung, r in sorted(tried.results.items(), reverse=True)]
    out: list[Line] = []
    for rung, m in measured:
        if m is None:
            continue
        out.append(title_line(f"Rung {rung} ({m.clock.value})", width, g))
        for t in m.timings:
            span = fmt.time_span(t.low_us, t.high_us, g) if t.low_us != t.high_us else ""
            cells = [(t.shape, 18, False), (fmt.time_us(t.device_us, g), 10, True), (span, 21, True)]
            out.append(line(f"{columns(cells)}  ", (counted(t.n_samples, "sample"), Role.DIM)))
    if not out:
        return wrap(
            "Every sample taken of this candidate appears here, process by process, once a rung has timed it. "
            "P (in the rungs) lets it go first.",
            width,
            Role.DIM,
        )
    why = "medians and 95 % intervals; the single samples are stored only where a GPU measured them"
    return [*wrap(why, width, Role.DIM), (), *out]


# The profile


def profile_lines(moment: Moment, tried: Tried, spec: ProblemSpec | None, width: int, g: Glyphs) -> list[Line]:
    """What bounds it: the sentence and what it ranks, speed of light, stalls, roofline, every counter."""
    found = diagnosed(tried)
    if found is None:
        return wrap(
            "What bounds this candidate appears here once a rung has timed it; counters come at the rung that "
            "profiles. + (in the rungs) sends it on to the next rung.",
            width,
            Role.DIM,
        )
    diagnosis, _ = found
    profiles = (r.outcome.profile for _, r in sorted(tried.results.items(), reverse=True))
    profile = next((p for p in profiles if p is not None), None)
    out = [*wrap(diagnosis.sentence, width, Role.STRONG)]
    out += [line((f"{f.weight:>5.0%} ", Role.STRONG), f.bottleneck.value.replace("_", " ")) for f in diagnosis.findings]
    shares = speed_of_light(diagnosis, profile)
    out += [(), title_line("Speed of light", width, g), *speed_lines(shares, width, g)] if shares else []
    if profile is not None and profile.stalls:
        out += [(), title_line("What the warps wait for", width, g), *stall_lines(profile.stalls, width, 20, g)]
    out += [(), title_line("Roofline", width, g), *_roofline(moment, tried, spec, width, g)]
    if profile is None or profile.not_profiled:
        why = profile.not_profiled if profile and profile.not_profiled else "it has not come to a rung that profiles"
        return [*out, (), *wrap(f"no counters: {why}", width, Role.WARN)]
    out += [(), title_line(f"Counters on {profile.shape}", width, g)]
    out += [row for note in profile.notes for row in wrap(f"! {note}", width, Role.WARN)]
    shown = [m for m in profile.metrics if not m.name.startswith(_CHIP) and not m.name.endswith((".min", ".max"))]
    name_room = max(width - 26, 20)
    out += [
        line(columns([(m.name, name_room, False), (f"{m.value:,.6g}", 14, True), (m.unit, 9, False)])) for m in shown
    ]
    return out


def _roofline(moment: Moment, tried: Tried, spec: ProblemSpec | None, width: int, g: Glyphs) -> list[Line]:
    started = moment.state.started
    if started is None:
        return []
    parents = tried.candidate.parents
    parent = moment.state.tried.get(parents[0]) if parents else None
    view = roofline_of(
        started.device, spec, (tried.candidate.id, tried), (parents[0], parent) if parent is not None else None
    )
    if not isinstance(view, Roofline):
        return wrap(view, width, Role.DIM)
    return roofline_lines(view, min(width, 90), 14, g)
