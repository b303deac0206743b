"""A sample of the rewrites study's applications through the whole gate on a GPU, as ``kbtui verify`` runs it.

``python benchmarks/rewrites_gpu.py --device cuda:0 --sample 100 --seconds 150 --out FILE [--seed 0] [--lanes 2]``
The sample is seeded and takes every rewrite in turn, each on kernels drawn from all styles. A kernel whose result
fails is put to the gate as it was before the edit too: where that fails, the edit is not to blame, and it is counted
apart. FILE is written after every verdict, and what it holds is not done again.

On a GPU each goes through all stages, the last question put to a process of two seconds or more (``age_s``) that stood
still while others were gated. Nothing is timed, so that lanes do not wait for the GPU's lock; nothing that is
timed may run beside them. Effects: devices, writes FILE (JSON).
"""

import argparse
import collections
import json
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.lanes import Gating, in_lanes
from benchmarks.rewrites_study import applications
from kbtui.commands.verify import whole_gate
from kbtui.domain.verdict import Verdict, VerdictKind
from kbtui.engine.ports import Device

Row = dict[str, Any]
_FOUND = ("verdict", "reason", "stage", "detail", "age_s", "wall_s", "before_edit")
_KEPT = ("kernel", "rewrite", "edit", "problem", *_FOUND)


@dataclass(slots=True)
class Sampling:
    """Rows as they get their verdicts, by (rewrite, kernel, edit); ``save`` is called with a lock held."""

    rows: list[Row]
    out: Path | None
    facts: Row
    gating: Gating[Row] = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _befores: dict[str, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.gating = Gating(self.say)

    def gate(self, device: Device, row: Row) -> None:
        self.facts.setdefault("device", asdict(device.spec))
        row["began"] = time.monotonic()
        self.gating.put(device, row, row["source"])

    def say(self, device: Device, row: Row, verdict: Verdict, age_s: float | None = None) -> None:
        """``age_s``: of the process by its last answer."""
        row |= told(verdict) | {"age_s": age_s, "wall_s": round(time.monotonic() - row["began"], 1)}
        if not verdict.ok:
            if row["before"] not in self._befores:
                self._befores[row["before"]] = told(whole_gate(device, row["before"], 0))
            row["before_edit"] = self._befores[row["before"]]
        print(
            f"{row['wall_s']:5.1f} s {row['rewrite']} on {row['kernel']}: {row['verdict']} {row['reason']}", flush=True
        )
        self.save()

    def save(self) -> None:
        if self.out is not None:
            with self._lock:
                done = [{k: row[k] for k in _KEPT if k in row} for row in self.rows if "verdict" in row]
                report = {**self.facts, "counts": counts(done), "rewrites": by_rewrite(done), "rows": done}
                self.out.write_text(json.dumps(report, indent=1) + "\n")


def told(verdict: Verdict) -> Row:
    said = "" if verdict.ok else verdict.detail[:300]
    return {"verdict": str(verdict.kind), "reason": str(verdict.reason), "stage": verdict.stage, "detail": said}


def sampled(n_applications: int, seed: int) -> list[Row]:
    """The study's first applications in its seeded order: every rewrite in turn, its kernels shuffled."""
    rows = list(islice(applications(1, seed, float("inf")), n_applications))
    for row in rows:
        row["problem"] = str(row["problem"].path)
    return rows


def failed_before(row: Row) -> bool:
    """Whether the kernel did not pass as it was before the edit either."""
    return "before_edit" in row and row["before_edit"]["verdict"] != VerdictKind.VERIFIED


def counts(done: list[Row]) -> Row:
    """``judged``: with a verdict that speaks of the edit; ``kept`` of them keep the gate."""
    judged = [row for row in done if row["verdict"] != VerdictKind.UNVERIFIED and not failed_before(row)]
    kept = sum(row["verdict"] == VerdictKind.VERIFIED for row in judged)
    return {
        "applications": len(done),
        "kernels": len({row["kernel"] for row in done}),
        "judged": len(judged),
        "kept": kept,
        "kept_share": round(kept / len(judged), 4) if judged else None,
        "failed_before_the_edit": sum(map(failed_before, done)),
        "unverified": sum(row["verdict"] == VerdictKind.UNVERIFIED for row in done),
        "reasons": dict(collections.Counter(row["reason"] for row in done).most_common()),
    }


def by_rewrite(done: list[Row]) -> dict[str, Row]:
    found: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for row in done:
        found[row["rewrite"]][row["verdict"]] += 1
    return {name: dict(verdicts) for name, verdicts in sorted(found.items())}


def resumed(rows: list[Row], out: Path | None) -> None:
    """Take over the verdicts that an earlier call has kept; one that was no fault of the kernel's is tried again."""
    kept = json.loads(out.read_text())["rows"] if out is not None and out.exists() else []
    known = {(k["rewrite"], k["kernel"], k["edit"]): k for k in kept if k["verdict"] != VerdictKind.UNVERIFIED}
    for row in rows:
        old = known.get((row["rewrite"], row["kernel"], row["edit"]), {})
        row |= {k: old[k] for k in _FOUND if k in old}


def facts() -> Row:
    return {"command": f"python {' '.join(sys.argv)}", "date": time.strftime("%Y-%m-%d %H:%MZ", time.gmtime())}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--sample", type=int, default=100, help="applications to put to the gate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--lanes", type=int, default=2, help="problems open at the same time")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    began = time.monotonic()
    rows = sampled(given.sample, given.seed)
    resumed(rows, given.out)
    groups: dict[str, list[Row]] = collections.defaultdict(list)
    for row in rows:
        if "verdict" not in row:
            groups[row["problem"]].append(row)
    sampling = Sampling(rows, given.out, facts())
    refused = in_lanes(
        given.device, groups, lambda row: (row["source"],), sampling.gate, began + given.seconds, given.lanes,
        sampling.gating.finish,
    )  # fmt: skip
    done = [row for row in rows if "verdict" in row]
    sampling.save()
    for problem, why in refused.items():
        print(f"{problem}: {why}")
    for row in done:
        if row["verdict"] != VerdictKind.VERIFIED:
            print(f"{row['rewrite']} on {row['kernel']} ({row['edit']}): {row['reason']}: {row['detail']}")
    print(json.dumps(counts(done), indent=1), f"in {time.monotonic() - began:.0f} s")
    return 1 if counts(done)["kept"] < counts(done)["judged"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
