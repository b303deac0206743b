"""Kept pools are whole, a pool survives its file, and what is damaged or impossible is told in one line."""

import gzip
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbtui.domain.candidate import source_sha
from kbtui.domain.pool import pool_of_rows, pool_rows
from kbtui.errors import UsageError
from kbtui.evaluation.devices import open_device
from kbtui.pool_file import read_pool, write_pool
from tests.replay.pools import POOLS, SOFTMAX


@pytest.mark.parametrize("path", [*POOLS, SOFTMAX], ids=lambda p: p.name.split(".")[0])
def test_every_kept_pool_is_whole_and_small(path: Path) -> None:
    pool = read_pool(path)
    assert len(pool.candidates) >= (40 if "-full" in path.name else 30)
    assert path.stat().st_size < 1 << 20
    assert all(c.source_sha == source_sha(c.source) for c in pool.candidates)
    assert all(c.parent is None or c.parent in pool.by_sha for c in pool.candidates)
    assert pool.header.driver != "unknown"
    assert pool.header.problem.kernel_source is not None
    assert source_sha(pool.header.problem.kernel_source) in pool.by_sha


def test_a_pool_survives_its_file_and_its_bytes_do_not_depend_on_when_it_was_written(tmp_path: Path) -> None:
    pool = read_pool(SOFTMAX)
    assert pool_of_rows(pool_rows(pool)) == pool
    for name in ("a", "b"):
        write_pool(tmp_path / name, pool)
    assert read_pool(tmp_path / "a") == pool
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


Row = dict[str, Any]


def with_times(row: Row, value: object) -> None:
    row["rungs"][-1]["outcome"]["measurement"]["timings"][0]["device_us"] = value


def with_cost(row: Row, value: object) -> None:
    row["rungs"][0]["outcome"]["wall_s"] = value


IMPOSSIBLE: dict[str, Callable[[list[Row]], object]] = {
    "no row": lambda rows: rows.clear(),
    "no header": lambda rows: rows.pop(0),
    "another format": lambda rows: rows[0].update(format=2),
    "a row of null": lambda rows: rows.append(None),  # type: ignore[arg-type]
    "a row of nothing": lambda rows: rows.append({}),
    "a candidate twice": lambda rows: rows.append(rows[1]),
    "a candidate without a rung": lambda rows: rows[2].update(rungs=[]),
    "another source": lambda rows: rows[2].update(source="pass"),
    "a time of zero": lambda rows: with_times(rows[1], 0.0),
    "a time below zero": lambda rows: with_times(rows[1], -1.0),
    "a time that is no number": lambda rows: with_times(rows[1], math.nan),
    "an endless time": lambda rows: with_times(rows[1], math.inf),
    "a cost below zero": lambda rows: with_cost(rows[1], -1.0),
    "a cost that is no number": lambda rows: with_cost(rows[1], math.nan),
    "an endless cost": lambda rows: with_cost(rows[1], math.inf),
    "an opening below zero": lambda rows: rows[0].update(open_wall_s=-1.0),
    "a question below zero": lambda rows: rows[0].update(ask_wall_s=[["playbook", -1.0]]),
    "a process without a sample": lambda rows: rows[1]["rungs"][-1].update(samples=[{"shape": "x", "processes": [[]]}]),
    "a sample of zero": lambda rows: rows[1]["rungs"][-1].update(samples=[{"shape": "x", "processes": [[0.0]]}]),
}


@pytest.mark.parametrize("spoil", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_no_device_can_have_found_is_not_a_pool(spoil: Callable[[list[Row]], object], tmp_path: Path) -> None:
    """Told in one line before anything is searched, where it would be a defect or a wrong number later."""
    pool = read_pool(SOFTMAX)
    timed = [c for c in pool.candidates if c.highest.outcome.measurement]
    rows = list(pool_rows(replace(pool, candidates=tuple(timed[:3]))))
    spoil(rows)
    with gzip.open(tmp_path / "pool", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    with pytest.raises(UsageError, match="is not a pool"):
        read_pool(tmp_path / "pool")


def test_a_file_damaged_anywhere_is_not_a_pool(tmp_path: Path) -> None:
    """Whatever fails first: the compressed bytes, their checksum, the text, a value."""
    pool, path = read_pool(SOFTMAX), tmp_path / "pool"
    write_pool(path, replace(pool, candidates=pool.candidates[:1]))
    whole = path.read_bytes()
    header = range(3, 10)  # a name, a time and flags, which say nothing of the content
    for at in [place for place in range(0, len(whole), 31) if place not in header]:
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]):
            path.write_bytes(damaged)
            with pytest.raises(UsageError, match="is not a pool"):
                read_pool(path)


def test_values_nested_without_end_are_not_a_pool(tmp_path: Path) -> None:
    (tmp_path / "pool").write_bytes(gzip.compress(b'{"format":1,"problem":' + b"[" * 200_000))
    with pytest.raises(UsageError, match="is not a pool"):
        read_pool(tmp_path / "pool")


@pytest.mark.parametrize("content", [b"", b"not gzip", b"\x1f\x8b\x08\x00broken"])
def test_a_file_that_is_no_pool_is_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "pool").write_bytes(content)
    with pytest.raises(UsageError, match=r"is not a pool.*make one with"):
        open_device(f"replay:{tmp_path / 'pool'}", tmp_path)
