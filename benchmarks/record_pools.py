"""Record pools for --device replay:POOL on a device: many unlike candidates a sample, each at full fidelity.

usage: python benchmarks/record_pools.py [--device cuda:0] [--samples NAME,NAME] [--seconds 540] [--candidates 48]

One command that resumes: it goes on where the last call stopped, takes the samples in turn (the one with the fewest
candidates first, until --seconds are over) and writes a pool as soon as a sample has all of its candidates; the same
call again and again ends with all pools written. Nothing is pruned: every candidate climbs to the confirm rung unless
it is found wrong, which is kept too. One in eight is profiled. Half of the questions to a generator come with hints,
half without, so that a replay can tell what hints are worth.

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
from kbtui.domain.pool import Pool, PoolCandidate, PoolHeader, RecordedRung
from kbtui.domain.problem import Problem
from kbtui.domain.profile import Diagnosis
from kbtui.domain.proposal import Phase, ProposalRequest
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, MEASURE, PROFILE, SCREEN
from kbtui.engine.ports import Device, Generator
from kbtui.errors import KbtuiError
from kbtui.evaluation.devices import open_device
from kbtui.evaluation.devices.environment import environment_of
from kbtui.generation import make_generators
from kbtui.pool_file import samples_by_process, write_pool
from kbtui.problems import load_problem, sample_names
from kbtui.scheduler.state import problem_sha

ROOT = Path(__file__).parents[1]
GENERATORS = ("playbook", "rewrites")
#: Drafts of every structure, about twice, come before anything else; then so many answers to a question.
DRAFTS, ANSWERS = 14, 2
PROFILE_ONE_IN = 8
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
    confirmed = candidate.at(CONFIRM)
    if confirmed is None or not confirmed.outcome.verdict.ok or confirmed.outcome.measurement is None:
        return None
    met = confirmed.outcome.measurement.against("first")
    return met.ratio if met else 1.0 if candidate.origin.generator == "seed" else None


@dataclass(slots=True)
class Recorder:
    """Puts questions and evaluates the answers, one candidate after the other, until the time is over."""

    device: Device
    problem: Problem
    generators: dict[str, Generator]
    recording: Recording
    report: ProblemReport
    say: Callable[[str], None]
    longest_s: float = 0.0

    def run(self, n_candidates: int, left_s: Callable[[], float]) -> None:
        """At most this many in all; none is begun that might not be finished in the time left."""
        while len(self.recording.candidates) < n_candidates and left_s() > self.longest_s:
            if not self.recording.planned and not self._plan():
                return
            for _, proposal in self.recording.planned[:4]:
                self.device.prefetch(proposal.source)
            began = time.monotonic()
            parent, proposal = self.recording.planned[0]
            candidate = self._evaluated(parent, proposal)
            self.recording.append("candidate", candidate)
            self.longest_s = max(self.longest_s, 1.2 * (time.monotonic() - began))
            self.say(self._line(candidate, time.monotonic() - began))

    def _plan(self) -> bool:
        """Ask until somebody answers; False where nobody has anything left to say."""
        if not self.recording.candidates:
            assert self.problem.kernel_source is not None
            first = Proposal(self.problem.kernel_source, Origin("seed", "first_kernel"), "first", "the first kernel")
            self.recording.planned.append((None, first))
            return True
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
        hints = ()
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

    def _evaluated(self, parent: str | None, proposal: Proposal) -> PoolCandidate:
        number = len(self.recording.candidates)
        profiled = number % PROFILE_ONE_IN == 0
        rungs: list[RecordedRung] = []
        passed = -1
        for rung in (COMPILE, SCREEN, MEASURE, *((PROFILE,) if profiled else ()), CONFIRM):
            evaluated = self.device.evaluate(self._request(number, proposal, rung, passed), _unwatched)
            rungs.append(_recorded(rung, evaluated))
            if not evaluated.outcome.verdict.ok:
                break
            passed = max(passed, evaluated.outcome.verdict.stage)
        return PoolCandidate(
            source_sha(proposal.source), proposal.source, parent, proposal.origin, proposal.structure,
            proposal.summary, proposal.notes, tuple(rungs),
        )  # fmt: skip

    def _request(self, number: int, proposal: Proposal, rung: int, passed: int) -> EvaluationRequest:
        first = self.problem.kernel_source
        opponent = Opponent("first", first) if first and first != proposal.source else None
        name = f"c{number + 1:04d}"
        return EvaluationRequest(name, proposal.source, DEFAULT_LADDER[rung], number, passed, None, opponent)

    def _line(self, candidate: PoolCandidate, took_s: float) -> str:
        last, speed = candidate.highest, speed_of(candidate)
        ended = (
            f"{speed:.2f}x over the first" if speed else f"{last.outcome.verdict.reason}: {last.outcome.verdict.detail}"
        )
        n = len(self.recording.candidates)
        return f"{self.problem.spec.name} {n}: {candidate.summary[:60]}: {ended[:90]} ({took_s:.1f} s)"


def diagnosis_of(candidate: PoolCandidate) -> Diagnosis | None:
    """As its highest rung diagnosed it."""
    told = [r.outcome.diagnosis for r in candidate.rungs if r.outcome.diagnosis is not None]
    return told[-1] if told else None


def _as_candidate(parent: PoolCandidate | None) -> Candidate | None:
    if parent is None:
        return None
    return Candidate("parent", parent.source_sha, (), parent.origin, parent.structure, parent.summary, parent.notes)


def _recorded(rung: int, evaluated: Evaluated) -> RecordedRung:
    samples = next((a.content for a in evaluated.attachments if a.name.startswith("samples-")), None)
    by_process = samples_by_process(json.loads(samples)) if samples else ()
    return RecordedRung(rung, replace(evaluated.outcome, artifacts=()), by_process)


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
            recorder = Recorder(device, problem, make_generators(GENERATORS), recording, report, _say)
            recorder.run(options.candidates, lambda: until - time.monotonic())
        finally:
            device.close()
    exhausted = not recording.planned and next_question(recording, GENERATORS) is None
    if len(recording.candidates) < options.candidates and not exhausted:
        return False
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
    parser.add_argument("--candidates", type=int, default=48, help="of each sample")
    parser.add_argument("--work", type=Path, default=ROOT / "benchmarks/pools/recording")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/pools")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + options.seconds
    names = options.samples.split(",")
    have = {n: len(Recording.read(options.work / f"{n}.jsonl").candidates) for n in names}
    left = sorted((n for n in names if have[n] < options.candidates), key=lambda n: (have[n], names.index(n)))
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
