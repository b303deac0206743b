"""The study of comparisons on a GPU: what it still has to do, and what it makes of what was done."""

import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.adjudication import (
    KINDS,
    LARGE,
    LONG,
    SMALL,
    Kind,
    Row,
    medians_of,
    page,
    problem_of,
    source,
    summary,
    wanted,
)
from kbtui.domain.candidate import Attachment
from kbtui.domain.evaluation import Evaluated, RungOutcome
from kbtui.domain.problem import ShapeRole
from kbtui.domain.verdict import Proof, verified
from kbtui.evaluation.measure.loop import PairSamples
from kbtui.evaluation.measure.record import MatchLog


def row(kind: Kind, index: int, outcome: str = "tie", ratio: float = 1.0) -> Row:
    return Row(kind.name, kind.shape, index, outcome, ratio, 0.99, 1.01, 20, 1, 100.0, None, 1.0)


COUNTS = {"same": 4, "planted 2": 2, "planted 1": 1, "same, long": 1}


def test_what_is_done_is_not_done_again_and_kinds_take_turns() -> None:
    todo = list(wanted(KINDS, COUNTS, [row(KINDS[0], 0)]))
    assert [(k.name, k.shape, i) for k, i in todo] == [
        ("same", SMALL, 0), ("planted 2", LARGE, 0), ("planted 1", LARGE, 0), ("same, long", LONG, 0),
        ("same", LARGE, 1), ("same", SMALL, 1), ("planted 2", LARGE, 1),
    ]  # fmt: skip
    assert list(wanted(KINDS, COUNTS, [row(k, i) for k, i in todo] + [row(KINDS[0], 0)])) == []


def test_every_source_differs_so_that_every_child_is_fresh() -> None:
    sources = {source(k, i, side, 0) for k in KINDS for i in range(3) for side in ("candidate", "other")}
    assert len(sources) == len(KINDS) * 3 * 2


def test_the_problem_times_one_shape_and_keeps_what_the_gate_checks() -> None:
    for shape, rows in ((LARGE, 3072), (SMALL, 16), (LONG, 12288)):
        spec = problem_of(shape).spec
        (timed,) = spec.shapes_of(ShapeRole.TUNE)
        assert (timed.name, timed.as_dict()["rows"]) == (shape, rows)
        assert spec.timed_at(1) == (timed,)
        assert spec.shapes_of(ShapeRole.HIDDEN)


def test_the_table_counts_outcomes_by_kind() -> None:
    rows = [row(KINDS[0], 0), row(KINDS[0], 1, "faster", 1.02), row(KINDS[2], 0, "faster", 1.019)]
    lines = summary(rows).splitlines()
    assert len(lines) == 3
    assert lines[1].split()[:3] == ["same", LARGE, "2"]
    assert lines[1].split()[-5:-1] == ["1", "0", "1", "0"]


def test_the_pairs_of_a_comparison_are_kept_by_process_as_both_sides_medians() -> None:
    first = PairSamples((7.7, 7.8, 9.9), (8.4, 8.2, 8.3), 0.06, 0)
    later = PairSamples((7.9, 7.8, 7.8), (7.8, 7.8, 7.7), 0.0, 0)
    log = MatchLog((SMALL,), [{"c0001": {SMALL: [first, later]}}, {"c0001": {SMALL: [later]}}])
    kept = Attachment("samples-c0002-r2.json", json.dumps(log.to_plain()).encode())
    found = Evaluated(RungOutcome(verified(2, Proof.GPU, ""), 0.0, 0.0), (kept,))
    assert medians_of(found, SMALL) == (((7.8, 8.3), (7.8, 7.8)), ((7.8, 7.8),))


def test_the_page_tells_the_same_with_where_it_was_made(tmp_path: Path) -> None:
    heading = {"command": "benchmarks/adjudication.py --same 2", "device": "NVIDIA H200", "date": "2026-11-30"}
    rows = [row(KINDS[0], 0), row(KINDS[0], 1, "faster", 1.02)]
    (kept := tmp_path / "kept.jsonl").write_text("\n".join(map(json.dumps, (heading, *map(asdict, rows)))))
    told = page(kept)
    assert "| the same kernel | 100.0 µs | 2 | 1.0100 | 1.00 % | 1 | 0 | 1 | 0 | 20.0 |" in told
    assert told.endswith("Made by `python benchmarks/adjudication.py --same 2`, 2026-11-30, NVIDIA H200.")
