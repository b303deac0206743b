"""The six benchmarks: for each case a search with the embedded generators, then its champion against everything else.

    python benchmarks/bench_six.py --out benchmarks/results/six [--cases softmax,group_conv-8x] [--seconds 45]
                                   [--seed 0] [--limit 540] [--pack FILE.tgz] [--device cuda:0]

A case is one problem on one shape in one dtype (``benchmarks/six/cases.toml``; ``--list`` shows them and what is
done). Its search runs as ``kbtui run`` with playbook and rewrites alone. Then the champion, the first kernel, the best
playbook draft without search, PyTorch eager, torch.compile in three modes, Liger-Kernel and FlagGems where they are
installed, a plain copy and a plain read of memory take turns, each in a process of its own, three process pairs. At
last the champion is compiled for sm_80 (``--a100`` alone does that for results that lack it, on any machine).

Kept in ``--out``: CASE.json with times, samples' medians, clocks, versions and the kernels themselves, and CASE.bundle,
the search's repository for ``git clone``. A case that is there is not done again; one that was interrupted goes on
where it was, as long as ``--work`` is there. ``--limit``: seconds after which no case is begun that would not end in
time. ``--pack``: all of ``--out`` and the logs as one file, anew after every case. Exit 0: all cases asked for are
finished; 1: not all.

``docs/results.py`` makes docs/results.md and its plots of what is kept.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.make_pool import reader_of as reader_of_bundle
from benchmarks.screening import Utilisation
from benchmarks.six import judging
from benchmarks.six.a100 import on_a100
from benchmarks.six.cases import Case, chosen, in_turns, load_cases, write_problem
from benchmarks.six.contest import Contestants, Entrant, Terms, hold
from benchmarks.six.part import Part
from benchmarks.six.record import (
    CHAMPION,
    MEASURED,
    CaseRecord,
    Contest,
    KernelKept,
    OnA100,
    kind_of,
    read_record,
    write_record,
)
from benchmarks.six.search import LARGE_BUNDLE_BYTES, Wanted, bundle, reader_of, run_bounded, search, state_of
from benchmarks.six.story import best_draft, ranked, story_of
from kbtui.console import tell
from kbtui.domain.codec import from_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.event import EndReason
from kbtui.engine.replaying import problem_on
from kbtui.errors import EngineError, KbtuiError, UsageError
from kbtui.evaluation.baselines import CEILINGS, COMPILED, EAGER, LIBRARIES, NAMES
from kbtui.evaluation.devices import open_device, resolve_auto
from kbtui.evaluation.devices.cuda_chip import visible_device
from kbtui.evaluation.devices.environment import environment_of
from kbtui.problems import load_problem
from kbtui.scheduler.best import best_so_far
from kbtui.scheduler.state import RunState
from store.reader import Reader

DEFAULT_OUT = Path("benchmarks/results/six")
BASELINES = (EAGER, *COMPILED, *LIBRARIES, *CEILINGS)


@dataclass(frozen=True, slots=True)
class Held:
    """A contest as the process that held it hands it on."""

    device: DeviceSpec
    environment: tuple[tuple[str, str], ...]
    bytes_moved: float
    flops: float
    contest: Contest
    kernels: tuple[KernelKept, ...]


@dataclass(frozen=True, slots=True)
class Places:
    """Where one case's files are. ``work`` holds what is under way: the problem, the workspace, logs, the contest."""

    out: Path
    work: Path
    case: Case

    @property
    def record(self) -> Path:
        return self.out / f"{self.case.name}.json"

    @property
    def bundle(self) -> Path:
        return self.out / f"{self.case.name}.bundle"

    @property
    def folder(self) -> Path:
        return self.work / self.case.name

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def held(self) -> Path:
        return self.folder / "contest.json"

    @property
    def idle(self) -> Path:
        return self.folder / "idle.json"


def main(words: list[str] | None = None) -> int:
    try:
        options = parsed(words)
        cases = chosen(load_cases(), options.cases)
        if options.inside:
            return inside(options)
        options.out.mkdir(parents=True, exist_ok=True)
        if options.list:
            print("\n".join(f"{case.name:40} {status(places(options, case))}" for case in cases))
            return 0
        return run_part(options, in_turns(cases))
    except KbtuiError as error:
        tell(f"bench_six: {error}")
        return int(error.exit_code)


def parsed(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="where results are kept, and looked for")
    parser.add_argument("--work", type=Path, help="workspaces and logs (default: .kbtui/six; outlives the call)")
    parser.add_argument("--cases", type=split, default=(), help="begin of names, with commas; default all")
    parser.add_argument("--seconds", type=float, default=45.0, help="a search's budget")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, help="seconds this call may take")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pairs", type=int, default=12, help="most pairs a process pair and opponent")
    parser.add_argument("--processes", type=int, default=3, help="fresh process pairs")
    parser.add_argument("--baselines", type=split, default=BASELINES, help=f"of {', '.join(NAMES)}")
    parser.add_argument("--unvetted", action="store_true", help="do not vet a case's problem before its search")
    parser.add_argument("--pack", type=Path, help="a .tgz of --out, written after every case")
    parser.add_argument("--list", action="store_true", help="show the cases and what is done, and do nothing")
    parser.add_argument("--a100", action="store_true", help="only compile kept champions for sm_80 that were not yet")
    parser.add_argument("--no-a100", action="store_true", help="leave that for later")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.device = resolve_auto() if options.device == "auto" else options.device
    options.work = options.work or Path(".kbtui/six") / options.device.replace(":", "-").replace("/", "_")[-60:]
    options.command = "python benchmarks/bench_six.py " + " ".join(sys.argv[1:] if words is None else words)
    unknown = [name for name in options.baselines if name not in NAMES]
    if unknown:
        raise UsageError(f"no baseline is named {unknown[0]!r}", f"there are {', '.join(NAMES)}")
    return options


def split(words: str) -> tuple[str, ...]:
    return tuple(word for word in words.split(",") if word)


def places(options: argparse.Namespace, case: Case) -> Places:
    return Places(options.out, options.work, case)


def status(where: Places) -> str:
    """``finished``, or how far it is."""
    if where.record.is_file():
        done = read_record(where.record)
        return f"finished, {done.kind} on {done.device.name}" + ("" if done.a100 else ", not compiled for sm_80")
    if where.held.is_file():
        return "measured"
    state = state_of(where.workspace)
    if state is None:
        return "to do"
    return "searched" if is_over(state) else f"search interrupted after {state.wall_s:.0f} s"


def is_over(state: RunState | None) -> bool:
    reasons = (EndReason.BUDGET, EndReason.EXHAUSTED)
    return state is not None and state.ended is not None and state.ended.reason in reasons


def run_part(options: argparse.Namespace, cases: tuple[Case, ...]) -> int:
    began, part = time.monotonic(), Part(options.limit, options.seconds)
    todo = [] if options.a100 else [c for c in cases if not places(options, c).record.is_file()]
    for case in todo:
        gone_s, where = time.monotonic() - began, places(options, case)
        if not part.has_room(gone_s, is_over(state_of(where.workspace))):
            part.left.append(case.name)
            continue
        try:
            run_case(options, where, part, began)
            part.finished.append(case.name)
        except KbtuiError as error:
            tell(f"{case.name}: {error}")
            part.failed.append(case.name)
        pack(options)
    if not options.no_a100:
        compile_for_a100(options, [places(options, c) for c in cases], began)
        pack(options)
    tell(f"{time.monotonic() - began:.0f} s: {part.summary()}")
    return 1 if part.failed or part.left else 0


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
        sys.executable, __file__, "--inside", options.command, "--cases", where.case.name, "--out", str(options.out),
        "--work", str(options.work), "--device", options.device, "--seed", str(options.seed),
        "--pairs", str(options.pairs), "--processes", str(options.processes),
        "--baselines", ",".join(options.baselines),
    ]  # fmt: skip
    with log.open("ab") as out:
        code = run_bounded([sys.executable, "-u", *command[1:]], limit_s, out.fileno())
    if code != 0 or not where.held.is_file():
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        why = f"ended after {limit_s:.0f} s" if code is None else " ".join(last)[:300]
        raise EngineError(f"the contest came to nothing: {why}", f"read {log}")


def inside(options: argparse.Namespace) -> int:
    """The contest itself; ``--inside`` is the command that asked for it."""
    (case,) = chosen(load_cases(), options.cases)
    where = places(options, case)
    device = open_device(options.device, where.workspace, baselines=options.baselines)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
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
    return 0


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
        seconds=options.seconds,
        seed=state.started.seed,
        bytes_moved=held.bytes_moved,
        flops=held.flops,
        problem_toml=(where.folder / "problem" / "problem.toml").read_text(encoding="utf-8"),
        story=story,
        kernels=held.kernels,
        contest=held.contest,
    )


def compile_for_a100(options: argparse.Namespace, all_places: list[Places], began: float) -> None:
    """Every kept result that lacks it, from its bundle; as long as there is time."""
    for where in all_places:
        if not where.record.is_file() or (record := read_record(where.record)).a100 is not None:
            continue
        if options.limit is not None and time.monotonic() - began > options.limit - 20:
            tell("the rest is compiled for sm_80 by another call: --a100")
            return
        try:
            write_record(where.record, replace(record, a100=a100_of(where, record)))
        except (KbtuiError, OSError, subprocess.SubprocessError) as error:
            tell(f"{where.case.name}: not compiled for sm_80: {error}")


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


def machine_facts(spec: DeviceSpec) -> Iterator[tuple[str, str]]:
    yield "cores", str(os.cpu_count())
    if not spec.key.startswith("cuda"):
        return
    query = "name,driver_version,power.limit,clocks.max.sm,clocks.max.mem,persistence_mode"
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader", *(["-i", spec.uuid] if spec.uuid else [])]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
        yield f"nvidia-smi {query}", told


def uuid_of(device: str) -> str | None:
    """Of the GPU that is meant; None where there is none to be watched."""
    if not device.startswith("cuda"):
        return None
    with contextlib.suppress(Exception):  # NVML's boundary: without it the idle share is not known
        import pynvml

        pynvml.nvmlInit()
        visible = visible_device(int(device.partition(":")[2] or 0), os.environ)
        if visible.startswith("GPU-"):
            return visible
        uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(int(visible)))
        return uuid.decode() if isinstance(uuid, bytes) else str(uuid)
    return None


def pack(options: argparse.Namespace) -> None:
    if options.pack is None:
        return
    waiting = options.pack.with_name(options.pack.name + ".part")
    with tarfile.open(waiting, "w:gz") as archive:
        for path in sorted((*options.out.glob("*.json"), *options.out.glob("*.bundle"))):
            archive.add(path, path.name)
        for log in sorted(options.work.glob("*/*.log")):
            archive.add(log, f"logs/{log.parent.name}-{log.name}")
    waiting.replace(options.pack)


if __name__ == "__main__":
    raise SystemExit(main())
