"""What changed between two kernels: lines paired, changes inside a line found, laid out for a width."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kbtui.tui.text import n_fitting

_TOKEN = re.compile(r"\w+|\s+|.")
#: Characters looked at for one cell: a letter with its accents is several.
_MOST_A_CELL = 4
#: Two replaced lines are shown as one changed line when they are at least this alike (0 to 1).
_ALIKE = 0.35


class Change(StrEnum):
    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line beside its counterpart: 0-based line numbers (None: no line on that side) and changed spans."""

    kind: Change
    left: int | None
    right: int | None
    left_spans: tuple[tuple[int, int], ...] = ()
    right_spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Diff:
    """All rows of two sources, and the row each change begins at."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    rows: tuple[DiffRow, ...]
    changes: tuple[int, ...]


def diff_sources(left: str, right: str) -> Diff:
    """Pair the lines of two sources; neighbouring changed lines are one change."""
    a, b = left.splitlines(), right.splitlines()
    rows: list[DiffRow] = []
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [DiffRow(Change.SAME, a0 + i, b0 + i) for i in range(a1 - a0)]
        else:
            rows += _replaced(a, b, range(a0, a1), range(b0, b1))
    starts = [
        i for i, row in enumerate(rows) if row.kind is not Change.SAME and (i == 0 or rows[i - 1].kind is Change.SAME)
    ]
    return Diff(tuple(a), tuple(b), tuple(rows), tuple(starts))


def _replaced(a: Sequence[str], b: Sequence[str], left: range, right: range) -> list[DiffRow]:
    """Replaced blocks: alike lines side by side in order, the others alone."""
    pairs = _pairs(a, b, left, right)
    rows: list[DiffRow] = []
    i, j = left.start, right.start
    for x, y in [*pairs, (left.stop, right.stop)]:
        rows += [DiffRow(Change.REMOVED, n, None) for n in range(i, x)]
        rows += [DiffRow(Change.ADDED, None, n) for n in range(j, y)]
        if x < left.stop and y < right.stop:
            spans = changed_spans(a[x], b[y])
            rows.append(DiffRow(Change.CHANGED, x, y, *spans))
        i, j = x + 1, y + 1
    return rows


def _pairs(a: Sequence[str], b: Sequence[str], left: range, right: range) -> list[tuple[int, int]]:
    """Alike lines in order, the best total likeness (longest-common-subsequence style); capped for huge blocks."""
    if len(left) * len(right) > 4000:
        return list(zip(left, right, strict=False))
    n, m = len(left), len(right)
    like = [[_likeness(a[x], b[y]) for y in right] for x in left]
    best = [[0.0] * (m + 1) for _ in range(n + 1)]
    for x in range(n - 1, -1, -1):
        for y in range(m - 1, -1, -1):
            paired = like[x][y] + best[x + 1][y + 1] if like[x][y] >= _ALIKE else 0.0
            best[x][y] = max(best[x + 1][y], best[x][y + 1], paired)
    out, x, y = [], 0, 0
    while x < n and y < m:
        if like[x][y] >= _ALIKE and best[x][y] == like[x][y] + best[x + 1][y + 1]:
            out.append((left[x], right[y]))
            x, y = x + 1, y + 1
        elif best[x][y] == best[x + 1][y]:
            x += 1
        else:
            y += 1
    return out


def _likeness(a: str, b: str) -> float:
    one, two = _TOKEN.findall(a.strip()), _TOKEN.findall(b.strip())
    return difflib.SequenceMatcher(None, one, two, autojunk=False).ratio() if one and two else 0.0


def changed_spans(a: str, b: str) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Character spans that differ in each of two lines, by whole words."""
    one, two = _TOKEN.findall(a), _TOKEN.findall(b)
    at_one, at_two = _offsets(one), _offsets(two)
    left, right = [], []
    for tag, i0, i1, j0, j1 in difflib.SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if i1 > i0:
            left.append((at_one[i0], at_one[i1]))
        if j1 > j0:
            right.append((at_two[j0], at_two[j1]))
    return tuple(left), tuple(right)


def _offsets(tokens: Sequence[str]) -> list[int]:
    out = [0]
    for token in tokens:
        out.append(out[-1] + len(token))
    return out


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of one source's line on the screen: characters ``start`` to ``end`` of line ``number`` (0-based)."""

    number: int
    start: int
    end: int
    kind: Change
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ScreenRow:
    """One row on the screen. ``fold``: this row stands for that many unchanged lines. Unified rows use ``left``
    for removed lines and ``right`` for the others."""

    left: Cell | None
    right: Cell | None
    change: int | None
    fold: int = 0


def layout(diff: Diff, width: int, side_by_side: bool, context: int | None) -> tuple[ScreenRow, ...]:
    """The rows for a column width of ``width`` code cells; unchanged runs beyond ``context`` lines are folded.

    ``context`` None shows everything. Long lines are wrapped, never cut.
    """
    out: list[ScreenRow] = []
    kept = _kept(diff, context)
    i = 0
    while i < len(diff.rows):
        if not kept[i]:
            end = next((j for j in range(i, len(diff.rows)) if kept[j]), len(diff.rows))
            out.append(ScreenRow(None, None, None, end - i))
            i = end
            continue
        row = diff.rows[i]
        change = _change_at(diff, i)
        out += _side_rows(diff, row, change, width) if side_by_side else []
        if not side_by_side:
            end = _block_end(diff, i)
            out += _unified_rows(diff, diff.rows[i:end], change, width)
            i = end
            continue
        i += 1
    return tuple(out)


def _kept(diff: Diff, context: int | None) -> list[bool]:
    if context is None:
        return [True] * len(diff.rows)
    near = [False] * len(diff.rows)
    for i, row in enumerate(diff.rows):
        if row.kind is not Change.SAME:
            for j in range(max(i - context, 0), min(i + context + 1, len(diff.rows))):
                near[j] = True
    return near


def _change_at(diff: Diff, i: int) -> int | None:
    if diff.rows[i].kind is Change.SAME:
        return None
    return sum(1 for start in diff.changes if start <= i) - 1


def _block_end(diff: Diff, i: int) -> int:
    """The end of the run of changed rows at ``i``, or the next row where it is unchanged."""
    if diff.rows[i].kind is Change.SAME:
        return i + 1
    return next((j for j in range(i, len(diff.rows)) if diff.rows[j].kind is Change.SAME), len(diff.rows))


def _side_rows(diff: Diff, row: DiffRow, change: int | None, width: int) -> list[ScreenRow]:
    left = _cells(diff.left, row.left, width, row.kind, row.left_spans)
    right = _cells(diff.right, row.right, width, row.kind, row.right_spans)
    n = max(len(left), len(right))
    return [
        ScreenRow(left[k] if k < len(left) else None, right[k] if k < len(right) else None, change) for k in range(n)
    ]


def _unified_rows(diff: Diff, rows: Sequence[DiffRow], change: int | None, width: int) -> list[ScreenRow]:
    """Removed lines of the block first, then the added ones, as ``diff -u`` has them."""
    out: list[ScreenRow] = []
    for row in rows:
        if row.kind in (Change.REMOVED, Change.CHANGED):
            out += [
                ScreenRow(c, None, change) for c in _cells(diff.left, row.left, width, Change.REMOVED, row.left_spans)
            ]
    for row in rows:
        kind = Change.ADDED if row.kind is Change.CHANGED else row.kind
        if row.kind is not Change.REMOVED:
            out += [ScreenRow(None, c, change) for c in _cells(diff.right, row.right, width, kind, row.right_spans)]
    return out


def _cells(
    source: Sequence[str], number: int | None, width: int, kind: Change, spans: tuple[tuple[int, int], ...]
) -> list[Cell]:
    if number is None:
        return []
    return [Cell(number, a, b, kind, spans) for a, b in wrap_points(source[number], max(width, 8))]


def wrap_points(text: str, width: int) -> list[tuple[int, int]]:
    """Where to cut a line of code: after a space or a sign if one is near the end of the row, else anywhere."""
    out: list[tuple[int, int]] = []
    start = 0
    while (end := start + n_fitting(text[start : start + _MOST_A_CELL * width], width)) < len(text):
        near = next(
            (
                i
                for i in range(end, max(start + (end - start) // 2, end - 16), -1)
                if not text[i - 1].isalnum() and text[i - 1] != "_"
            ),
            end,
        )
        out.append((start, near))
        start = near
    return [*out, (start, len(text))]


def row_of_change(rows: Sequence[ScreenRow], change: int) -> int:
    """The screen row a change begins at."""
    return next((i for i, row in enumerate(rows) if row.change == change), 0)
