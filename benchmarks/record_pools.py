"""Record pools for --device replay:POOL on a device: many unlike candidates a sample, each at full fidelity.

usage: python benchmarks/record_pools.py [--device cuda:0] [--samples NAME,NAME] [--seconds 540] [--candidates 42]

One command that resumes: it goes on where the last call stopped, takes the samples in turn (one that was begun before
the others, until --seconds are over) and writes a pool as soon as a sample has all of its candidates; the same call
again and again ends with all pools written. A call that is killed loses the candidate it was at. Calls on two GPUs of
one machine, each with samples of its own, go side by side. Nothing is pruned: every candidate climbs to the confirm
rung, through every stage of the gate, unless it is found wrong, which is kept too. One in twenty is profiled. Half of
the questions to a generator come with hints, half without, so that a replay can tell what hints are worth.

What makes it cheap, and leaves the record what a run would have left: all candidates are asked the gate's questions of
one seed, as those of one run are, so that the referee knows the answers; what comes next compiles ahead for every
stage of the gate; on a GPU another candidate is evaluated while one grows old for the gate's last question; a candidate
clearly behind the fastest gets the fewest pairs; and a confirmation takes turns with the first kernel alone, because a
replay draws the times of either side by itself. One in sixteen meets the best so far and PyTorch too, as a confirmation
of a run does: what that costs more, a replay adds to the others.

Effects: the device; one file of JSON lines a sample in --work, appended to after each candidate; pools in --out.
"""

import argparse
import contextlib
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from hints import choose_hints, load_hints
from kbtui.domain.candidate import Candidate, Origin, Proposal, source_sha
from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, Opponent, ProblemReport
from kbtui.domain.measurement import LiveSample
from kbtui.domain.pool import Pool, PoolCandidate, PoolHeader, RecordedRung, ShapeSamples
from kbtui.domain.problem import Problem
from kbtui.domain.profile import Diagnosis
from kbtui.domain.proposal import Hint, Phase, ProposalRequest
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, MEASURE, PROFILE, SCREEN, Rung
from kbtui.engine.ports import Device, Generator
from kbtui.errors import KbtuiError
from kbtui.evaluation.devices import open_device
from kbtui.evaluation.devices.cuda import CudaDevice
from kbtui.evaluation.devices.environment import environment_of
from kbtui.generation import make_generators
from kbtui.pool_file import samples_by_process, write_pool
from kbtui.problems import load_problem, sample_names
from kbtui.scheduler.state import problem_sha

ROOT = Path(__file__).parents[1]
GENERATORS = ("playbook", "rewrites")
#: Drafts of every structure, about twice, come before anything else; then so many answers to a question.
DRAFTS, ANSWERS = 14, 2
PROFILE_ONE_IN = 20
#: The fifth of so many is confirmed as a run confirms: against the best so far and PyTorch, beside the first kernel.
MEETS_ALL_ONE_IN, MEETS_ALL = 16, 4
#: Questions are asked ahead until so many answers wait; they compile meanwhile.
AHEAD = 6
#: Clearly behind: slower by this factor than the fastest of the pool on the measure rung. Then so few pairs a process
#: do. A run might take more: evaluating everything at full fidelity costs at least what is recorded.
CLEARLY_BEHIND, FEWEST_PAIRS = 1.1, 4
#: Candidates under way at a time on a GPU: one has it, the other grows old without it or waits for its compilers.
UNDER_WAY = 2
#: Who was lately finished tells how long the next one takes.
LATELY = 5
#: A kept sample is rounded to so many decimals of a microsecond: a nanosecond is below any noise here.
SAMPLE_DECIMALS = 3
#: The gate's questions, as a run's seed fixes them.
SEED = 0
HINTS_A_QUESTION = 4
#: A parent slower than this part of the fastest is not asked about: nobody would refine it.
WORTH_ASKING = 0.5


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was put: to whom, about which candidate (SHA-256, None for drafts), and what came of it."""

    generator: str
    parent: str | None
    hinted: bool
    answers: int
    wall_s: float


@dataclass(slots=True)
class Recording:
    """One sample's file: a header, then questions and candidates in the order in which they were finished.

    ``planned`` are answers that are not evaluated yet; a call that is cut short evaluates them in the next one.
    """

    path: Path
    header: PoolHeader | None = None
    candidates: list[PoolCandidate] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    planned: list[tuple[str | None, Proposal]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Recording":
        recording = cls(path)
        for line in path.read_text().splitlines() if path.exists() else ():
            with contextlib.suppress(json.JSONDecodeError):  # a call that was killed may have left half a line
                recording._take(json.loads(line))
        return recording

    def _take(self, row: dict[str, Any]) -> None:
        match row["kind"]:
            case "header":
                self.header = from_plain(PoolHeader, row["value"])
            case "candidate":
                candidate = from_plain(PoolCandidate, row["value"])
                self.candidates.append(candidate)
                self.planned = [p for p in self.planned if source_sha(p[1].source) != candidate.source_sha]
            case "asked":
                self.asked.append(from_plain(Asked, row["value"]))
                self.planned += [(row["value"]["parent"], from_plain(Proposal, p)) for p in row["proposals"]]

    def append(self, kind: str, value: object, **more: object) -> None:
        """On disk first, then here."""
        row = {"kind": kind, "value": to_plain(value), **more}
        begins = "" if not self.path.exists() or self.path.read_bytes().endswith(b"\n") else "\n"
        with self.path.open("a") as file:
            file.write(f"{begins}{json.dumps(row, separators=(',', ':'))}\n")
        self._take(json.loads(json.dumps(row)))

    @property
    def seen(self) -> frozenset[str]:
        return frozenset(c.source_sha for c in self.candidates) | {source_sha(p.source) for _, p in self.planned}

    def pool(self) -> Pool:
        assert self.header is not None
        walls: dict[str, list[float]] = {}
        for asked in self.asked:
            walls.setdefault(asked.generator, []).append(asked.wall_s)
        told = replace(self.header, ask_wall_s=tuple((name, median(of)) for name, of in walls.items()))
        return Pool(told, tuple(self.candidates))


@dataclass(frozen=True, slots=True)
class Question:
    generator: str
    parent: PoolCandidate | None
    hinted: bool


def next_question(recording: Recording, generators: tuple[str, ...]) -> Question | None:
    """Drafts first; then the generator and parent asked least, the fastest of each structure. Pure; None: all said."""
    times = Counter((a.generator, a.parent) for a in recording.asked)
    empty = {(a.generator, a.parent) for a in recording.asked if a.answers == 0}
    if "playbook" in generators and not times["playbook", None]:
        return Question("playbook", None, True)
    options = [
        (times[name, parent.source_sha], -speed, number, name, parent)
        for parent, speed in heads(recording.candidates)
        for number, name in enumerate(generators)
        if (name, parent.source_sha) not in empty
    ]
    if not options:
        drafted = ("playbook", None) in empty or "playbook" not in generators
        return None if drafted else Question("playbook", None, times["playbook", None] % 2 == 0)
    asked, _, number, name, parent = min(options, key=lambda o: o[:3])
    return Question(name, parent, (asked + number + len(recording.asked)) % 2 == 0)


def heads(candidates: list[PoolCandidate]) -> list[tuple[PoolCandidate, float]]:
    """The fastest of each structure with its speed over the first kernel, those worth asking about, best first."""
    best: dict[str, tuple[PoolCandidate, float]] = {}
    for candidate in candidates:
        speed = speed_of(candidate)
        if speed is not None and speed > best.get(candidate.structure, (candidate, 0.0))[1]:
            best[candidate.structure] = (candidate, speed)
    fastest = max((speed for _, speed in best.values()), default=0.0)
    return sorted((b for b in best.values() if b[1] >= WORTH_ASKING * fastest), key=lambda b: -b[1])


def speed_of(candidate: PoolCandidate) -> float | None:
    """Its speed over the first kernel where it was confirmed; the first kernel's own is one."""
    return speed_at(candidate.at(CONFIRM), candidate.origin)


def speed_at(recorded: RecordedRung | None, origin: Origin) -> float | None:
    """Its speed over the first kernel on this rung; None where it was not timed there."""
    if recorded is None or not recorded.outcome.verdict.ok or recorded.outcome.measurement is None:
        return None
    if origin.generator == "seed":
        return 1.0
    met = recorded.outcome.measurement.against("first")
    return met.ratio if met else None


def confirming_rung(measured: float | None, fastest: float) -> Rung:
    """With the fewest pairs for who is clearly behind: where it stands is plain. Both are speeds over the first."""
    behind = measured is not None and measured * CLEARLY_BEHIND < fastest
    full = replace(DEFAULT_LADDER[CONFIRM], more_process_pairs=0)
    return replace(full, max_pairs=FEWEST_PAIRS) if behind else full


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A candidate that is being evaluated: the place it was begun at, from 0 on, and when (time.monotonic)."""

    place: int
    parent: str | None
    proposal: Proposal
    began: float

    @property
    def profiled(self) -> bool:
        return self.place % PROFILE_ONE_IN == 0


@dataclass(slots=True)
class Recorder:
    """Puts questions and evaluates the answers until the time is over, ``at_once`` of them side by side."""

    device: Device
    problem: Problem
    generators: dict[str, Generator]
    recording: Recording
    report: ProblemReport
    say: Callable[[str], None]
    at_once: int = 1
    took_s: list[float] = field(default_factory=list)
    _under_way: "dict[Future[PoolCandidate], UnderWay]" = field(default_factory=dict)

    def run(self, n_candidates: int, left_s: Callable[[], float]) -> None:
        """At most this many in all; none is begun that is not likely to be finished in the time left."""
        with ThreadPoolExecutor(self.at_once) as threads:
            while self._begin(threads, n_candidates, left_s) or self._under_way:
                for future in wait(self._under_way, return_when=FIRST_COMPLETED).done:
                    self._finish(future)

    def _begin(self, threads: ThreadPoolExecutor, n_candidates: int, left_s: Callable[[], float]) -> bool:
        """Have as many under way as there may be; whether any is that was not."""
        before = len(self._under_way)
        while len(self._under_way) < self.at_once:
            place = len(self.recording.candidates) + len(self._under_way)
            if place >= n_candidates or left_s() <= self._likely_s() or not self._plan():
                break
            waiting = self._waiting()
            for _, proposal in waiting[:AHEAD]:
                compile_ahead(self.device, proposal.source)
            begun = UnderWay(place, *waiting[0], time.monotonic())
            self._under_way[threads.submit(self._evaluated, begun)] = begun
        return len(self._under_way) > before

    def _finish(self, future: "Future[PoolCandidate]") -> None:
        begun = self._under_way.pop(future)
        candidate = future.result()
        self.recording.append("candidate", candidate)
        self.took_s.append(time.monotonic() - begun.began)
        self.say(self._line(candidate, self.took_s[-1]))

    def _waiting(self) -> list[tuple[str | None, Proposal]]:
        """Planned, and not begun."""
        begun = {source_sha(u.proposal.source) for u in self._under_way.values()}
        return [p for p in self.recording.planned if source_sha(p[1].source) not in begun]

    def _likely_s(self) -> float:
        """What another takes, by the last ones here. One that takes longer is lost where the call is killed."""
        return median(self.took_s[-LATELY:]) if self.took_s else 0.0

    def _plan(self) -> bool:
        """Have answers wait, so that they compile meanwhile; False where nobody has anything left to say.

        The first kernel comes before all, but after the drafts were asked for.
        """
        recording = self.recording
        while len(self._waiting()) < AHEAD and self._ask():
            pass
        if not recording.candidates and not self._under_way:
            assert self.problem.kernel_source is not None
            first = Proposal(self.problem.kernel_source, Origin("seed", "first_kernel"), "first", "the first kernel")
            recording.planned = [(None, first), *(p for p in recording.planned if p[1].source != first.source)]
        return bool(self._waiting())

    def _ask(self) -> bool:
        """Ask until somebody answers; False where nobody does."""
        while (question := next_question(self.recording, tuple(self.generators))) is not None:
            began = time.monotonic()
            found = self._answers(question)
            parent = question.parent.source_sha if question.parent else None
            asked = Asked(question.generator, parent, question.hinted, len(found), time.monotonic() - began)
            self.recording.append("asked", asked, proposals=[to_plain(p) for p in found])
            if found:
                return True
        return False

    def _answers(self, question: Question) -> tuple[Proposal, ...]:
        phase = Phase.NARROW if question.parent else Phase.COARSE
        diagnosis = diagnosis_of(question.parent) if question.parent else None
        hints: tuple[Hint, ...] = ()
        if question.hinted:
            family, arch = self.report.family, self.device.spec.arch
            hints = choose_hints(load_hints(), family, diagnosis, phase, (), HINTS_A_QUESTION, arch)
        request = ProposalRequest(
            self.problem, self.report.family, self.device.spec, _as_candidate(question.parent),
            question.parent.source if question.parent else None, diagnosis, hints, (), self.recording.seen, phase,
            ANSWERS if question.parent else DRAFTS, len(self.recording.asked),
        )  # fmt: skip
        chosen = {h.id for h in hints}
        found = self.generators[question.generator].propose(request)
        return tuple(p if p.origin.hint in chosen else replace(p, origin=replace(p.origin, hint=None)) for p in found)

    def _evaluated(self, begun: UnderWay) -> PoolCandidate:
        """In a thread of its own where several are under way."""
        proposal, rungs, passed = begun.proposal, list[RecordedRung](), -1
        for index in (COMPILE, SCREEN, MEASURE, *((PROFILE,) if begun.profiled else ()), CONFIRM):
            request = self._request(begun, index, passed)
            if index == CONFIRM:
                request = self._meeting(begun, replace(request, rung=self._confirming(rungs, proposal.origin)))
            evaluated = self.device.evaluate(request, _unwatched)
            rungs.append(_recorded(index, evaluated, beside_others=self.at_once > 1))
            if not evaluated.outcome.verdict.ok:
                break
            passed = max(passed, evaluated.outcome.verdict.stage)
        return PoolCandidate(
            source_sha(proposal.source), proposal.source, begun.parent, proposal.origin, proposal.structure,
            proposal.summary, proposal.notes, tuple(rungs),
        )  # fmt: skip

    def _confirming(self, rungs: list[RecordedRung], origin: Origin) -> Rung:
        others = (speed_at(c.at(MEASURE), c.origin) for c in tuple(self.recording.candidates))
        measured = next((speed_at(r, origin) for r in rungs if r.rung == MEASURE), None)
        return confirming_rung(measured, max((s for s in others if s), default=0.0))

    def _meeting(self, begun: UnderWay, request: EvaluationRequest) -> EvaluationRequest:
        """Against the first kernel alone, or against all that a run's confirmation meets."""
        if begun.place % MEETS_ALL_ONE_IN != MEETS_ALL:
            return replace(request, baselines=())
        done = tuple(self.recording.candidates)
        best = max(((s, n) for n, c in enumerate(done) if (s := speed_of(c))), default=None)
        if best is None:
            return request
        return replace(request, incumbent=Opponent(f"c{best[1] + 1:04d}", done[best[1]].source))

    def _request(self, begun: UnderWay, rung: int, passed: int) -> EvaluationRequest:
        """The first kernel meets itself: its times then come in pairs and by process, as everybody's do."""
        first = self.problem.kernel_source
        opponent = Opponent("first", first) if first else None
        name, source = f"c{begun.place + 1:04d}", begun.proposal.source
        return EvaluationRequest(name, source, DEFAULT_LADDER[rung], SEED, passed, None, opponent)

    def _line(self, candidate: PoolCandidate, took_s: float) -> str:
        last, speed = candidate.highest, speed_of(candidate)
        ended = (
            f"{speed:.2f}x over the first" if speed else f"{last.outcome.verdict.reason}: {last.outcome.verdict.detail}"
        )
        n = len(self.recording.candidates)
        by_rung = " + ".join(f"{r.outcome.wall_s:.1f}" for r in candidate.rungs)
        return f"{self.problem.spec.name} {n}: {candidate.summary[:60]}: {ended[:90]} ({took_s:.1f} s: {by_rung})"


def compile_ahead(device: Device, source: str) -> None:
    """For every stage of the gate where compiling is what an evaluation would wait for."""
    match device:
        case CudaDevice():
            device.prefetch(source, (1, 4))
        case _:
            device.prefetch(source)


def diagnosis_of(candidate: PoolCandidate) -> Diagnosis | None:
    """As its highest rung diagnosed it."""
    told = [r.outcome.diagnosis for r in candidate.rungs if r.outcome.diagnosis is not None]
    return told[-1] if told else None


def _as_candidate(parent: PoolCandidate | None) -> Candidate | None:
    if parent is None:
        return None
    return Candidate("parent", parent.source_sha, (), parent.origin, parent.structure, parent.summary, parent.notes)


def _recorded(rung: int, evaluated: Evaluated, beside_others: bool) -> RecordedRung:
    """Who was evaluated beside others has waited for them: what it takes by itself is what it held the GPU for."""
    samples = next((a.content for a in evaluated.attachments if a.name.startswith("samples-")), None)
    by_process = samples_by_process(json.loads(samples)) if samples else ()
    outcome = replace(evaluated.outcome, artifacts=())
    if beside_others and rung > COMPILE:
        outcome = replace(outcome, wall_s=outcome.gpu_s)
    return RecordedRung(rung, outcome, tuple(map(_rounded, by_process)))


def _rounded(samples: ShapeSamples) -> ShapeSamples:
    rounded = tuple(tuple(round(us, SAMPLE_DECIMALS) for us in process) for process in samples.processes)
    return ShapeSamples(samples.shape, rounded)


def _unwatched(sample: LiveSample) -> None: ...


def header_of(device: Device, problem: Problem, name: str, report: ProblemReport, open_wall_s: float) -> PoolHeader:
    facts = environment_of(device.spec)
    driver = next((value for key, value in facts if "driver" in key), "none")
    at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    return PoolHeader(replace(problem, path=name), problem_sha(problem), device.spec, driver, facts, at,
                      f"record-{name}", 0, report, open_wall_s, ())  # fmt: skip


def record(options: argparse.Namespace, name: str, until: float) -> bool:
    """One sample for the time left; whether its pool is complete. Raises KbtuiError where it cannot be recorded."""
    problem = load_problem(name)
    recording = Recording.read(options.work / f"{name}.jsonl")
    with tempfile.TemporaryDirectory(prefix="kbtui-record-") as scratch:
        device = open_device(options.device, Path(scratch))
        try:
            _check_same(recording, device, problem)
            began = time.monotonic()
            report = device.open(problem)
            if recording.header is None:
                recording.append("header", header_of(device, problem, name, report, time.monotonic() - began))
            at_once = UNDER_WAY if isinstance(device, CudaDevice) else 1
            recorder = Recorder(device, problem, make_generators(GENERATORS), recording, report, _say, at_once)
            recorder.run(options.candidates, lambda: until - time.monotonic())
        finally:
            device.close()
    exhausted = not recording.planned and next_question(recording, GENERATORS) is None
    if len(recording.candidates) < options.candidates and not exhausted:
        return False
    options.out.mkdir(parents=True, exist_ok=True)
    out = options.out / f"{name}-{_slug(device.spec.name)}-full.jsonl.gz"
    write_pool(out, recording.pool())
    speeds = [s for c in recording.candidates if (s := speed_of(c))]
    failed = sum(not c.highest.outcome.verdict.ok for c in recording.candidates)
    _say(f"{out}: {len(recording.candidates)} candidates, {failed} found wrong, mean {fmean(speeds or [0.0]):.2f}x")
    return True


def _check_same(recording: Recording, device: Device, problem: Problem) -> None:
    header = recording.header
    if header is not None and (header.device.name, header.problem_sha) != (device.spec.name, problem_sha(problem)):
        raise SystemExit(f"{recording.path} is of {header.device.name} or of another problem: move it away first")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower().removeprefix("nvidia ")).strip("-")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--samples", default=",".join(sample_names()), help="default: all six")
    parser.add_argument("--seconds", type=float, default=540.0, help="begin no candidate that may not end within these")
    parser.add_argument("--candidates", type=int, default=42, help="of each sample")
    parser.add_argument("--work", type=Path, default=ROOT / "benchmarks/pools/recording")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/pools")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + options.seconds
    names = options.samples.split(",")
    have = {n: len(Recording.read(options.work / f"{n}.jsonl").candidates) for n in names}
    left = sorted((n for n in names if have[n] < options.candidates), key=lambda n: (-have[n], names.index(n)))
    done = len(names) - len(left)
    for name in left:
        if time.monotonic() >= until:
            break
        try:
            done += record(options, name, until)
        except KbtuiError as error:
            _say(f"{name}: {error}")
    _say(f"{done} of {len(names)} pools are complete" + ("" if done == len(names) else "; call again to go on"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
