"""A row of the results: one entry at one point of its grid, and what became of it. Pure."""

from collections.abc import Iterator
from typing import Any

#: A point before it runs: problem, entry, number (0: the defaults), params, summary, path. Each step adds its keys.
Row = dict[str, Any]


def best_of(rows: list[Row]) -> dict[str, Row]:
    """The row with the least quick time of each timed shape."""
    best: dict[str, Row] = {}
    for row in rows:
        for shape, us in row.get("quick_us", {}).items():
            if shape not in best or us < best[shape]["quick_us"][shape]:
                best[shape] = row
    return best


def printed(rows: list[Row]) -> Iterator[str]:
    for problem in dict.fromkeys(row["problem"] for row in rows):
        shapes: dict[str, list[Row]] = {}
        for row in rows:
            for shape in row.get("times_us", {}) if row["problem"] == problem else ():
                shapes.setdefault(shape, []).append(row)
        for shape, timed_rows in shapes.items():
            row = max(timed_rows, key=lambda r: r["times_us"][shape]["ratio"])
            us = row["times_us"][shape]
            told = f"{us['kernel']} us, eager {us['eager']} us"
            yield f"{problem} {shape}: {us['ratio']}x by {row['entry']} ({row['summary']}): {told}"
    for row in rows:
        if row["number"] == 0 or "failed" in row or row.get("error_over_allowed", 0.0) > 1.0:
            state = row.get("failed") or f"error {row.get('error_over_allowed')} of allowed"
            yield f"  {row['entry']} #{row['number']}: {state} {row.get('quick_us')} gate: {row.get('gate', 'not run')}"
