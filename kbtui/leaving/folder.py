"""The files of an exported folder but the artifacts themselves, by their path in it. Pure."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kbtui.domain.codec import envelope_to_plain, to_plain
from kbtui.domain.event import Envelope
from kbtui.leaving.header import with_header
from kbtui.leaving.plan import check_plan
from kbtui.leaving.problem_files import ProblemFiles
from kbtui.leaving.rows import csv_text, json_text, plain_rows, rung_rows
from kbtui.leaving.software import Change, software
from kbtui.leaving.verified import how_verified
from kbtui.result import RunResult, headline, run_result
from kbtui.scheduler.state import RunState, Tried


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """One file of an event. ``n_bytes`` is None where the file is missing."""

    sha256: str
    name: str
    candidate: str | None
    seq: int
    n_bytes: int | None


@dataclass(frozen=True, slots=True)
class Left:
    """Everything an export is made from.

    ``best`` is the kernel to export, ``problem`` None where the machine no longer has it as the run used it
    (``no_problem`` says why), ``checker`` the text of check.py, ``exporter`` the exporting machine's facts.
    """

    state: RunState
    envelopes: Sequence[Envelope]
    best: Tried
    best_source: str
    first_source: str
    problem: ProblemFiles | None
    no_problem: str
    artifacts: Sequence[ArtifactRow]
    checker: str
    exporter: dict[str, str]


def folder_files(left: Left) -> dict[str, str]:
    """Text by relative path; a folder of these needs nothing of kbtui to be read or checked."""
    result = run_result(left.state)
    rows = plain_rows(rung_rows(left.envelopes, left.state), left.state.first)
    kernel = with_header(left.best_source, left.best, left.state, result, left.first_source, left.envelopes[-1].at)
    files = {
        "kernel.py": kernel,
        "result.json": json_text(_result(left, result)),
        "results.csv": csv_text(rows),
        "results.json": json_text(rows),
        "events.jsonl": "".join(json.dumps(envelope_to_plain(e)) + "\n" for e in left.envelopes),
        "environment.json": json_text(environment(left.state, left.envelopes, left.exporter)),
        "artifacts/index.json": json_text([to_plain(a) for a in left.artifacts]),
    }
    if _improved(left):
        files["first_kernel.py"] = left.first_source
    if left.problem is not None:
        files |= {f"problem/{path}": text for path, text in left.problem.files.items()}
        files["check.py"] = left.checker
        files["check.json"] = json_text(_check_plan(left, left.problem, result, kernel))
    return {**files, "README.md": readme(left, result)}


def environment(state: RunState, envelopes: Sequence[Envelope], exporter: dict[str, str]) -> dict[str, Any]:
    """What the run recorded of where and how it ran, and the machine of the export, which may be another."""
    started = state.started
    assert started is not None
    facts, changes = software(envelopes)
    return {
        "device": to_plain(started.device),
        "software": facts,
        "software_changes": [to_plain_change(change) for change in changes],
        "sandbox_gaps": list(state.opened.report.sandbox) if state.opened else [],
        "seed": started.seed,
        "generators": list(started.generators),
        "model": started.model,
        "child_entry": str(started.child_entry),
        "ladder": to_plain(started.ladder),
        "budget": to_plain(state.budget),
        "problem_sha256": started.problem_sha,
        "exported_on": exporter,
    }


def to_plain_change(change: Change) -> dict[str, Any]:
    return {"from_event": change.seq, "at": change.at, "now": change.now}


def readme(left: Left, result: RunResult) -> str:
    best = left.best.candidate
    lines = [
        f"# {result.problem}: {headline(result)}",
        "",
        f"`kernel.py` is candidate {best.id} of run {result.run}: {best.summary}.",
        f"Verified {how_verified(left.best).sentence}.",
        "",
        *_how_to_check(left),
        "## What is here",
        "",
        *(f"- `{path}`: {what}" for path, what in _contents(left)),
        "",
        *_missing(left.artifacts),
    ]
    return "\n".join(lines)


def _how_to_check(left: Left) -> list[str]:
    if left.problem is None:
        return [f"The reference and `check.py` are not here: {left.no_problem}.", ""]
    return [
        "To check it against the reference and time it, with torch and triton installed and nothing else:",
        "",
        "    python check.py                 # on the GPU where there is one",
        "    python check.py --interpreter   # on the CPU, small shapes",
        "",
    ]


def _contents(left: Left) -> list[tuple[str, str]]:
    found = [("kernel.py", "the best kernel; its header says where it comes from and how it was verified")]
    if _improved(left):
        found.append(("first_kernel.py", "the kernel the search began with"))
    if left.problem is not None:
        found.append(("check.py", "checks and times the kernel; `check.json` holds its shapes, seeds and tolerance"))
        found.append(("problem/", "the reference, its inputs, and the problem's declaration, as the run used them"))
    present = sum(a.n_bytes is not None for a in left.artifacts)
    return [
        *found,
        ("result.json", "what the run found: speedups with intervals, times by shape"),
        ("results.csv", "one row a candidate and rung; `results.json` is the same"),
        ("events.jsonl", "everything that happened, one event a line"),
        ("environment.json", "device, versions, sandbox, seed, budget, ladder"),
        ("artifacts/", f"{present} files named by their SHA-256; `index.json` says what each is"),
    ]


def _missing(artifacts: Sequence[ArtifactRow]) -> list[str]:
    missing = [a for a in artifacts if a.n_bytes is None]
    if not missing:
        return []
    return [f"## Missing: {len(missing)} artifacts that this machine does not have", "",
            *(f"- {a.name} ({a.candidate or 'run'}, event {a.seq}) {a.sha256}" for a in missing), ""]  # fmt: skip


def _improved(left: Left) -> bool:
    return left.best.candidate.id != left.state.first and bool(left.first_source)


def _result(left: Left, result: RunResult) -> dict[str, Any]:
    verdict = how_verified(left.best)
    verified = {"proof": str(verdict.proof), "stages": to_plain(verdict.stages), "worst_error": verdict.worst_error}
    return {
        **to_plain(result),
        "headline": headline(result),
        "exported": left.best.candidate.id,
        "verified": verified,
        "missing_artifacts": [a.sha256 for a in left.artifacts if a.n_bytes is None],
    }


def _check_plan(left: Left, problem: ProblemFiles, result: RunResult, kernel: str) -> dict[str, Any]:
    names: dict[str, str | None] = {
        "reference": f"problem/{problem.reference}",
        "kernel": "kernel.py",
        "first_kernel": "first_kernel.py" if _improved(left) else None,
    }
    return check_plan(problem.problem, left.state, result, names, hashlib.sha256(kernel.encode()).hexdigest())
