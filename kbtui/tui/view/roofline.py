"""The roofline: the chip's two limits over arithmetic intensity, and where a kernel and its parent are under them.

Axes are logarithmic: x is operations a byte of device memory, y is operations a second. Williams, Waterman and
Patterson, "Roofline", CACM 52(4), 2009.
"""

import math
from dataclasses import dataclass

from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import ProblemSpec
from kbtui.domain.profile import Diagnosis, Profile
from kbtui.scheduler.state import Tried
from kbtui.tui.draw import merged
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.text import Line, Part, Role, clip, wrap

DRAM_READ, DRAM_WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
#: How far the ledger's bound may be from the one of the declared formulas before they are not believed.
_BOUND_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel: operations a byte and operations a second (1e12); ``counted``: its bytes are from counters."""

    name: str
    flops_per_byte: float
    tflops: float
    counted: bool


@dataclass(frozen=True, slots=True)
class Roofline:
    """The limits (1e12 operations a second; 1e9 bytes a second), the problem's own bound, and the kernels' points."""

    shape: str
    gb_s: float
    peak_tflops: float
    cuda_tflops: float
    bound: Point
    kernel: Point
    parent: Point | None

    def roof(self, flops_per_byte: float) -> float:
        return min(self.peak_tflops, self.gb_s * flops_per_byte / 1e3)


def roofline_of(
    device: DeviceSpec, spec: ProblemSpec | None, kernel: tuple[str, Tried], parent: tuple[str, Tried] | None
) -> Roofline | str:
    """The roofline of a kernel on the shape it was diagnosed on; or why there is none, in one line."""
    found = diagnosed(kernel[1])
    if found is None:
        return "the roofline appears once the kernel has been diagnosed"
    diagnosis, profile = found
    if spec is None:
        return "no roofline: the problem's folder, which says its bytes and operations, cannot be read here"
    shape = next((s for s in spec.shapes if s.name == diagnosis.shape), None)
    if shape is None:
        return f"no roofline: the problem's folder no longer has the shape {diagnosis.shape}"
    n_bytes, flops, dtype = spec.bytes_moved(shape), spec.flops(shape), spec.dtype_of(shape)
    declared_us = device.bound_us(n_bytes, flops, dtype)
    if flops <= 0 or n_bytes <= 0:
        return "no roofline: the problem declares no operations or no bytes"
    if abs(declared_us - diagnosis.bound_us) > _BOUND_TOLERANCE * diagnosis.bound_us:
        return "no roofline: the problem's formulas have changed since this run"
    peak, cuda = device.peak_tflops(dtype, True), device.peak_tflops(dtype, False)
    here = _point(kernel[0], diagnosis, profile, n_bytes, flops)
    other = diagnosed(parent[1], diagnosis.shape) if parent else None
    there = _point(parent[0], *other, n_bytes, flops) if parent and other else None
    bound = Point("bound", flops / n_bytes, flops / declared_us / 1e6, False)
    return Roofline(diagnosis.shape, device.dram_gb_s, max(peak, cuda), cuda, bound, here, there)


def diagnosed(tried: Tried, shape: str | None = None) -> tuple[Diagnosis, Profile | None] | None:
    """Its diagnosis (on ``shape``, if one is named) and the profile of the same shape.

    One from counters before one that was reckoned, then the newest: a later rung that does not profile knows less.
    """
    found = [r.outcome.diagnosis for _, r in sorted(tried.results.items(), reverse=True)]
    fitting = [d for d in found if d is not None and shape in (None, d.shape)]
    best = next((d for d in fitting if d.source == "counters"), next(iter(fitting), None))
    return (best, _profile_on(tried, best.shape)) if best is not None else None


def _profile_on(tried: Tried, shape: str) -> Profile | None:
    profiles = (r.outcome.profile for _, r in sorted(tried.results.items(), reverse=True))
    return next((p for p in profiles if p is not None and p.shape == shape), None)


def _point(name: str, diagnosis: Diagnosis, profile: Profile | None, needed: float, flops: float) -> Point:
    """Bytes as counted where they were, else as the problem needs; operations as the problem needs."""
    counted = [profile.metric(m) for m in (DRAM_READ, DRAM_WRITE)] if profile else []
    moved = sum(c for c in counted if c is not None)
    return Point(name, flops / (moved or needed), flops / diagnosis.time_us / 1e6, bool(moved))


def roofline_lines(view: Roofline, width: int, height: int, g: Glyphs) -> list[Line]:
    """The picture in ``height`` lines, its legend below in two; ``width`` at least 30, ``height`` at least 7."""
    rows = max(height - 4, 3)
    columns = max(width - 8, 12)
    scale = _Scale(view, columns, rows)
    grid: list[list[Part]] = [[(" ", Role.PLAIN)] * columns for _ in range(rows)]
    for c in range(columns):
        _draw_roof(grid, view, scale, c, g)
    for point, sign, role in _points(view, g):
        grid[scale.row(point.tflops)][scale.column(point.flops_per_byte)] = (sign, role)
    out: list[Line] = [((f"{'TFLOP/s':>7} ", Role.DIM), (f"roofline on {view.shape}", Role.DIM))]
    for r in range(rows - 1, -1, -1):
        label = _number(scale.tflops(r)) if r in (0, rows // 2, rows - 1) else ""
        out.append(((f"{label:>6} {g.axis if label else g.divider}", Role.DIM), *merged(grid[r])))
    return [clip(row, width, g.ellipsis) for row in (*out, _axis(scale, columns), *_legend(view, width, g))]


class _Scale:
    """Where a number is in the grid; both ways on a logarithmic scale of whole decades."""

    def __init__(self, view: Roofline, columns: int, rows: int) -> None:
        points = [view.bound, view.kernel, *([view.parent] if view.parent else [])]
        ridge = view.peak_tflops * 1e3 / view.gb_s
        xs = [p.flops_per_byte for p in points] + [ridge]
        ys = [p.tflops for p in points] + [view.peak_tflops]
        self.x = (math.log10(min(xs)) - 0.4, math.log10(max(xs)) + 0.4)
        self.y = (math.log10(min(y for y in ys if y > 0)) - 0.25, math.log10(max(ys)) + 0.1)
        self.columns, self.rows = columns, rows

    def column(self, flops_per_byte: float) -> int:
        part = (math.log10(flops_per_byte) - self.x[0]) / (self.x[1] - self.x[0])
        return min(max(round(part * (self.columns - 1)), 0), self.columns - 1)

    def row(self, tflops: float) -> int:
        part = (math.log10(max(tflops, 1e-9)) - self.y[0]) / (self.y[1] - self.y[0])
        return min(max(round(part * (self.rows - 1)), 0), self.rows - 1)

    def flops_per_byte(self, column: float) -> float:
        return float(10 ** (self.x[0] + (self.x[1] - self.x[0]) * column / max(self.columns - 1, 1)))

    def tflops(self, row: int) -> float:
        return float(10 ** (self.y[0] + (self.y[1] - self.y[0]) * row / max(self.rows - 1, 1)))


def _draw_roof(grid: list[list[Part]], view: Roofline, scale: _Scale, column: int, g: Glyphs) -> None:
    """One column of the roof: a slope where memory limits, flat where arithmetic does; CUDA cores' own limit below."""
    here, after = (view.roof(scale.flops_per_byte(c)) for c in (column, column + 1))
    low, high = scale.row(here), scale.row(after)
    flat = here >= view.peak_tflops * 0.999
    for row in range(low, max(high, low + 1)):
        grid[row][column] = (g.rule if flat or high == low else g.slope, Role.CURVE)
    if view.cuda_tflops < view.peak_tflops * 0.99 and here > view.cuda_tflops:
        row = scale.row(view.cuda_tflops)
        if row != low:
            grid[row][column] = (g.roof_2, Role.DIM)


def _points(view: Roofline, g: Glyphs) -> list[tuple[Point, str, Role]]:
    parent = [(view.parent, g.parent, Role.ACCENT)] if view.parent else []
    return [(view.bound, g.bound, Role.LEVEL), *parent, (view.kernel, g.kernel, Role.STRONG)]


def _axis(scale: _Scale, columns: int) -> Line:
    cells = [" "] * columns
    ends = ((0, False), (columns // 2, False), (columns - 1, True))
    for at, right in ends:
        text = _number(scale.flops_per_byte(at))
        start = at - len(text) + 1 if right else at
        cells[start : start + len(text)] = text
    return ((" " * 8 + "".join(cells)[:columns], Role.DIM),)


def _legend(view: Roofline, width: int, g: Glyphs) -> list[Line]:
    part = view.kernel.tflops / view.roof(view.kernel.flops_per_byte)
    words = f"{g.kernel} {view.kernel.name}: {part:.0%} of the roof over it"
    if view.parent is not None:
        above = view.parent.tflops / view.roof(view.parent.flops_per_byte)
        words += f"   {g.parent} parent {view.parent.name}: {above:.0%}"
    ridge = view.peak_tflops * 1e3 / view.gb_s
    side = "memory" if view.bound.flops_per_byte < ridge else "arithmetic"
    words += f"   {g.bound} the problem's bound, {side}"
    how = "bytes counted" if view.kernel.counted else "bytes as the problem needs them, not counted"
    return [*wrap(f"operations a byte ({how})", width, Role.DIM, most=1), *wrap(words, width, Role.PLAIN, most=2)]


def _number(value: float) -> str:
    """At most six characters."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}" if value >= 0.01 else f"{value:.0e}"
