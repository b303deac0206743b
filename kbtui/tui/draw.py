"""Bars, sparklines, intervals and curves as styled lines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.text import Line, Part, Role


def bar(fraction: float, width: int, g: Glyphs) -> str:
    """A bar of ``width`` cells filled to ``fraction`` (0 to 1)."""
    steps = len(g.bar)
    filled = round(min(max(fraction, 0.0), 1.0) * width * steps)
    full, rest = divmod(filled, steps)
    if fraction > 0 and filled == 0:
        rest = 1
    body = g.bar[-1] * full + (g.bar[rest - 1] if rest and full < width else "")
    return body + g.bar_empty * (width - len(body))


def sparkline(values: Sequence[float], width: int, low: float, high: float, g: Glyphs) -> str:
    """The newest ``width`` values between ``low`` and ``high``, padded on the right."""
    top = len(g.spark) - 1
    span = (high - low) or 1.0
    drawn = "".join(g.spark[round(min(max((v - low) / span, 0.0), 1.0) * top)] for v in values[-width:])
    return drawn.ljust(width)


def gauge(value: float, low: float, high: float, width: int, g: Glyphs) -> str:
    """An interval on a scale with 1 in its middle: left of the middle is slower, right is faster."""
    reach = max(abs(high - 1), abs(low - 1), abs(value - 1), 0.01) * 1.15

    def column(x: float) -> int:
        return round(min(max((x - 1 + reach) / (2 * reach), 0.0), 1.0) * (width - 1))

    cells = [g.rule] * width
    for i in range(column(low), column(high) + 1):
        cells[i] = g.span
    cells[width // 2] = g.axis_zero
    cells[column(value)] = g.point
    return "".join(cells)


@dataclass(frozen=True, slots=True)
class Level:
    """A line across a curve at ``value``, named on it."""

    value: float
    name: str
    role: Role = Role.LEVEL


def step_curve(
    points: Sequence[tuple[float, float]],
    levels: Sequence[Level],
    x_end: float,
    width: int,
    height: int,
    g: Glyphs,
    starred: frozenset[int] = frozenset(),
) -> list[Line]:
    """A rising step curve of (x, best so far) from 0 to ``x_end`` with a y axis, and level lines across it.

    ``height`` rows of curve; values in between are rounded to a row. The points numbered in ``starred`` get a star.
    """
    values = [y for _, y in points] + [level.value for level in levels]
    bottom, top = min(values), max(values)
    margin = (top - bottom) * 0.08 or top * 0.02 or 1.0
    bottom, top = max(bottom - margin, 0.0), top + margin

    def row_of(y: float) -> int:
        return round((y - bottom) / (top - bottom) * (height - 1))

    label_width = 6
    columns = max(width - label_width - 1, 4)
    grid: list[list[Part]] = [[(" ", Role.PLAIN)] * columns for _ in range(height)]
    for level in levels:
        grid[row_of(level.value)] = [(g.level, level.role)] * columns
    _draw_steps(grid, _rows(points, x_end, columns, row_of), g)
    for i in starred:
        grid[row_of(points[i][1])][_column(points[i][0], x_end, columns)] = (g.champion, Role.GOOD)
    at_row: dict[int, Level] = {}
    for level in levels:
        r, met = row_of(level.value), at_row.get(row_of(level.value))
        at_row[r] = Level(met.value, f"{met.name}, {level.name}", level.role) if met else level
    for r, level in at_row.items():
        _name_level(grid[r], level)
    labelled = {height - 1, 0, height // 2} | set(at_row)
    out: list[Line] = []
    for r in range(height - 1, -1, -1):
        y = bottom + (top - bottom) * r / max(height - 1, 1)
        on_level = r in at_row
        label = f"{(at_row[r].value if on_level else y):.2f}"
        text = f"{label if r in labelled else '':>{label_width - 1}} "
        axis = g.axis_zero if on_level else g.axis if r in labelled else g.divider
        out.append(((text + axis, Role.DIM), *merged(grid[r])))
    return out


def _name_level(cells: list[Part], level: Level) -> None:
    """Write the level's name at the right end of its line, or at the left where the curve is in the way there."""
    name = f" {level.name} "
    n, drawn = len(cells), len(name)
    for start in (n - drawn - 1, 1, (n - drawn) // 2):
        if start >= 0 and all(role is level.role for _, role in cells[start : start + drawn]):
            cells[start : start + drawn] = [(c, level.role) for c in name]
            return


def scatter(values: Sequence[float], level: float, width: int, height: int, g: Glyphs) -> list[Line]:
    """The newest values as dots in order, with a line at ``level``; a cell that holds several is a larger dot."""
    shown = values[-2 * width :]
    low, high = min(*shown, level), max(*shown, level)
    per_cell = 2 if len(shown) > width else 1

    def row_of(y: float) -> int:
        return round((y - low) / ((high - low) or 1.0) * (height - 1))

    grid: list[list[Part]] = [[(" ", Role.PLAIN)] * width for _ in range(height)]
    grid[row_of(level)] = [(g.level, Role.DIM)] * width
    for i, y in enumerate(shown):
        cell = grid[row_of(y)][i // per_cell]
        role = Role.GOOD if y > level else Role.BAD if y < level else Role.PLAIN
        grid[row_of(y)][i // per_cell] = (g.dots[1] if cell[0] in g.dots else g.dots[0], role)
    labels = {0: low, height - 1: high, row_of(level): level}
    return [
        ((f"{labels[r]:.3f} " if r in labels else " " * 6, Role.DIM), *merged(grid[r]))
        for r in range(height - 1, -1, -1)
    ]


def _rows(
    points: Sequence[tuple[float, float]], x_end: float, columns: int, row_of: Callable[[float], int]
) -> list[int | None]:
    """The curve's row in each column, None before its first point."""
    rows: list[int | None] = [None] * columns
    for x, y in points:
        row = row_of(y)
        for c in range(_column(x, x_end, columns), columns):
            rows[c] = row
    return rows


def _column(x: float, x_end: float, columns: int) -> int:
    return min(int(x / x_end * columns) if x_end > 0 else 0, columns - 1)


def _draw_steps(grid: list[list[Part]], rows: Sequence[int | None], g: Glyphs) -> None:
    before: int | None = None
    last = max((c for c, r in enumerate(rows) if r is not None), default=None)
    for c, row in enumerate(rows):
        if row is None:
            continue
        if before is None or row == before:
            grid[row][c] = (g.curve_flat, Role.CURVE)
        else:
            low, high = min(before, row), max(before, row)
            for r in range(low + 1, high):
                grid[r][c] = (g.curve_rise, Role.CURVE)
            grid[low][c] = (g.curve_bottom, Role.CURVE)
            grid[high][c] = (g.curve_top, Role.CURVE)
        before = row
    if last is not None and rows[last] is not None:
        grid[rows[last] or 0][last] = (g.point, Role.GOOD)


def merged(cells: Sequence[Part]) -> list[Part]:
    """Neighbouring cells of one role as one part: fewer escape codes on the line."""
    out: list[Part] = []
    for text, role in cells:
        if out and out[-1][1] is role:
            out[-1] = (out[-1][0] + text, role)
        else:
            out.append((text, role))
    return out


def time_axis(x_end: float, width: int, unit: str, g: Glyphs) -> Line:
    """Ticks under a step curve: 0, the middle and the end, and what the axis is."""
    label = f"{x_end / 60:.1f}m" if x_end >= 90 else f"{x_end:.0f}s"
    middle = f"{x_end / 120:.1f}m" if x_end >= 90 else f"{x_end / 2:.0f}s"
    room = max(width - 7, 8)
    cells = list(" " * room)
    for at, text in ((0, "0"), (room // 2 - len(middle) // 2, middle), (room - len(label), label)):
        cells[at : at + len(text)] = text
    text = "".join(cells)
    start = 2
    if room // 2 - len(middle) // 2 - start > len(unit) + 1:
        text = text[:start] + unit + text[start + len(unit) :]
    return ((" " * 7 + text[:room], Role.DIM),)
