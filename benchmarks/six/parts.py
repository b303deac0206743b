"""What each part of a search is worth: the study on recorded pools, a model's replies, a search without the ladder.

Effects: reads files under ``benchmarks/results``; the rest is pure.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Plain = Mapping[str, Any]
RESULTS = Path(__file__).parents[1] / "results"
STUDY, REPLIES = "scheduler-study.json", "llm-contest-h200-2026-11-30.json"
WITHOUT_LADDER = "ladder-off-*.json"
WHOLE = "this scheduler"
#: The study's names, in the order of the table. The last is none of the parts that were asked for.
TAKEN = (
    "without hints", "without diagnosis-directed rewrites", "without structure diversity",
    "without paired adjudication", "ladder off", "answers in random order",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parts:
    """As the files hold it. ``without_ladder``: one a sample and seed that was searched on a GPU both ways."""

    study: Plain
    replies: Plain
    without_ladder: Sequence[Plain] = ()


def read_parts(folder: Path = RESULTS) -> Parts:
    off = [one for path in sorted(folder.glob(WITHOUT_LADDER)) for one in _read(path)]
    return Parts(_read(folder / STUDY), _read(folder / REPLIES), off)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def table_rows(parts: Parts) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of the one table: the whole search first, then each part taken away, last the model's replies."""
    pools = parts.study["pools"]
    head = ("search", *(str(pool["name"]) for pool in pools), "new leaders, of them wrong")
    rows = [_taken(pools, name) for name in (WHOLE, *TAKEN)]
    replied = ("rewrites replaced by a language model's replies", *(_replied(parts.replies, p) for p in pools), "—")
    return head, [*rows, replied]


def _taken(pools: Sequence[Plain], name: str) -> tuple[str, ...]:
    found = [row_of(pool, name) for pool in pools]
    known = [row for row in found if row is not None]
    leaders = f"{sum(r['crownings'] for r in known)}, {sum(r['wrong_crownings'] for r in known)}" if known else "—"
    return (name, *(_cell(row) for row in found), leaders)


def _cell(row: Plain | None) -> str:
    if row is None:
        return "this pool cannot show it"
    found = "never" if row["found_s"] is None else f"{row['found_s']:.0f} s"
    return f"{found}; {100 * row['short_mean']:.1f} % short"


def row_of(pool: Plain, name: str) -> Plain | None:
    return next((row for row in (*pool["rows"], *pool["ablations"]) if row["strategy"] == name), None)


def _replied(replies: Plain, pool: Plain) -> str:
    """Of answers to the same questions about kernels of that problem: how many came out faster than their parent."""
    problem = problem_of(pool["name"])
    faster: dict[str, list[bool]] = {"llm": [], "rewrites": []}
    for answer in replies["answers"]:
        if answer["problem"] == problem:
            faster[answer["generator"]].append(answer.get("outcome") == "faster")
    if not faster["llm"]:
        return "not asked"
    told = {who: f"{sum(found)} of {len(found)}" for who, found in faster.items()}
    return f"{told['llm']} replies faster, {told['rewrites']} rewrites"


def problem_of(pool: str) -> str:
    return pool.partition("-")[0]


def note(parts: Parts) -> str:
    study = parts.study
    return (
        f"`{study['command']}`, {study['date']}, on pools recorded on an H200 ([how](scheduler.md)): median GPU "
        "seconds until within 2 % of the pool's best, and by how much the confirmed champion falls short of it, mean "
        "over seeds. New leaders took another's place at the measure rung or above; wrong are those that full "
        "fidelity finds slower by more than 0.5 %. Last row: a 1.5B model's replies and rewrites answered the same "
        "questions about kernels of finished searches, and met their parents on an H200 ([how](generation.md)): "
        "answers that came out faster."
    )
