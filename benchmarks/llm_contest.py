"""Kept replies of a model against rewrites given the same diagnoses: verified, faster, failed, on one device.

    python benchmarks/llm_contest.py questions REPLIES --workspace RUNS RUN...
    python benchmarks/llm_contest.py contest REPLIES --device cuda:0 --seconds 250 --out FILE [--only softmax,mat_vec]
    python benchmarks/llm_contest.py merge FILE FILE... --out FILE

``questions`` writes REPLIES/questions.json: of each candidate that was asked about, all that a generator is told of it
(source, diagnosis, hints, what was tried), so that the contest needs no workspace. ``contest`` takes each kept reply,
mended as in a run, and as many proposals of the rewrites for the same question, and puts them to the whole gate; who
passes is timed in turns against the kernel that the question is about, on all timed shapes, and who leads after one
process pair again in three fresh ones. FILE is written after every answer, and what it holds is not done again;
``merge`` puts together what several calls found.
Effects: devices, writes FILE (JSON).
"""

import argparse
import collections
import json
import math
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.lanes import GatesMany, Gating, in_lanes
from benchmarks.llm_replies import kept_replies, requests_of
from hints import load_hints
from kbtui.domain.candidate import Candidate
from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import EvaluationRequest, Opponent
from kbtui.domain.measurement import Comparison, Outcome
from kbtui.domain.problem import Problem
from kbtui.domain.profile import Diagnosis
from kbtui.domain.proposal import Hint, Phase, ProposalRequest, Sibling
from kbtui.domain.rung import MEASURE, PROFILE, Rung
from kbtui.domain.verdict import Verdict, VerdictKind
from kbtui.engine.ports import Device
from kbtui.errors import UsageError
from kbtui.generation.repair import Mended, repair
from kbtui.generation.rewrites.propose import Rewrites
from kbtui.generation.sameness import normalised_sha
from kbtui.generation.signature import input_names
from kbtui.kernel_file import check_kernel
from kbtui.problems import load_problem

Row = dict[str, Any]
QUESTIONS = "questions.json"
LLM, REWRITES = "llm", "rewrites"
#: Of the time that is given, after which no other answer is gated: what passed is still to be timed.
GATE_SHARE = 0.6
#: Everything is gated before; one process pair finds who may be faster, three decide about it.
FIRST_LOOK = Rung(MEASURE, "first look", gate_stage=4, max_pairs=12, process_pairs=1, profile=False, share=1.0)
SECOND_LOOK = Rung(PROFILE, "second look", gate_stage=4, max_pairs=8, process_pairs=3, profile=False, share=1.0)


# -- the questions ----------------------------------------------------------------------------------------------------


#: Alike for all questions about one run.
_OF_RUN = ("problem", "family", "device", "seen", "seed")


def request_to_plain(request: ProposalRequest) -> Row:
    """All of a request but the problem, which is named, and the hints' texts, which are looked up by id."""
    return {
        "problem": request.problem.spec.name,
        "family": request.family,
        "device": to_plain(request.device),
        "seen": sorted(request.seen),
        "seed": request.seed,
        "parent": to_plain(request.parent),
        "parent_source": request.parent_source,
        "diagnosis": to_plain(request.diagnosis),
        "hints": [hint.id for hint in request.hints],
        "siblings": to_plain(request.siblings),
    }


def request_from_plain(plain: Row) -> ProposalRequest:
    """The inverse of ``request_to_plain``. A hint that is no more is left out."""
    by_id = _hints()
    return ProposalRequest(
        problem=_problem(plain["problem"]),
        family=plain["family"],
        device=from_plain(DeviceSpec, plain["device"]),
        parent=from_plain(Candidate, plain["parent"]),
        parent_source=plain["parent_source"],
        diagnosis=from_plain(Diagnosis | None, plain["diagnosis"]),
        hints=tuple(by_id[name] for name in plain["hints"] if name in by_id),
        siblings=from_plain(tuple[Sibling, ...], plain["siblings"]),
        seen=frozenset(plain["seen"]),
        phase=Phase.NARROW,
        limit=1,
        seed=plain["seed"],
    )


@cache
def _hints() -> dict[str, Hint]:
    return {hint.id: hint for hint in load_hints()}


@cache
def _problem(name: str) -> Problem:
    return load_problem(name)


def read_questions(folder: Path) -> list[ProposalRequest]:
    kept = json.loads((folder / QUESTIONS).read_text())
    return [request_from_plain(kept["runs"][plain["run"]] | plain) for plain in kept["questions"]]


def write_questions(options: argparse.Namespace) -> int:
    asked = {(kept["problem"], kept["candidate"]) for _, kept in kept_replies(options.dir)}
    runs: dict[str, Row] = {}
    questions = []
    for run in options.runs:
        for candidate, request in requests_of(options.workspace, run):
            plain = request_to_plain(request)
            runs[run] = {name: plain.pop(name) for name in _OF_RUN}
            if (request.problem.spec.name, candidate) in asked:
                questions.append({"run": run, **plain})
    (options.dir / QUESTIONS).write_text(json.dumps({"runs": runs, "questions": questions}, indent=1) + "\n")
    print(f"{len(questions)} questions of {len(asked)} that were asked")
    return 0 if len(questions) == len(asked) else 1


# -- the answers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """One proposal for one question. ``source`` None: no kernel came of it, for ``reason``.

    ``label``: the reply's file, or what the rewrite did.
    """

    generator: str
    problem: str
    question: str
    label: str
    parent: Opponent
    source: str | None
    reason: str = ""
    detail: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        return (self.generator, self.problem, self.question, self.label)


def answers(folder: Path) -> Iterator[Answer]:
    """Every kept reply beside a rewrite of the same parent, one of each question in turn."""
    kept = kept_replies(folder)
    columns = [list(_of_question(request, kept)) for request in read_questions(folder)]
    for place in range(max(map(len, columns), default=0)):
        for column in columns:
            yield from column[place : place + 1]


def _of_question(request: ProposalRequest, kept: list[tuple[str, Row]]) -> Iterator[Answer]:
    assert request.parent is not None
    problem, parent = request.problem.spec.name, Opponent(request.parent.id, request.parent_source or "")
    mine = [(name, k) for name, k in kept if (k["problem"], k["candidate"]) == (problem, parent.id)]
    rivals = Rewrites().propose(replace(request, limit=len(mine)))
    known = {normalised_sha(parent.source)}
    for place, (name, reply) in enumerate(mine):
        yield _of_reply(problem, parent, name, reply["reply"], known)
        for rival in rivals[place : place + 1]:
            yield Answer(REWRITES, problem, parent.id, rival.summary, parent, rival.source)


def _of_reply(problem: str, parent: Opponent, name: str, text: str, known: set[str]) -> Answer:
    """As a run takes it: mended, and no source twice."""

    def answer(source: str | None, reason: str = "", detail: str = "") -> Answer:
        return Answer(LLM, problem, parent.id, name, parent, source, reason, detail)

    made = repair(text, input_names(_problem(problem), parent.source), parent.source)
    if not isinstance(made, Mended):
        return answer(None, str(made.reason), made.detail)
    try:
        check_kernel(made.source, "the reply")
    except UsageError as error:
        return answer(None, "malformed", str(error))
    sha = normalised_sha(made.source)
    if sha in known:
        again = sha == normalised_sha(parent.source)
        return answer(None, "the_parent_again" if again else "an_earlier_reply_again")
    known.add(sha)
    return answer(made.source)


# -- the contest ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Contest:
    """What became of each answer, kept in ``out`` as it comes."""

    out: Path | None
    facts: Row
    until: float = math.inf
    rows: list[Row] = field(default_factory=list)
    gating: Gating[Answer] = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _verified: list[tuple[Answer, Verdict]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gating = Gating(self._sort)

    def play(self, device: Device, answer: Answer) -> None:
        """Where many are gated at a time, all that pass are timed in ``settle``."""
        assert answer.source is not None
        self.facts.setdefault("device", asdict(device.spec))
        self.gating.put(device, answer, answer.source)

    def settle(self, device: Device) -> None:
        """Verdicts that are still to come; then, with the GPU to themselves, those that passed are timed."""
        self.gating.finish(device)
        for answer, verdict in self._verified:
            if time.monotonic() < self.until:
                self._judge(device, answer, verdict)
        self._verified.clear()

    def _sort(self, device: Device, answer: Answer, verdict: Verdict, _: float | None) -> None:
        if verdict.ok and isinstance(device, GatesMany):
            self._verified.append((answer, verdict))
        else:
            self._judge(device, answer, verdict)

    def _judge(self, device: Device, answer: Answer, verdict: Verdict) -> None:
        row = row_of(answer) | judged(device, answer, verdict)
        print(f"{answer.generator} {answer.label}: {said(row)}", flush=True)
        self.keep(row)

    def keep(self, row: Row) -> None:
        with self._lock:
            self.rows.append(row)
            if self.out is not None:
                report = {**self.facts, "counts": counts(self.rows), "answers": self.rows}
                self.out.write_text(json.dumps(report, indent=1) + "\n")


def row_of(answer: Answer) -> Row:
    return {"generator": answer.generator, "problem": answer.problem, "question": answer.question,
            "label": answer.label, "verdict": "none", "reason": answer.reason, "detail": answer.detail}  # fmt: skip


def judged(device: Device, answer: Answer, verdict: Verdict) -> Row:
    """The gate's verdict, and of a verified kernel how it fares against the question's."""
    assert answer.source is not None
    row = {"verdict": str(verdict.kind), "reason": str(verdict.reason), "detail": verdict.detail[:300]}
    if not verdict.ok:
        return row
    for rung in (FIRST_LOOK, SECOND_LOOK):
        request = EvaluationRequest("answer", answer.source, rung, 0, rung.gate_stage, answer.parent, None)
        outcome = device.evaluate(request, lambda _: None).outcome
        if outcome.measurement is None or not outcome.measurement.comparisons:
            # What passes the gate may still be caught, or break, while it is timed.
            late = outcome.verdict
            return row | {"verdict": str(late.kind), "reason": str(late.reason), "detail": late.detail[:300]}
        row |= compared(outcome.measurement.comparisons[0]) | {"unstable": outcome.measurement.unstable}
        if row["outcome"] != Outcome.FASTER:
            return row
    return row


def compared(found: Comparison) -> Row:
    """``ratio``: the question's kernel's time over the answer's, geometric mean over shapes, with its 95 % interval."""
    return {"outcome": str(found.outcome), "ratio": round(found.ratio, 4), "low": round(found.low, 4),
            "high": round(found.high, 4), "processes": found.n_processes,
            "shapes": {s.shape: round(s.ratio, 4) for s in found.shapes}}  # fmt: skip


def said(row: Row) -> str:
    return f"{row['outcome']}, {row['ratio']}x" if "outcome" in row else f"{row['verdict']} {row['reason']}"


def counts(rows: list[Row]) -> dict[str, Row]:
    """By generator: how many answers, how many of them to the gate, verified, faster, and why the rest failed."""
    found = {}
    for generator in (LLM, REWRITES):
        mine = [row for row in rows if row["generator"] == generator]
        outcomes = collections.Counter(row["outcome"] for row in mine if "outcome" in row)
        failed = [row for row in mine if row["verdict"] != VerdictKind.VERIFIED]
        found[generator] = {
            "answers": len(mine),
            "gated": sum(row["verdict"] != "none" for row in mine),
            "verified": len(mine) - len(failed),
            **{str(outcome): outcomes[outcome] for outcome in Outcome},
            "failed": dict(collections.Counter(f"{r['verdict']}: {r['reason']}" for r in failed).most_common()),
        }
    return found


def contest(options: argparse.Namespace) -> int:
    began = time.monotonic()
    facts = {"command": f"python {' '.join(sys.argv)}", "date": time.strftime("%Y-%m-%d %H:%MZ", time.gmtime())}
    played, known = Contest(options.out, facts, began + options.seconds), kept_rows(options.out)
    left: dict[str, list[Answer]] = collections.defaultdict(list)
    for answer in answers(options.dir):
        if answer.key in known or answer.source is None:
            played.keep(known.get(answer.key) or row_of(answer))
        elif not options.only or answer.problem in options.only.split(","):
            left[answer.problem].append(answer)
    groups = {problem: mine[: options.most or None] for problem, mine in left.items()}
    # One lane: children of another would be tenants of the GPU on which this one times.
    gate_until = began + GATE_SHARE * options.seconds
    refused = in_lanes(options.device, groups, _sources, played.play, gate_until, 1, played.settle)
    for problem, why in refused.items():
        print(f"{problem}: {why}")
    done = {(row["generator"], row["problem"], row["question"], row["label"]) for row in played.rows}
    print(json.dumps(counts(played.rows), indent=1))
    n_left = sum(answer.key not in done for mine in left.values() for answer in mine)
    print(f"in {time.monotonic() - began:.0f} s; {n_left} left to judge")
    return 0


def _sources(answer: Answer) -> tuple[str, ...]:
    return (answer.parent.source, answer.source or "")


def kept_rows(out: Path | None) -> dict[tuple[str, str, str, str], Row]:
    """What an earlier call found; a failure that was no fault of the kernel's is tried again."""
    rows = json.loads(out.read_text())["answers"] if out is not None and out.exists() else []
    done = [row for row in rows if row["verdict"] not in ("none", VerdictKind.UNVERIFIED)]
    return {(row["generator"], row["problem"], row["question"], row["label"]): row for row in done}


def merge(options: argparse.Namespace) -> int:
    """What later files found of an answer stands; the facts of each call are kept."""
    calls, rows = [], {}
    for path in options.files:
        kept = json.loads(path.read_text())
        calls.append({name: fact for name, fact in kept.items() if name not in ("counts", "answers")})
        for row in kept["answers"]:
            rows[row["generator"], row["problem"], row["question"], row["label"]] = row
    report = {"calls": calls, "counts": counts(list(rows.values())), "answers": list(rows.values())}
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report["counts"], indent=1))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    asking = commands.add_parser("questions")
    asking.add_argument("dir", type=Path)
    asking.add_argument("--workspace", type=Path, required=True)
    asking.add_argument("runs", nargs="+")
    asking.set_defaults(do=write_questions)
    playing = commands.add_parser("contest")
    playing.add_argument("dir", type=Path)
    playing.add_argument("--device", default="cuda:0")
    playing.add_argument("--seconds", type=float, default=250.0)
    playing.add_argument("--only", default="", help="problems, by commas")
    playing.add_argument("--most", type=int, default=0, help="answers a problem, 0 for all")
    playing.add_argument("--out", type=Path)
    playing.set_defaults(do=contest)
    merging = commands.add_parser("merge")
    merging.add_argument("files", type=Path, nargs="+")
    merging.add_argument("--out", type=Path, required=True)
    merging.set_defaults(do=merge)
    options = parser.parse_args()
    return int(options.do(options))


if __name__ == "__main__":
    raise SystemExit(main())
