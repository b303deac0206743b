"""The stages of one case: search, contest, record, sm_80. Each leaves a file; what is there is not done again.

Effects: processes, devices, files.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.make_pool import reader_of as reader_of_bundle
from benchmarks.screening import Utilisation
from benchmarks.six import judging
from benchmarks.six.a100 import on_a100
from benchmarks.six.cases import Case, write_problem
from benchmarks.six.contest import Contestants, Entrant, Terms, hold
from benchmarks.six.machine import machine_facts, uuid_of
from benchmarks.six.part import Part
from benchmarks.six.places import Places
from benchmarks.six.record import CHAMPION, MEASURED, CaseRecord, Contest, KernelKept, OnA100, kind_of, write_record
from benchmarks.six.search import (
    LARGE_BUNDLE_BYTES,
    Wanted,
    bundle,
    is_over,
    last_words,
    reader_of,
    run_bounded,
    search,
    state_of,
)
from benchmarks.six.story import best_draft, ranked, story_of
from kbtui.console import tell
from kbtui.domain.codec import from_plain
from kbtui.domain.device import DeviceSpec
from kbtui.engine.replaying import problem_on
from kbtui.errors import EngineError
from kbtui.evaluation.baselines import EAGER
from kbtui.evaluation.devices import open_device
from kbtui.evaluation.devices.environment import environment_of
from kbtui.problems import load_problem
from kbtui.scheduler.best import best_so_far
from store.reader import Reader

#: The command that holds one case's contest.
SCRIPT = Path(__file__).parents[1] / "bench_six.py"


@dataclass(frozen=True, slots=True)
class Held:
    """A contest as the process that held it hands it on."""

    device: DeviceSpec
    environment: tuple[tuple[str, str], ...]
    bytes_moved: float
    flops: float
    contest: Contest
    kernels: tuple[KernelKept, ...]


def run_case(options: argparse.Namespace, where: Places, part: Part, began: float) -> None:
    """Search, contest, record: what is done is not done again. Raises EngineError."""
    case, at = where.case, time.monotonic()
    where.folder.mkdir(parents=True, exist_ok=True)
    problem = write_problem(case, where.folder / "problem")
    wanted = Wanted(problem, where.workspace, options.device, options.seconds, options.seed, options.unvetted)
    if not is_over(state_of(where.workspace)):
        tell(f"{case.name}: searching for {options.seconds:g} s")
        with Utilisation(uuid_of(options.device)) as used:
            search(wanted, where.folder / "search.log")
        where.idle.write_text(json.dumps(used.idle_share), encoding="utf-8")
    searched_s, at = time.monotonic() - at, time.monotonic()
    if not where.held.is_file():
        tell(f"{case.name}: measuring the champion beside everything else")
        contest_apart(options, where, part.contest_limit_s(time.monotonic() - began))
    part.took(searched_s, time.monotonic() - at)
    record = assembled(options, where)
    n_bytes = bundle(where.workspace, where.bundle)
    if n_bytes > LARGE_BUNDLE_BYTES:
        tell(f"{case.name}: its bundle has {n_bytes / 1e6:.1f} MB")
    write_record(where.record, record)
    tell(line_of(case, record))


def contest_apart(options: argparse.Namespace, where: Places, limit_s: float) -> None:
    """In a process of its own, which a hang cannot outlive. Raises EngineError."""
    log = where.folder / "contest.log"
    command = [
        sys.executable, str(SCRIPT), "--inside", options.command, "--cases", where.case.name, "--out", str(options.out),
        "--work", str(options.work), "--device", options.device, "--seed", str(options.seed),
        "--pairs", str(options.pairs), "--processes", str(options.processes),
        "--baselines", ",".join(options.baselines),
    ]  # fmt: skip
    with log.open("ab") as out:
        code = run_bounded([sys.executable, "-u", *command[1:]], limit_s, out.fileno())
    if code != 0 or not where.held.is_file():
        why = f"ended after {limit_s:.0f} s" if code is None else last_words(log)
        raise EngineError(f"the contest came to nothing: {why}", f"read {log}")


def hold_contest(options: argparse.Namespace, where: Places) -> None:
    """The contest itself; ``--inside`` is the command that asked for it."""
    case = where.case
    device = open_device(options.device, where.workspace, baselines=options.baselines)
    try:
        problem = problem_on(device, load_problem(str(where.folder / "problem")))
        report = device.open(problem)
        terms = Terms(case.shape, options.seed, options.pairs, options.processes, options.inside)
        contest, kernels = hold(device, contestants(where), report.baselines, terms)
    finally:
        device.close()
    shape = next(s for s in problem.spec.shapes if s.name == case.shape)
    facts = (*environment_of(device.spec), *machine_facts(device.spec))
    held = Held(device.spec, facts, problem.spec.bytes_moved(shape), problem.spec.flops(shape), contest, kernels)
    write_record(where.held, held)


def contestants(where: Places) -> Contestants:
    with reader_of(where.workspace) as reader:
        state = reader.state(reader.runs()[0].run)
        entrants = {t.candidate.id: Entrant(t, reader.source(t.commit)) for t in ranked(state, best_so_far(state))}
        draft, first = best_draft(state), state.first
    return Contestants(
        tuple(entrants.values()),
        entrants.get(first or ""),
        entrants.get(draft.candidate.id) if draft else None,
    )


def assembled(options: argparse.Namespace, where: Places) -> CaseRecord:
    held = from_plain(Held, json.loads(where.held.read_text(encoding="utf-8")))
    idle = json.loads(where.idle.read_text(encoding="utf-8")) if where.idle.is_file() else None
    with reader_of(where.workspace) as reader:
        run = reader.runs()[0].run
        state = reader.state(run)
        story = story_of(reader.envelopes(run), state, best_so_far(state), idle)
    assert state.started is not None
    return CaseRecord(
        case=where.case.name,
        kind=kind_of(held.device),
        device=held.device,
        environment=held.environment,
        seconds=state.budget.wall_s or 0.0,
        seed=state.started.seed,
        bytes_moved=held.bytes_moved,
        flops=held.flops,
        problem_toml=(where.folder / "problem" / "problem.toml").read_text(encoding="utf-8"),
        story=story,
        kernels=held.kernels,
        contest=held.contest,
    )


def a100_of(where: Places, record: CaseRecord) -> OnA100:
    problem = load_problem(str(write_problem(where.case, where.folder / "problem")))
    with reader_of_bundle(where.bundle) as reader:
        entrants = entrants_after(reader, record)
    found = on_a100(problem, entrants, where.folder / "a100")
    told = "compiles" if found.fits else f"does not ({found.fault}); in its place {found.substitute or 'nobody'}"
    tell(f"{where.case.name}: for sm_80 {record.contest.champion} {told}")
    return found


def entrants_after(reader: Reader, record: CaseRecord) -> tuple[Entrant, ...]:
    """The contest's champion, then the others of its search by score."""
    state = reader.state(record.story.run)
    order = [t for t in ranked(state, None) if t.candidate.id != record.contest.champion]
    return tuple(Entrant(t, reader.source(t.commit)) for t in (state.tried[record.contest.champion], *order))


def line_of(case: Case, record: CaseRecord) -> str:
    """What came of it, in one line."""
    contest, own = record.contest, record.contest.beside(EAGER)
    champion = record.kernel(CHAMPION)
    told = f"{case.name}: {contest.champion} {champion.summary if champion else ''}, {contest.us:.2f} us {record.kind}"
    if own is None:
        return told
    told += f", {own.ratio:.3f}x over eager ({own.low:.3f}-{own.high:.3f})"
    if record.kind != MEASURED:
        return told
    return f"{told}, {judging.standing(record)}, expert's {case.expert:.2f}x {judging.target_words(case, own.ratio)}"
