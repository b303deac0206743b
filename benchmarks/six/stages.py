"""The stages of one case: search, contest, record, sm_80. Each leaves a file; what is there is not done again.

Effects: processes, devices, files.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.make_pool import reader_of as reader_of_bundle
from benchmarks.screening import Utilisation
from benchmarks.six import judging
from benchmarks.six.a100 import on_a100
from benchmarks.six.again import in_place_of
from benchmarks.six.cases import Case, write_problem
from benchmarks.six.contest import Contestants, Entrant, Terms, hold
from benchmarks.six.hall import Hall, serve, stdout_for_answers
from benchmarks.six.machine import machine_facts, uuid_of
from benchmarks.six.marks import SEARCH_PHASES, Marks, Phases, told
from benchmarks.six.part import Part
from benchmarks.six.places import Places
from benchmarks.six.record import (
    CHAMPION,
    MEASURED,
    CaseRecord,
    Contest,
    KernelKept,
    OnA100,
    kind_of,
    write_record,
)
from benchmarks.six.search import (
    LARGE_BUNDLE_BYTES,
    Wanted,
    bundle,
    is_over,
    reader_of,
    search,
    state_of,
)
from benchmarks.six.story import best_draft, ranked, story_of
from kbtui.console import tell
from kbtui.domain.codec import from_plain
from kbtui.domain.device import DeviceSpec
from kbtui.engine.ports import Device
from kbtui.engine.replaying import problem_on
from kbtui.errors import EngineError
from kbtui.evaluation.baselines import EAGER
from kbtui.evaluation.devices import open_device
from kbtui.evaluation.devices.cuda import CudaDevice
from kbtui.evaluation.devices.environment import environment_of
from kbtui.problems import load_problem
from kbtui.scheduler.best import best_so_far
from store.reader import Reader

#: The command that holds contests.
SCRIPT = Path(__file__).parents[1] / "bench_six.py"
#: Champion, first kernel and draft: what a process pair starts of candidates.
SPARES = 3


@dataclass(frozen=True, slots=True)
class Held:
    """A contest as the process that held it hands it on."""

    device: DeviceSpec
    environment: tuple[tuple[str, str], ...]
    bytes_moved: float
    flops: float
    contest: Contest
    kernels: tuple[KernelKept, ...]
    phases: Phases = ()


def run_case(
    options: argparse.Namespace, where: Places, part: Part, began: float, hall: Hall, kept: CaseRecord | None = None
) -> None:
    """Search, contest, record: what is done is not done again. ``kept``: the record of a case that was restored.

    Raises EngineError.
    """
    case = where.case
    where.folder.mkdir(parents=True, exist_ok=True)
    problem = write_problem(case, where.folder / "problem")
    hall.open()  # nothing is timed yet, and once it is open it stands still
    at = time.monotonic()
    if not is_over(state_of(where.workspace)):
        tell(f"{case.name}: searching for {options.seconds:g} s")
        wanted = Wanted(problem, where.workspace, options.device, options.seconds, options.seed, options.unvetted)
        searched(wanted, where)
    searched_s, at = time.monotonic() - at, time.monotonic()
    if not where.held.is_file():
        tell(f"{case.name}: measuring the champion beside everything else")
        limit_s = part.contest_limit_s(time.monotonic() - began)
        hall.hold(case.name, where.contest_log, limit_s)
        if not where.held.is_file():
            raise EngineError("the contest came to nothing: it left no result", f"read {where.contest_log}")
    part.took(searched_s, time.monotonic() - at)
    record = assembled(options, where)
    if kept is not None:
        record = in_place_of(kept, record)
    elif (n_bytes := bundle(where.workspace, where.bundle)) > LARGE_BUNDLE_BYTES:
        tell(f"{case.name}: its bundle has {n_bytes / 1e6:.1f} MB")
    write_record(where.record, record)
    tell(line_of(case, record))
    tell(f"{case.name}: {told(record.phases)}")


def searched(wanted: Wanted, where: Places) -> None:
    """Search, and keep what is seen from outside. Raises EngineError."""
    marks, began = Marks(say=lambda _: None), time.time()
    with Utilisation(uuid_of(wanted.device)) as used:
        state = search(wanted, where.folder / "search.log")
    where.idle.write_text(json.dumps(used.idle_share), encoding="utf-8")
    with reader_of(where.workspace) as reader:
        started = datetime.fromisoformat(reader.runs()[0].started_at).timestamp()
    ended = max(0.0, time.time() - max(started, began) - state.wall_s)
    for phase, took_s in zip(SEARCH_PHASES, (max(0.0, started - began), state.wall_s, ended), strict=True):
        marks.took(phase, took_s)
    where.phases.write_text(json.dumps(marks.phases), encoding="utf-8")


def hall_of(options: argparse.Namespace, where: Places) -> Hall:
    """The process of this call's contests, not yet open."""
    command = [
        sys.executable, "-u", str(SCRIPT), "--inside", options.command, "--out", str(options.out),
        "--work", str(options.work), "--device", options.device, "--seed", str(options.seed),
        "--pairs", str(options.pairs), "--processes", str(options.processes),
        "--baselines", ",".join(options.baselines),
    ]  # fmt: skip
    return Hall(command, where.hall / "hall.log")


def hold_contests(options: argparse.Namespace, by_name: dict[str, Places]) -> None:
    """Inside that process; ``--inside`` is the command that asked for them. Raises DeviceError."""
    answers = stdout_for_answers()
    device = contest_device(options, next(iter(by_name.values())).hall)
    try:
        serve(
            answers,
            lambda name: hold_contest(options, device, by_name[name]),
            lambda name: by_name[name].contest_log,
        )
    finally:
        device.close()


def contest_device(options: argparse.Namespace, root: Path) -> Device:
    """Ready, so that it takes nothing from a search that runs before the first contest."""
    if options.device.startswith("cuda"):
        device = CudaDevice(options.device, root, spares=SPARES, baselines=options.baselines, timed_at_opening=False)
        device.await_start()
        return device
    return open_device(options.device, root, baselines=options.baselines)


def hold_contest(options: argparse.Namespace, device: Device, where: Places) -> None:
    """The contest itself; nothing of it is on a GPU afterwards. Raises EngineError."""
    case, marks = where.case, Marks()
    problem = problem_on(device, load_problem(str(where.folder / "problem")))
    report = device.open(problem)
    marks.reached("contest opens the problem")
    terms = Terms(case.shape, options.seed, options.pairs, options.processes, options.inside, options.baselines)
    contest, kernels = hold(device, contestants(where), report.baselines, terms, marks)
    if isinstance(device, CudaDevice):
        device.close_problem()
    marks.reached("contest's end")
    shape = next(s for s in problem.spec.shapes if s.name == case.shape)
    facts = (*environment_of(device.spec), *machine_facts(device.spec))
    bytes_moved, flops = problem.spec.bytes_moved(shape), problem.spec.flops(shape)
    write_record(where.held, Held(device.spec, facts, bytes_moved, flops, contest, kernels, marks.phases))


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
    of_search = json.loads(where.phases.read_text(encoding="utf-8")) if where.phases.is_file() else []
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
        phases=(*((str(name), float(s)) for name, s in of_search), *held.phases),
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
