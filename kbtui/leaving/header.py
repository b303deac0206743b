"""The comment above an exported kernel: whose it is, where it comes from, how it was verified, how fast. Pure."""

import re
import textwrap
from collections.abc import Iterable

from kbtui.domain.candidate import Candidate
from kbtui.leaving.software import in_brief
from kbtui.leaving.verified import how_verified
from kbtui.result import RunResult, ShapeResult, headline
from kbtui.scheduler.state import RunState, Tried

_LICENCE_LINE = re.compile(r"^\s*#\s*(SPDX-License-Identifier:|Copyright\b|\(c\)).*", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_WIDTH = 110


def with_header(source: str, tried: Tried, state: RunState, result: RunResult, first_source: str, at: str) -> str:
    """The kernel's text under its header; the text itself is not changed. ``at``: when the run's last event was."""
    facts = [f"{key + ':':13}{value}" for key, value in _facts(tried, state, result, at)]
    lines = [*licence_lines(source, first_source), "", *facts]
    return "".join(f"# {line}".rstrip() + "\n" for text in lines for line in _wrapped(text)) + "\n" + source


def licence_lines(source: str, first_source: str) -> list[str]:
    """What the kernels themselves say of their licence, or that they say nothing."""
    found = [line.strip().lstrip("# ") for line in _comments_above(source) if _LICENCE_LINE.match(line)]
    found += [line.strip().lstrip("# ") for line in _comments_above(first_source) if _LICENCE_LINE.match(line)]
    if found:
        return list(dict.fromkeys(found))
    return ["Licence: yours to say. The first kernel names none, and kbtui lays no claim to what a run finds."]


def made_by(candidate: Candidate) -> str:
    """``playbook softmax_online (a template of kbtui, Apache-2.0), hint several_rows``."""
    origin = candidate.origin
    source = {
        "playbook": " (from a template of kbtui, Apache-2.0)",
        "rewrites": " (a rewrite of its parent)",
        "seed": " (the problem's own)",
    }
    hint = f", for the hint {origin.hint}" if origin.hint else ""
    return f"{origin.generator} {origin.operator}{source.get(origin.generator, '')}{hint}"


def _facts(tried: Tried, state: RunState, result: RunResult, at: str) -> list[tuple[str, str]]:
    assert state.started is not None
    candidate, device = tried.candidate, state.started.device
    parents = ", ".join(candidate.parents) or "no other"
    verdict = how_verified(tried)
    return [
        ("Kernel", f"{candidate.summary} ({candidate.structure})"),
        ("Problem", state.started.problem),
        ("Run", f"{state.started.run}, candidate {candidate.id} of {len(state.tried)}, made from {parents}"),
        ("Made by", made_by(candidate)),
        ("Commit", f"{tried.commit} (source SHA-256 {candidate.source_sha})"),
        ("Verified", verdict.sentence),
        ("Proof", str(verdict.proof)),
        ("Speed", headline(result) if result.champion == candidate.id else _not_champion(result)),
        *_times(result, candidate),
        ("Clock", f"{result.clock}{'' if result.confirmed else ', not confirmed in fresh processes'}"),
        ("Device", f"{device.name} ({device.key}, sm_{device.arch}, {device.n_sms} SMs)"),
        *([("Software", ran_with)] if (ran_with := in_brief(dict(state.started.environment))) else []),
        ("Date", at),
        *(("Note", note) for note in candidate.notes),
    ]


def _times(result: RunResult, candidate: Candidate) -> list[tuple[str, str]]:
    if result.champion != candidate.id:
        return []
    return [("Time", f"{s.shape}: {_time(s)}") for s in result.shapes]


def _time(shape: ShapeResult) -> str:
    bounds = f"{shape.low_us:.2f} to {shape.high_us:.2f}"
    narrow = f"{shape.low_us:.2f}" == f"{shape.high_us:.2f}"
    return f"{shape.champion_us:.2f} us" + ("" if narrow else f" ({bounds})")


def _not_champion(result: RunResult) -> str:
    return f"{headline(result)}; this is the first kernel"


def _wrapped(text: str) -> Iterable[str]:
    clean = _CONTROL.sub(" ", text)
    return textwrap.wrap(clean, _WIDTH, subsequent_indent=" " * 13, break_on_hyphens=False) or [""]


def _comments_above(source: str) -> list[str]:
    lines = source.splitlines()
    end = next((i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), len(lines))
    return lines[:end]
