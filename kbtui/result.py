"""What a run found, as a value: the champion, its times, over what it is faster and by which clock. Pure."""

import shlex
from dataclasses import dataclass

from kbtui.domain.event import RungCompleted
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome
from kbtui.domain.rung import COMPILE, CONFIRM
from kbtui.domain.wording import counted
from kbtui.scheduler.best import best_so_far
from kbtui.scheduler.shrinkage import Shrinkage, shrinkages
from kbtui.scheduler.state import RunState, Tried

PYTORCH = {"eager": "PyTorch eager", "compile": "torch.compile"}
#: What a speedup is over, in words.
OVER = {**PYTORCH, "first": "the first kernel"}


@dataclass(frozen=True, slots=True)
class ShapeResult:
    """One shape: device time of the champion and of PyTorch, microseconds, with 95 % bounds of the former."""

    shape: str
    champion_us: float
    low_us: float
    high_us: float
    eager_us: float | None
    compile_us: float | None


@dataclass(frozen=True, slots=True)
class Speedup:
    """``over`` is ``eager``, ``compile`` or ``first``; 95 % interval; ``faster`` is the adjudication's word."""

    over: str
    ratio: float
    low: float
    high: float
    faster: bool
    per_shape: tuple[tuple[str, float, float, float], ...]


@dataclass(frozen=True, slots=True)
class RunResult:
    """``champion`` is None where nothing verified beat the first kernel. ``confirmed``: in fresh processes.

    ``shrinkage``: what the champion showed on the rungs below, beside what was confirmed. ``n_untried``: how many of
    the candidates nothing is known of yet.
    """

    run: str
    problem: str
    device: str
    clock: Clock
    champion: str | None
    commit: str | None
    summary: str | None
    confirmed: bool
    proof: str | None
    speedups: tuple[Speedup, ...]
    shapes: tuple[ShapeResult, ...]
    n_candidates: int
    wall_s: float
    gpu_s: float
    ended: str | None
    shrinkage: tuple[Shrinkage, ...] = ()
    n_untried: int = 0

    @property
    def better(self) -> bool:
        """Whether something better than the first kernel was found."""
        return self.champion is not None

    def over(self, name: str) -> Speedup | None:
        return next((s for s in self.speedups if s.over == name), None)


def run_result(state: RunState) -> RunResult:
    """The result of a run so far."""
    assert state.started is not None
    best = best_so_far(state)
    better = best if best and beats_first(state, best) else None
    result = _deciding(better) if better else None
    return RunResult(
        run=state.started.run,
        problem=state.started.problem,
        device=state.started.device.name,
        clock=state.started.device.clock,
        champion=better.candidate.id if better else None,
        commit=better.commit if better else None,
        summary=better.candidate.summary if better else None,
        confirmed=bool(better and better.candidate.id == state.champion),
        proof=result.outcome.verdict.proof if result else None,
        speedups=_speedups(result),
        shapes=_shapes(state, result),
        n_candidates=len(state.tried),
        wall_s=state.wall_s,
        gpu_s=state.gpu_s,
        ended=f"{state.ended.reason}: {state.ended.detail}" if state.ended else None,
        shrinkage=shrinkages(better) if better else (),
        n_untried=len(state.waiting(COMPILE)),
    )


def beats_first(state: RunState, tried: Tried) -> bool:
    """Whether an adjudication says so: faster than the first kernel, or than another that is.

    A score above one says it only where it was decided: chained through ratios of its own, it is noise of its own.
    """
    result = _deciding(tried)
    if tried.candidate.id == state.first or result is None or result.outcome.measurement is None:
        return False
    measurement, seen = result.outcome.measurement, {tried.candidate.id}
    while (direct := measurement.against("first") or measurement.against(state.first or "")) is None:
        held = next((state.tried[c.against] for c in measurement.comparisons if c.outcome is Outcome.FASTER
                     and c.against in state.tried and c.against not in seen), None)  # fmt: skip
        above = held.results.get(result.rung) if held else None
        if held is None or above is None or above.outcome.measurement is None:
            return False
        seen.add(held.candidate.id)
        measurement = above.outcome.measurement
    return direct.outcome is Outcome.FASTER


def _deciding(tried: Tried) -> RungCompleted | None:
    timed = [r for r in tried.results.values() if r.outcome.measurement is not None]
    return tried.results.get(CONFIRM) or max(timed, key=lambda r: r.rung, default=None)


def _speedups(result: RungCompleted | None) -> tuple[Speedup, ...]:
    if result is None or result.outcome.measurement is None:
        return ()
    named = [c for c in result.outcome.measurement.comparisons if c.against in ("eager", "compile", "first")]
    return tuple(_speedup(c) for c in named)


def _speedup(comparison: Comparison) -> Speedup:
    per_shape = tuple((s.shape, s.ratio, s.low, s.high) for s in comparison.shapes)
    faster = comparison.outcome is Outcome.FASTER
    return Speedup(comparison.against, comparison.ratio, comparison.low, comparison.high, faster, per_shape)


def _shapes(state: RunState, result: RungCompleted | None) -> tuple[ShapeResult, ...]:
    measurement = result.outcome.measurement if result else None
    if measurement is None:
        return ()
    eager, compiled = (_baseline_us(state, measurement, name) for name in ("eager", "compile"))
    return tuple(
        ShapeResult(t.shape, t.device_us, t.low_us, t.high_us, eager.get(t.shape), compiled.get(t.shape))
        for t in measurement.timings
    )


def _baseline_us(state: RunState, measurement: Measurement, name: str) -> dict[str, float]:
    """PyTorch's time by shape: from the same interleaved comparison where there is one, else as first timed."""
    comparison = measurement.against(name)
    if comparison is not None and comparison.shapes:
        own = {t.shape: t.device_us for t in measurement.timings}
        return {s.shape: s.ratio * own[s.shape] for s in comparison.shapes if s.shape in own}
    report = state.opened.report if state.opened else None
    found = (
        next((b.measurement for b in report.baselines if b.name == name and b.measurement), None) if report else None
    )
    return {t.shape: t.device_us for t in found.timings} if found else {}


def headline(result: RunResult) -> str:
    """The result in one line, always with its clock: ``1.41× (1.39–1.43) over PyTorch eager, measured on ...``."""
    if not result.better:
        return f"nothing faster than the first kernel was found in {_tried(result)} ({result.clock})"
    speedup = result.over("eager") or result.over("first")
    if speedup is None:
        return f"{result.champion} {result.summary} is the best so far, not yet confirmed ({result.clock})"
    interval = f" ({speedup.low:.2f}–{speedup.high:.2f})" if speedup.high > speedup.low else ""
    stands = "" if result.confirmed else ", not yet confirmed"
    return f"{speedup.ratio:.2f}×{interval} over {OVER[speedup.over]}, {result.clock} on {result.device}{stands}"


def times_words(shape: ShapeResult, clock: Clock) -> str:
    """``4096x16384 130.8 µs measured, PyTorch eager 170.1 µs``; PyTorch only where it was timed."""
    beside = {"eager": shape.eager_us, "compile": shape.compile_us}
    others = "".join(f", {PYTORCH[name]} {us:.1f} µs" for name, us in beside.items() if us is not None)
    return f"{shape.shape} {shape.champion_us:.1f} µs {clock}{others}"


def kept_instead(result: RunResult) -> str:
    """PyTorch, eager or compiled, where adjudication does not call the champion faster than it; else nothing."""
    lost = [s for s in result.speedups if s.over in PYTORCH and not s.faster]
    least = min(lost, key=lambda s: s.ratio, default=None)
    return PYTORCH[least.over] if least else ""


def _tried(result: RunResult) -> str:
    """``7 candidates``, or ``1 candidate, 6 more not tried``."""
    left = f", {result.n_untried} more not tried" if result.n_untried else ""
    return f"{counted(result.n_candidates - result.n_untried, 'candidate')}{left}"


def ended_words(result: RunResult) -> str:
    """Why it ended and after how many candidates, or nothing while it has not: ``stopped by the user, after ...``."""
    if result.ended is None:
        return ""
    reason, _, detail = result.ended.partition(": ")
    why = detail if detail.startswith(reason) else f"{reason}; {detail}"
    return f"{why}, after {_tried(result)}"


def browse_commands(git_dir: str, result: RunResult) -> tuple[str, ...]:
    """Three git commands that browse a run."""
    ref, git_dir = f"runs/{result.run}", shlex.quote(git_dir)
    return (
        f"git -C {git_dir} log --first-parent --oneline {ref}",
        f"git -C {git_dir} log --first-parent --oneline -p {ref} -- kernel.py",
        f"git -C {git_dir} show {result.commit or ref}:kernel.py",
    )
