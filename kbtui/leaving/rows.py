"""A run's results as rows: one a candidate and rung, with every number a decision read. Pure."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kbtui.domain.event import Envelope, RungCompleted
from kbtui.domain.measurement import Comparison, Measurement
from kbtui.scheduler.state import RunState, Tried

#: What a comparison may be against beside another candidate.
FIXED_OPPONENTS = ("first", "eager", "compile")


@dataclass(frozen=True, slots=True)
class RungRow:
    """One candidate's completed rung, and when: seconds of wall and GPU time the run had spent by then."""

    seq: int
    at: str
    wall_s: float
    gpu_s: float
    tried: Tried
    event: RungCompleted
    rung_name: str

    @property
    def measurement(self) -> Measurement | None:
        return self.event.outcome.measurement

    def over(self, name: str, first: str | None) -> Comparison | None:
        """Its comparison with ``first``, ``eager`` or ``compile``; the first kernel is a candidate too."""
        if self.measurement is None:
            return None
        found = self.measurement.against(name)
        return found or (self.measurement.against(first) if name == "first" and first else None)

    @property
    def rival(self) -> Comparison | None:
        """Its comparison with another candidate, where one decided."""
        others = self.measurement.comparisons if self.measurement else ()
        return next((c for c in others if c.against not in FIXED_OPPONENTS), None)


def rung_rows(envelopes: Iterable[Envelope], state: RunState) -> tuple[RungRow, ...]:
    """In the order in which they happened. ``state`` is the fold of the same events."""
    names = {r.index: r.name for r in state.started.ladder} if state.started else {}
    return tuple(
        RungRow(e.seq, e.at, e.wall_s, e.gpu_s, state.tried[e.event.candidate], e.event, names.get(e.event.rung, ""))
        for e in envelopes
        if isinstance(e.event, RungCompleted) and e.event.candidate in state.tried
    )


def plain_rows(rows: Sequence[RungRow], first: str | None) -> list[dict[str, Any]]:
    """Flat dicts with one set of keys: what CSV and JSON hold. Times in microseconds; None where there is none."""
    shapes = list(dict.fromkeys(t.shape for r in rows if r.measurement for t in r.measurement.timings))
    return [_plain(row, first, shapes) for row in rows]


def csv_text(plain: Sequence[dict[str, Any]]) -> str:
    """RFC 4180, a header first; cells that a spreadsheet would take for a formula begin with an apostrophe."""
    out = io.StringIO()
    if plain:
        writer = csv.DictWriter(out, list(plain[0]), lineterminator="\r\n")
        writer.writeheader()
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in plain)
    return out.getvalue()


def json_text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def _plain(row: RungRow, first: str | None, shapes: Sequence[str]) -> dict[str, Any]:
    candidate, event = row.tried.candidate, row.event
    verdict, outcome = event.outcome.verdict, event.outcome
    return {
        "candidate": candidate.id,
        "rung": event.rung,
        "rung_name": row.rung_name,
        "decision": str(event.decision),
        "reason": event.reason,
        "score": event.score,
        "new_incumbent": event.new_incumbent,
        "verdict": str(verdict.kind),
        "verdict_reason": str(verdict.reason),
        "gate_stage": verdict.stage,
        "proof": str(verdict.proof),
        "verdict_detail": verdict.detail,
        "relative_l2_error": verdict.error,
        "clock": str(row.measurement.clock) if row.measurement else None,
        "unstable": row.measurement.unstable if row.measurement else None,
        **_comparison("over_first", row.over("first", first)),
        **_comparison("over_eager", row.over("eager", first)),
        "rival": row.rival.against if row.rival else None,
        **_comparison("over_rival", row.rival),
        **_times(row.measurement, shapes),
        "registers_max": max((r.registers for r in outcome.resources), default=None),
        "spill_bytes_max": max((r.spill_bytes for r in outcome.resources), default=None),
        "shared_bytes_max": max((r.shared_bytes for r in outcome.resources), default=None),
        "occupancy_min": min((r.occupancy for r in outcome.resources), default=None),
        "diagnosis": outcome.diagnosis.sentence if outcome.diagnosis else None,
        "rung_wall_s": outcome.wall_s,
        "rung_gpu_s": outcome.gpu_s,
        "run_wall_s": row.wall_s,
        "run_gpu_s": row.gpu_s,
        "at": row.at,
        "seq": row.seq,
        "parents": " ".join(candidate.parents),
        "generator": candidate.origin.generator,
        "operator": candidate.origin.operator,
        "hint": candidate.origin.hint,
        "structure": candidate.structure,
        "summary": candidate.summary,
        "commit": row.tried.commit,
        "source_sha256": candidate.source_sha,
    }


def _comparison(prefix: str, found: Comparison | None) -> dict[str, Any]:
    return {
        f"{prefix}_ratio": found.ratio if found else None,
        f"{prefix}_low": found.low if found else None,
        f"{prefix}_high": found.high if found else None,
        f"{prefix}_outcome": str(found.outcome) if found else None,
        f"{prefix}_confidence": found.confidence if found else None,
        f"{prefix}_pairs": found.n_pairs if found else None,
        f"{prefix}_processes": found.n_processes if found else None,
    }


def _times(measurement: Measurement | None, shapes: Sequence[str]) -> dict[str, Any]:
    timings = {t.shape: t for t in measurement.timings} if measurement else {}
    out: dict[str, Any] = {}
    for shape in shapes:
        timing = timings.get(shape)
        out[f"{shape} us"] = timing.device_us if timing else None
        out[f"{shape} low_us"] = timing.low_us if timing else None
        out[f"{shape} high_us"] = timing.high_us if timing else None
    return out
