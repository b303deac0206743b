"""Two runs side by side: what each searched and spent, how fast it got where, and what it found."""

from collections.abc import Sequence
from statistics import geometric_mean

from kbtui.domain.measurement import Clock
from kbtui.scheduler.state import Tried
from kbtui.tui import fmt
from kbtui.tui.draw import Level, step_curve, time_axis
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Line, Role, line, wrap
from kbtui.tui.view.compare import Row, both_of, measured_of, table
from kbtui.tui.view.header import alive_of, short_device
from kbtui.tui.view.lineage import bests
from kbtui.tui.view.standing import best_of


def run_verdict(left: Moment, right: Moment, width: int, g: Glyphs) -> list[Line]:
    """Whose champion is faster, where that can be said: one problem, one kind of clock, one device, one shape at least.

    Two runs' kernels were never timed in pairs, so the ratio has no interval; on another day the chip is another chip.
    """
    refused = not_comparable(left, right)
    if refused:
        return wrap(refused, width, Role.WARN)
    a, b = _times(left), _times(right)
    shared = [s for s in a if s in b]
    value = geometric_mean([a[s] / b[s] for s in shared])
    words = f"the best of {right.run} is about {fmt.ratio(value, g)} as fast as that of {left.run}"
    why = f"on {len(shared)} shared shape{'s' if len(shared) > 1 else ''}; measured apart, so without an interval"
    return [line((words, Role.STRONG)), *wrap(why, width, Role.WARN)]


def not_comparable(left: Moment, right: Moment) -> str | None:
    """Why the two runs' times say nothing about each other; None where they do."""
    a, b = left.state.started, right.state.started
    if a is None or b is None:
        return f"{left.run if a is None else right.run} has no events yet"
    if a.problem != b.problem:
        return f"two problems ({a.problem}, {b.problem}): their times are not compared"
    if a.device.clock is not b.device.clock:
        return "one was measured, the other modelled: the two are never compared"
    if a.device.name != b.device.name:
        return f"two devices ({short_device(a.device.name)}, {short_device(b.device.name)}): times are not compared"
    times = _times(left), _times(right)
    if not set(times[0]) & set(times[1]):
        return "no shape was timed in both"
    return None


def best_tried(moment: Moment) -> Tried | None:
    best = best_of(moment.state)
    return moment.state.tried.get(best.candidate) if best is not None else None


def _times(moment: Moment) -> dict[str, float]:
    tried = best_tried(moment)
    measured = measured_of(tried) if tried is not None else None
    return {t.shape: t.device_us for t in measured.timings if t.device_us > 0} if measured else {}


def run_rows(left: Moment, right: Moment, g: Glyphs) -> list[Row]:
    both = (left, right)
    started = (left.state.started, right.state.started)
    spent = (_spent(left), _spent(right))
    found = (best_of(left.state), best_of(right.state))
    rows = [
        Row("", (left.run, right.run), roles=(Role.TITLE, Role.TITLE)),
        Row("state", both_of(both, lambda m: alive_of(m, g).words)),
        Row("problem", both_of(started, lambda s: s.problem if s else "")),
        Row("device", both_of(started, lambda s: short_device(s.device.name) if s else "")),
        Row("clock", both_of(started, lambda s: s.device.clock.value if s else ""), roles=_clock_roles(left, right)),
        Row("generators", both_of(started, lambda s: ", ".join(s.generators) if s else "")),
        Row("model", both_of(started, lambda s: (s.model or g.dash) if s else "")),
        Row("seed", both_of(started, lambda s: str(s.seed) if s else "")),
        Row("wall time", both_of(spent, lambda s: s[0])),
        Row("GPU time", both_of(spent, lambda s: s[1].removeprefix("GPU "))),
        Row("candidates", both_of(both, lambda m: str(m.n_candidates))),
        Row("failed", both_of(both, lambda m: f"{_failed(m):.0%}")),
        Row("were best", both_of(both, lambda m: str(len(bests(m))))),
        Row(
            "best",
            both_of(found, lambda b: f"{b.candidate}{'' if b.confirmed else ' (not confirmed)'}" if b else g.dash),
        ),
        Row(
            "over",
            both_of(found, lambda b: f"{fmt.interval(b.ratio, b.low, b.high, g)} over {b.over}" if b else g.dash),
        ),
        Row("what it is", both_of(both, lambda m: t.candidate.summary if (t := best_tried(m)) else g.dash)),
        Row("found after", both_of(both, lambda m: _found_after(m))),
    ]
    return rows + _time_rows(left, right, g)


def _spent(moment: Moment) -> tuple[str, str, str]:
    return fmt.spent(moment.wall_s, moment.gpu_s, moment.n_candidates, moment.state.budget)


def _clock_roles(left: Moment, right: Moment) -> tuple[Role, Role]:
    def role(moment: Moment) -> Role:
        return Role.WARN if moment.clock is Clock.MODELLED else Role.PLAIN

    return role(left), role(right)


def _failed(moment: Moment) -> float:
    """The part of the candidates that the gate refused."""
    ended = [t.last for t in moment.state.tried.values() if t.last is not None]
    return sum(not last.outcome.verdict.ok for last in ended) / len(ended) if ended else 0.0


def _found_after(moment: Moment) -> str:
    best = best_of(moment.state)
    steps = [s for s in moment.steps if best is not None and s.candidate == best.candidate]
    return f"{fmt.clock(steps[0].wall_s)}, GPU {fmt.clock(steps[0].gpu_s)}" if steps else ""


def _time(time_us: float | None, g: Glyphs) -> str:
    return fmt.time_us(time_us, g) if time_us is not None else g.dash


def _time_rows(left: Moment, right: Moment, g: Glyphs) -> list[Row]:
    a, b = _times(left), _times(right)
    apart = not_comparable(left, right) is not None
    return [
        Row(
            shape[:11],
            (_time(a.get(shape), g), _time(b.get(shape), g)),
            "" if apart or shape not in a or shape not in b else fmt.ratio(a[shape] / b[shape], g),
        )
        for shape in dict.fromkeys([*a, *b])
    ]


def run_lines(left: Moment, right: Moment, width: int, g: Glyphs) -> list[Line]:
    """The verdict, then the facts, what differs marked."""
    return [*run_verdict(left, right, width, g), (), *table(run_rows(left, right, g), width, g)]


def curves_lines(moments: Sequence[Moment], by_gpu: bool, width: int, height: int, g: Glyphs) -> list[Line]:
    """Each run's best so far over the first kernel, one under the other on the same axes."""
    end = max((m.gpu_s if by_gpu else m.wall_s for m in moments), default=0.0)
    scores = [s.score for m in moments for s in m.steps]
    if not scores or end <= 0:
        return wrap("How each run's best moved appears here once both have timed something.", width, Role.DIM)
    top = max(scores)
    each = max((height - 1 - len(moments)) // max(len(moments), 1), 4)
    out: list[Line] = []
    for moment in moments:
        points: list[tuple[float, float]] = []
        for step in moment.steps:
            best = max(step.score, points[-1][1] if points else step.score)
            points.append((step.gpu_s if by_gpu else step.wall_s, best))
        crowned = frozenset(i for i, s in enumerate(moment.steps) if s.crowned)
        out.append(line((moment.run, Role.TITLE), (" best so far over its first kernel", Role.DIM)))
        levels = (Level(1.0, "first", Role.LEVEL), Level(top, "best of both", Role.LEVEL_2))
        if points:
            out += step_curve(points, levels, end, width, each - 1, g, crowned)
        else:
            out += wrap("nothing was a best yet", width, Role.DIM)
    return [*out, time_axis(end, width, "GPU time" if by_gpu else "wall time", g)]
