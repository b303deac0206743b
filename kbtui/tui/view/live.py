"""Live benchmarks: the running candidate against the incumbent, and how the best has moved."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from kbtui.domain.measurement import Clock, LiveSample
from kbtui.scheduler.reasons import evidence_words
from kbtui.tui import fmt
from kbtui.tui.draw import Level, gauge, scatter, sparkline, step_curve, time_axis
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Line, Role, line, spread, wrap
from kbtui.tui.view.standing import compile_over_eager, eager_level, versus

#: A pane this high has room for each pair's ratio over so many rows.
_PAIRS_FROM_HEIGHT, _PAIR_ROWS = 24, 5


@dataclass(frozen=True, slots=True)
class Race:
    """Two candidates side by side. ``live``: samples are still coming; times in microseconds, oldest first."""

    candidate: str
    against: str
    role: str
    shape: str
    candidate_us: tuple[float, ...]
    other_us: tuple[float, ...]
    pair: int
    max_pairs: int
    n_shapes: int
    ratio: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Settled:
    """The last finished comparison, shown while nothing is being timed."""

    candidate: str
    against: str
    ratio: float
    low: float
    high: float
    outcome: str
    words: str


@dataclass(frozen=True, slots=True)
class Curve:
    """Best so far over wall and GPU seconds, on the scale ``over``, whose own level is 1; PyTorch's are ``levels``.

    ``crowned`` are the points that were confirmed in fresh processes, by their place in ``wall``.
    """

    wall: tuple[tuple[float, float], ...]
    gpu: tuple[tuple[float, float], ...]
    wall_end_s: float
    gpu_end_s: float
    over: str
    levels: tuple[Level, ...]
    crowned: frozenset[int]


@dataclass(frozen=True, slots=True)
class LiveView:
    modelled_on: str | None
    doing: str
    race: Race | None
    settled: Settled | None
    curve: Curve | None
    unstable: str | None


def live_view(moment: Moment) -> LiveView:
    started = moment.state.started
    modelled = started.device.name if started and started.device.clock is Clock.MODELLED else None
    running = moment.running
    samples = [s for s in moment.samples if running is not None and s.candidate == running[0]]
    settled = None if samples else last_settled(moment)
    return LiveView(modelled, doing(moment), race_of(moment, samples), settled, curve_of(moment), _unstable(moment))


def doing(moment: Moment) -> str:
    """What the engine does now, in one line."""
    running, ladder = moment.running, moment.state.started.ladder if moment.state.started else ()
    if running is not None and running[1] < len(ladder):
        return f"{running[0]} on rung {running[1]} {ladder[running[1]].name}"
    working = moment.engine_here and moment.state.ended is None
    return moment.engine.activity if working and moment.engine else ""


def race_of(moment: Moment, samples: Sequence[LiveSample]) -> Race | None:
    """The race on the shape sampled last, with the ratio over every shape so far."""
    if not samples:
        return None
    last = samples[-1]
    on_shape = [s for s in samples if s.shape == last.shape and s.against == last.against]
    ratios = [s.other_us / s.candidate_us for s in samples if s.against == last.against and s.candidate_us > 0]
    value, low, high = ratio_interval(ratios)
    role = "incumbent" if last.against in moment.state.incumbents.values() else ""
    role = "champion" if last.against == moment.state.champion else role
    verdict = "faster so far" if low > 1 else "slower so far" if high < 1 else "too close to call"
    return Race(
        last.candidate,
        last.against,
        role,
        last.shape,
        tuple(s.candidate_us for s in on_shape),
        tuple(s.other_us for s in on_shape),
        last.pair,
        last.max_pairs,
        len({s.shape for s in samples}),
        value,
        low,
        high,
        verdict,
    )


def ratio_interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Median ratio and the 95 % interval of the median by order statistics (normal approximation of the binomial)."""
    ordered = sorted(ratios)
    n = len(ordered)
    half = 1.96 * math.sqrt(n) / 2
    low = max(math.floor(n / 2 - half), 0)
    high = min(math.ceil(n / 2 + half), n - 1)
    return median(ordered), ordered[low], ordered[high]


def last_settled(moment: Moment) -> Settled | None:
    for candidate, _ in sorted(moment.touched.items(), key=lambda item: -item[1])[:50]:
        tried = moment.state.tried.get(candidate)
        found = versus(tried) if tried else None
        if found is not None:
            words = ""
            if found.n_pairs and moment.clock is Clock.MEASURED:
                words = evidence_words(found)
            return Settled(candidate, found.against, found.ratio, found.low, found.high, found.outcome.value, words)
    return None


def curve_of(moment: Moment) -> Curve | None:
    """The best score so far as a rising curve; over PyTorch where it was timed, else over the first kernel."""
    if not moment.steps:
        return None
    eager = eager_level(moment.state)
    scale = 1 / eager if eager else 1.0
    wall: list[tuple[float, float]] = []
    gpu: list[tuple[float, float]] = []
    best = -math.inf
    for step in moment.steps:
        best = max(best, step.score)
        wall.append((step.wall_s, best * scale))
        gpu.append((step.gpu_s, best * scale))
    crowned = frozenset(i for i, step in enumerate(moment.steps) if step.crowned)
    over = "PyTorch eager" if eager else "the first kernel"
    return Curve(tuple(wall), tuple(gpu), moment.wall_s, moment.gpu_s, over, _levels(moment, eager), crowned)


def _levels(moment: Moment, eager: float | None) -> tuple[Level, ...]:
    """Eager PyTorch at 1 and ``torch.compile`` beside it; the first kernel alone where PyTorch was not timed."""
    if not eager:
        return (Level(1.0, "first kernel", Role.LEVEL),)
    compiled = compile_over_eager(moment.state)
    lines = (Level(1.0, "eager", Role.LEVEL),)
    return (*lines, Level(compiled, "compile", Role.LEVEL_2)) if compiled is not None else lines


def _unstable(moment: Moment) -> str | None:
    running = moment.running
    tried = moment.state.tried.get(running[0]) if running else None
    measured = tried.last.outcome.measurement if tried and tried.last else None
    return measured.unstable if measured else None


def live_title(view: LiveView) -> str:
    if view.race is not None:
        role = f" ({view.race.role})" if view.race.role else ""
        return f"Live: {view.race.candidate} against {view.race.against}{role}, {view.race.shape}"
    return f"Live: {view.doing}" if view.doing else "Live"


def live_lines(view: LiveView, width: int, height: int, g: Glyphs, by_gpu: bool = False) -> list[Line]:
    """The pane's lines: the race or the last result on top, the curve in what height is left."""
    out: list[Line] = []
    if view.modelled_on is not None:
        out += _modelled_lines(view.modelled_on, width)
    if view.race is not None:
        out += _race_lines(view.race, width, g)
        if height >= _PAIRS_FROM_HEIGHT and view.curve is not None:
            out += _pair_lines(view.race, width, g)
    elif view.settled is not None:
        out += _settled_lines(view.settled, width, g)
    elif view.curve is None:
        out += wrap(
            "Samples of the running candidate against the incumbent appear here as they are taken, "
            "and how the best has moved. Nothing has been timed yet. p resumes a search that is paused; "
            "R starts an engine where there is none.",
            width,
            Role.DIM,
        )
    if view.unstable:
        out += wrap(f"! unstable: {view.unstable}", width, Role.WARN, most=1)
    if view.curve is not None:
        out += [(), *curve_lines(view.curve, width, height - len(out) - 1, g, by_gpu)]
    return out[:height]


def _modelled_lines(device: str, width: int) -> list[Line]:
    label = " MODELLED "
    words = f" on {device}: nothing was measured"
    if len(label) + len(words) > width:
        words = f" {device}, not measured"
    return [((label, Role.LOUD), (words, Role.WARN))]


def _race_lines(race: Race, width: int, g: Glyphs) -> list[Line]:
    both = (*race.candidate_us, *race.other_us)
    low, high = min(both), max(both)
    low -= (high - low) * 0.5
    room = max(min(width - 24, 60), 4)
    pair = f"pair {race.pair} {f'of {g.at_most}{race.max_pairs}' if race.max_pairs else ''}"
    shapes = f", {race.n_shapes} shapes" if race.n_shapes > 1 else ""
    out: list[Line] = []
    for name, times, role in (
        (race.against, race.other_us, Role.DIM),
        (race.candidate, race.candidate_us, Role.ACCENT),
    ):
        drawn = sparkline(times, room, low, high, g)
        out.append(line((f"{name:<6} ", role), (drawn, role), f" {fmt.time_us(median(times), g):>10}"))
    numbers = line(("ratio ", Role.DIM), (fmt.interval(race.ratio, race.low, race.high, g), Role.STRONG))
    out.append(spread(numbers, ((f"{pair}{shapes}", Role.DIM),), width, g.ellipsis))
    out.append(_gauge_line(race.ratio, race.low, race.high, race.verdict, width, g))
    return out


def _pair_lines(race: Race, width: int, g: Glyphs) -> list[Line]:
    """Each pair's own ratio as it arrived: whether the difference is steady, and how far it scatters."""
    ratios = [other / mine for mine, other in zip(race.candidate_us, race.other_us, strict=True) if mine > 0]
    head = line(("each pair, above 1 the candidate is faster", Role.DIM))
    return [head, *scatter(ratios, 1.0, max(min(width - 8, 80), 8), _PAIR_ROWS, g)] if ratios else []


def _gauge_line(ratio: float, low: float, high: float, verdict: str, width: int, g: Glyphs) -> Line:
    role = Role.GOOD if low > 1 else Role.BAD if high < 1 else Role.WARN
    room = max(min(width - len(verdict) - 18, 31), 9) | 1
    return line(
        ("slower ", Role.DIM), (gauge(ratio, low, high, room, g), role), (" faster  ", Role.DIM), (verdict, role)
    )


def _settled_lines(settled: Settled, width: int, g: Glyphs) -> list[Line]:
    numbers = fmt.interval(settled.ratio, settled.low, settled.high, g)
    head = line(("last ", Role.DIM), f"{settled.candidate} against {settled.against}  ", (numbers, Role.STRONG))
    return [
        head,
        _gauge_line(settled.ratio, settled.low, settled.high, settled.outcome, width, g),
        *wrap(settled.words, width, Role.DIM, most=1),
    ]


def curve_lines(curve: Curve, width: int, height: int, g: Glyphs, by_gpu: bool) -> list[Line]:
    """Best so far. A wide pane shows both clocks side by side, a narrow one the chosen clock (t switches)."""
    if height < 5:
        return [_curve_title(curve, width, g, by_gpu)]
    body = height - 2
    if width >= 90 and curve.gpu_end_s > 0:
        half = width // 2 - 1
        left = _one_curve(curve, half, body, g, False)
        right = _one_curve(curve, half, body, g, True)
        pairs = [(*a, (" " * (half - _len(a) + 2), Role.PLAIN), *b) for a, b in zip(left, right, strict=True)]
        return [_curve_title(curve, width, g, None), *pairs]
    return [_curve_title(curve, width, g, by_gpu), *_one_curve(curve, width, body, g, by_gpu)]


def _len(parts: Line) -> int:
    return sum(len(text) for text, _ in parts)


def _one_curve(curve: Curve, width: int, height: int, g: Glyphs, by_gpu: bool) -> list[Line]:
    points, end = (curve.gpu, curve.gpu_end_s) if by_gpu else (curve.wall, curve.wall_end_s)
    unit = "GPU time" if by_gpu else "wall time"
    return [*step_curve(points, curve.levels, end, width, height, g, curve.crowned), time_axis(end, width, unit, g)]


def _curve_title(curve: Curve, width: int, g: Glyphs, by_gpu: bool | None) -> Line:
    best = curve.wall[-1][1]
    left = line(("best so far over ", Role.DIM), (curve.over, Role.LEVEL), ("  ", Role.DIM))
    left += ((fmt.ratio(best, g), Role.CURVE),)
    hint = "" if by_gpu is None or curve.gpu_end_s <= 0 else f"t: {'wall' if by_gpu else 'GPU'} time"
    star = f"  {g.champion} confirmed" if curve.crowned else ""
    if _len(left) + len(star) + len(hint) < width:
        left += ((star, Role.DIM),)
    return spread(left, ((hint, Role.DIM),), width, g.ellipsis)
