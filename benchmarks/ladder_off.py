"""One search twice on one device: with the ladder, and with every candidate at full fidelity as soon as it compiles.

    python benchmarks/ladder_off.py --device cuda:0 --out benchmarks/results/ladder-off-h200.json
                                    [--problem softmax,./mine] [--case mat_vec] [--seed 0,1] [--limit 400]
                                    [--seconds 60] [--off-seconds 150] [--judge-seconds 60]

Both are the engine's own search, with playbook and rewrites and the same seed: of a problem with all its shapes, as the
recorded pools are, or of a case of the six benchmarks, which has one. Without the ladder a candidate that compiles goes
through the whole gate and a confirmation (three fresh process pairs) before anything is decided about it; the rungs
above have then nothing to add, cost nothing, and read the same result. Asked is when each first held, as the best it
would hand over, a kernel whose speedup over the first kernel is, at full fidelity, within 2 % of what the search with
the ladder ended with. The second search ends there, or at its limit.

Each has a device and a workspace of its own, so that neither finds what the other compiled, and on each the problem
was open and its first kernel confirmed once before, which counts for neither; opening it again counts for both. When
both are over, each kernel that one of them ever held as its best and that neither measured at full fidelity is measured
so, which counts for neither; one for which ``--judge-seconds`` leave no time does not count as found, and is told. A
search's own result for a kernel goes before the other's.

``--out`` holds one result for each problem or case and seed, the newest last. One that is there is not done again.
``--limit``: seconds after which no further one is begun. Exit 0: all that were asked for are there; 1: not all.
Effects: a device; writes a file of JSON.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.full_at_once import FullAtOnce
from benchmarks.ladder_searches import Judged, Searched, first_of, judged, opened_once, search
from benchmarks.six.cases import Case, chosen, load_cases, write_problem
from benchmarks.six.record import write_record
from benchmarks.six.story import CLOSE
from kbtui.console import tell
from kbtui.domain.candidate import source_sha
from kbtui.domain.codec import to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.rung import CONFIRM
from kbtui.errors import EngineError, ExitCode, KbtuiError, UsageError
from kbtui.evaluation.devices.environment import environment_of
from kbtui.problems import load_problem
from kbtui.scheduler.best import best_so_far

DEFAULT_PROBLEM = "softmax"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is searched: a problem as ``kbtui run`` takes it, or a case."""

    name: str
    case: Case | None = None

    def problem(self, folder: Path) -> str:
        """What the problem is loaded from; a case is written there."""
        return str(write_problem(self.case, folder)) if self.case else self.name


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to. ``within``: the first kernel it held that was as good as asked, and when; None: never.

    ``score``: the best that it measured at full fidelity, as a speedup over the first kernel.
    """

    wall_s: float
    gpu_s: float
    open_wall_s: float
    n_candidates: int
    n_timed: int
    score: float
    within: str | None
    within_wall_s: float | None
    within_gpu_s: float | None
    ended: str


@dataclass(frozen=True, slots=True)
class Both:
    on: Found
    off: Found
    judged: tuple[Judged, ...]
    device: DeviceSpec
    shapes: tuple[str, ...]

    @property
    def share_of_time(self) -> float | None:
        """What the search with the ladder took of the other's time; None where that did not get so far."""
        on_s, off_s = self.on.within_wall_s, self.off.within_wall_s
        return on_s / off_s if on_s and off_s else None


def found(searched: Searched, known: Mapping[str, float], asked: float) -> Found:
    """``known``: scores at full fidelity from elsewhere; its own go before them."""
    full, state = {**known, **searched.full}, searched.state
    at = next((point for point in searched.points if full.get(point[2], 0.0) >= asked), None)
    wall_s, gpu_s, sha = at or (None, None, "")
    return Found(
        wall_s=round(state.wall_s, 2),
        gpu_s=round(state.gpu_s, 2),
        open_wall_s=round(searched.open_wall_s, 2),
        n_candidates=len(state.tried),
        n_timed=searched.n_timed,
        score=round(max(searched.full.values(), default=0.0), 4),
        within=state.seen.get(sha),
        within_wall_s=None if wall_s is None else round(wall_s, 2),
        within_gpu_s=None if gpu_s is None else round(gpu_s, 2),
        ended=f"{state.ended.reason}: {state.ended.detail}" if state.ended else "not ended",
    )


def both(options: argparse.Namespace, subject: Subject, seed: int, root: Path) -> Both:
    """With the ladder, then without. Raises EngineError where the first confirmed nothing."""
    name = subject.problem(root / "problem")
    with opened_once(options.device, root / "on", name, seed) as (device, problem):
        on = search(device, problem, seed, options.seconds)
    best = best_so_far(on.state)
    score = on.full.get(best.candidate.source_sha) if best else None
    if score is None:
        raise EngineError("the search with the ladder confirmed nothing", "give it more time: --seconds")
    tell(f"{subject.name}, seed {seed}: with the ladder {score:.3f}x after {on.state.wall_s:.0f} s")
    asked = score / (1 + CLOSE)
    with opened_once(options.device, root / "off", name, seed) as (device, problem):
        off = search(device, problem, seed, options.off_seconds, FullAtOnce(device), asked)
        after = judged(device, problem, seed, {"on": on, "off": off}, options.judge_seconds)
        known = {one.source_sha: one.score for one in after if one.score is not None}
        known[source_sha(first_of(problem).source)] = 1.0
        return Both(
            found(on, known | off.full, asked), found(off, known | on.full, asked), after, device.spec,
            tuple(shape.name for shape in problem.spec.timed_at(CONFIRM)),
        )  # fmt: skip


def result(options: argparse.Namespace, subject: Subject, seed: int) -> dict[str, Any]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kbtui-ladder-") as root:
        made = both(options, subject, seed, Path(root))
    return {
        "sample": subject.name,
        "seed": seed,
        "shapes": list(made.shapes),
        "command": options.command,
        "date": time.strftime("%Y-%m-%d %H:%MZ", time.gmtime()),
        "took_s": round(time.monotonic() - began, 1),
        "device": to_plain(made.device),
        "environment": environment_of(made.device),
        "share_of_time": made.share_of_time,
        "on": to_plain(made.on),
        "off": to_plain(made.off),
        "judged": to_plain(made.judged),
    }


def run_part(options: argparse.Namespace, subjects: tuple[Subject, ...]) -> int:
    """All that are not there yet, as long as there is time. Returns the exit status."""
    began, status = time.monotonic(), 0
    for seed in options.seed:
        for subject in subjects:
            key = (subject.name, seed, options.device)
            if any((one["sample"], one["seed"], one["device"]["key"]) == key for one in read_results(options.out)):
                tell(f"{subject.name}, seed {seed}: is there already")
                continue
            if options.limit is not None and time.monotonic() - began >= options.limit:
                tell(f"{subject.name}, seed {seed}: left for another call")
                status = status or 1
                continue
            try:
                made = result(options, subject, seed)
            except KbtuiError as error:
                tell(f"ladder_off: {subject.name}, seed {seed}: {error}")
                status = int(error.exit_code)
                continue
            told = {name: made[name] for name in ("took_s", "share_of_time", "on", "off", "judged")}
            tell(f"{subject.name}, seed {seed}: {json.dumps(told, indent=1)}")
            write_record(options.out, [*read_results(options.out), made])  # others may write there, too
    return status


def read_results(path: Path) -> list[dict[str, Any]]:
    """Raises UsageError where something else is there, or nothing can be written there."""
    if not path.parent.is_dir() or path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{path} cannot be written", "name a file in a folder that is there")
    try:
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        [(one["sample"], one["seed"], one["device"]["key"]) for one in found]
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path} holds no results of searches both ways", "name another file") from error
    return found


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument(
        "--problem", action="append", help=f"names or folders, with commas; default {DEFAULT_PROBLEM}, if no case"
    )
    parser.add_argument("--case", action="append", help="of the six benchmarks: begin of names, with commas")
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of the search with the ladder")
    parser.add_argument("--off-seconds", type=float, default=150.0, help="limit of the one without")
    parser.add_argument("--judge-seconds", type=float, default=60.0, help="after which no kernel more is measured")
    parser.add_argument("--seed", type=seeds, default=[0], help="whole numbers, with commas")
    parser.add_argument("--limit", type=float, help="seconds after which no search is begun")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    options.out = options.out.resolve()
    options.command = "python benchmarks/ladder_off.py " + " ".join(sys.argv[1:] if words is None else words)
    try:
        return run_part(options, subjects_of(options))
    except KbtuiError as error:
        tell(f"ladder_off: {error}")
        return int(error.exit_code)
    except KeyboardInterrupt:
        tell("ladder_off: interrupted: what was finished before is kept; the same call goes on")
        return int(ExitCode.INTERRUPTED)


def subjects_of(options: argparse.Namespace) -> tuple[Subject, ...]:
    """The problems, then the cases. Raises UsageError on one that is not there."""
    asked = options.problem is not None or options.case is not None
    problems = split(options.problem, "--problem") if asked else (DEFAULT_PROBLEM,)
    for name in problems:
        load_problem(name)
    cases = chosen(load_cases(), split(options.case, "--case")) if options.case is not None else ()
    return (*(Subject(name) for name in problems), *(Subject(case.name, case) for case in cases))


def split(words: list[str] | None, option: str) -> tuple[str, ...]:
    """Each once. Raises UsageError where the option was given without a name."""
    names = tuple(dict.fromkeys(name for text in words or () for name in text.split(",") if name))
    if words is not None and not names:
        raise UsageError(f"{option} names nothing", "give it a name, or leave it out")
    return names


def seeds(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


if __name__ == "__main__":
    raise SystemExit(main())
