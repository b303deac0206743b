"""Make docs/bottleneck-*.svg: the bottleneck pane on three planted kernels, from what was kept of a run on a real GPU.

usage: python docs/bottlenecks.py [PLANTED.json] [OUT_FOLDER]    as benchmarks/planted.py writes it
Effects: a workspace in a temporary folder, with one run a plant: the problem's first kernel, the plant, its remedy.
"""

import gzip
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbtui.domain.candidate import Candidate, Origin, candidate_id, source_sha
from kbtui.domain.codec import from_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import ProblemReport, RungOutcome
from kbtui.domain.event import (
    Budget,
    CandidateAdmitted,
    ChildEntry,
    Decision,
    EndReason,
    ProblemOpened,
    ProposalsMade,
    RunEnded,
    RungCompleted,
    RunStarted,
)
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome, ShapeRatio, ShapeTiming
from kbtui.domain.problem import Problem, ShapeRole
from kbtui.domain.profile import Diagnosis, KernelResources, Profile
from kbtui.domain.rung import DEFAULT_LADDER, PROFILE
from kbtui.domain.verdict import Proof, verified
from kbtui.evaluation.profiling import metrics
from kbtui.evaluation.profiling.diagnose import diagnose
from kbtui.evaluation.profiling.ncu_csv import parse_raw_page, profile_of
from kbtui.problems import load_problem
from kbtui.tui.run import render_svg
from store.reader import Reader
from store.record import RunLedger, create_run
from store.workspace import create_workspace

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks/results/h200-2026-11-30/planted.json"
#: Where the counters of a sample's first kernel are kept, by the shape they were taken on: ncu's page, or a pool.
FIRST_PAGES = {("softmax", "4096x16384"): ROOT / "tests/data/ncu/softmax_first_h200.csv"}
FIRST_POOLS = {("mat_vec", "256x131072"): ROOT / "benchmarks/pools/mat_vec-h200-full.jsonl.gz"}
#: Plants on those shapes, by the sample whose first kernel is their parent.
SHOWN = {"softmax_spills": "softmax", "softmax_bank_conflicts": "softmax", "mat_vec_one_warp": "mat_vec"}
SIZE = (150, 31)
OPEN = ("enter", "3", "f")


@dataclass(frozen=True, slots=True)
class Shown:
    """One candidate of a picture's run."""

    source: str
    origin: Origin
    summary: str
    outcome: RungOutcome
    score: float


def main(arguments: list[str]) -> None:
    kept = json.loads((Path(arguments[0]) if arguments else KEPT).read_text())
    out = Path(arguments[1]) if len(arguments) > 1 else ROOT / "docs"
    device = from_plain(DeviceSpec, kept["device"])
    rows = {row["name"]: row for row in kept["plants"]}
    for name, sample in SHOWN.items():
        path = out / f"bottleneck-{name.replace('_', '-')}.svg"
        path.write_text(picture(load_problem(sample), device, rows[name]))
        print(path)


def picture(problem: Problem, device: DeviceSpec, row: dict[str, Any]) -> str:
    """The bottleneck pane on one plant as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = create_workspace(Path(folder))
        ledger = create_run(workspace, started(problem, device))
        ledger.append(ProblemOpened(ProblemReport(problem.spec.family)), 5.0, 2.0)
        first = first_of(problem, device, row)
        plant = plant_of(problem, device, row, first)
        before = (first, plant)
        record_all(ledger, before, remedies_of(device, row, first))
        ledger.append(RunEnded(EndReason.EXHAUSTED, "all that was tried of the first hint is measured"), 60.0, 30.0)
        ledger.close()
        with Reader(workspace) as reader:
            return render_svg(reader, reader.runs()[0].run, SIZE, ("slash", *candidate_id(len(before)), *OPEN))


def started(problem: Problem, device: DeviceSpec) -> RunStarted:
    sha = source_sha(problem.reference_source)
    generators = ("playbook", "rewrites")
    return RunStarted(
        "", problem.spec.name, problem.path, sha, device, 0, Budget(), generators, None, ChildEntry.PARENT,
        DEFAULT_LADDER,
    )  # fmt: skip


def record_all(ledger: RunLedger, before: tuple[Shown, ...], remedies: tuple[Shown, ...]) -> None:
    """The first kernel and the plant made from it, then what was made of the plant."""
    for number, shown in enumerate((*before, *remedies), start=1):
        parent = candidate_id(min(number - 1, len(before))) if number > 1 else None
        record(ledger, number, shown, parent)


def record(ledger: RunLedger, number: int, shown: Shown, parent: str | None) -> None:
    name = candidate_id(number)
    parents = (parent,) if parent else ()
    candidate = Candidate(name, source_sha(shown.source), parents, shown.origin, shown.origin.operator, shown.summary)
    commit = ledger.commit_candidate(number, shown.source, (), shown.summary, (("Candidate", name),))
    ledger.append(CandidateAdmitted(candidate, PROFILE, commit), 10.0 * number, 4.0 * number)
    ledger.append(ProposalsMade("playbook", parent, 1, 0, False, 0.1), 10.0 * number, 4.0 * number)
    decision = Decision.PROMOTE if shown.score >= 1 else Decision.PRUNE
    done = RungCompleted(name, PROFILE, shown.outcome, decision, f"{shown.score:.2f}x", shown.score, shown.score >= 1)
    ledger.append(done, 10.0 * number + 5, 4.0 * number + 2)


def outcome_of(
    device: DeviceSpec, time_us: float, ratio: float, resources: tuple[KernelResources, ...],
    profile: Profile | None, found: Diagnosis | None, shape: str,
) -> RungOutcome:  # fmt: skip
    decided = Outcome.FASTER if ratio > 1 else Outcome.SLOWER
    each = (ShapeRatio(shape, ratio, ratio, ratio),) if ratio != 1.0 else ()
    against = Comparison("first", decided, ratio, ratio, ratio, 0.99, 5, 1, each)
    timing = ShapeTiming(shape, time_us, time_us, time_us, 10)
    measurement = Measurement(Clock.MEASURED, (timing,), (against,))
    bound_us = found.bound_us if found else None
    return RungOutcome(
        verified(2, Proof.GPU), 4.0, 10.0, resources, bound_us, measurement, profile, found
    )  # fmt: skip


def first_of(problem: Problem, device: DeviceSpec, row: dict[str, Any]) -> Shown:
    """The sample's first kernel on the plant's shape, by its own counters and time."""
    shape = next(s for s in problem.spec.shapes_of(ShapeRole.TUNE) if s.name == row["shape"])
    profile, time_us = first_counted(problem.spec.name, shape.name)
    found = diagnose(problem.spec, device, shape, time_us, (), profile)
    outcome = outcome_of(device, time_us, 1.0, (), profile, found, shape.name)
    return Shown(
        problem.kernel_source or "", Origin("seed", "first_kernel"), "the problem's first kernel", outcome, 1.0
    )


def first_counted(sample: str, shape: str) -> tuple[Profile, float]:
    """Counters and microseconds, from ncu's page (which has its own time) or from a recorded pool."""
    page = FIRST_PAGES.get((sample, shape))
    if page is not None:
        profile = profile_of(shape, parse_raw_page(page.read_text()))
        return profile, (profile.metric(metrics.DURATION) or 0.0) / 1e3
    with gzip.open(FIRST_POOLS[sample, shape], "rt") as lines:
        _, first, *_ = map(json.loads, lines)
    outcome = next(r["outcome"] for r in first["rungs"] if (r["outcome"].get("profile") or {}).get("shape") == shape)
    return from_plain(Profile, outcome["profile"]), outcome["diagnosis"]["time_us"]


def plant_of(problem: Problem, device: DeviceSpec, row: dict[str, Any], first: Shown) -> Shown:
    """The plant as it was measured, diagnosed by its counters."""
    source = (ROOT / f"benchmarks/planted/{row['name']}.kernel.py").read_text()
    profile = from_plain(Profile, row["profile"])
    resources = from_plain(tuple[KernelResources, ...], row["resources"])
    shape = next(s for s in problem.spec.shapes_of(ShapeRole.TUNE) if s.name == row["shape"])
    score = time_of(first) / row["time_us"]
    time_us, n_launches = row["time_us"], row["n_launches"]
    found = diagnose(problem.spec, device, shape, time_us, resources, profile, n_launches=n_launches)
    outcome = outcome_of(device, time_us, score, resources, profile, found, row["shape"])
    summary = source.split('"""')[1].removeprefix("Slow because ").rstrip(".")
    return Shown(source, Origin("person", "submit"), summary, outcome, score)


def remedies_of(device: DeviceSpec, row: dict[str, Any], first: Shown) -> tuple[Shown, ...]:
    right = [r for r in row["remedies"] if r.get("fault") is None and "us" in r]
    return tuple(
        Shown(
            r["source"], Origin("playbook", r["operator"], row["hint"]), r["summary"],
            outcome_of(device, r["us"], time_of(first) / r["us"], (), None, None, row["shape"]),
            time_of(first) / r["us"],
        )
        for r in right
    )  # fmt: skip


def time_of(shown: Shown) -> float:
    assert shown.outcome.measurement is not None
    return shown.outcome.measurement.timings[0].device_us


if __name__ == "__main__":
    main(sys.argv[1:])
