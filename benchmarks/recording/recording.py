"""What is recorded of one sample, and how a call that resumes finds it again. Effects: one file of JSON lines."""

import contextlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from kbtui.domain.candidate import Proposal, source_sha
from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.pool import Pool, PoolCandidate, PoolHeader


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
