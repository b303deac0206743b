"""Where the kernels stand under the chip's roof, from the problem's own bytes and flops and the times. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import ProblemSpec, Shape
from kbtui.leaving.page import svg
from kbtui.leaving.page.text import esc, tag, us
from kbtui.leaving.rows import RungRow

_WIDTH, _HEIGHT = 620, 360
_MARKS = ("s1", "s2", "s3", "s4", "s5", "s6")


@dataclass(frozen=True, slots=True)
class Placed:
    """One shape: the fewest bytes and the operations it needs, its bound, and device times in microseconds."""

    shape: str
    dtype: str
    n_bytes: float
    flops: float
    bound_us: float
    best_us: float
    first_us: float | None
    eager_us: float | None

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.flops / self.n_bytes

    def tflops(self, time_us: float) -> float:
        return self.flops / (time_us * 1e6)


def placed_shapes(spec: ProblemSpec, device: DeviceSpec, row: RungRow | None, first: str | None) -> list[Placed]:
    """The shapes the best kernel was timed on; the others' times are from the same comparison."""
    if row is None or row.measurement is None:
        return []
    shapes = {s.name: s for s in spec.shapes}
    over = {
        name: {s.shape: s.ratio for s in c.shapes} if (c := row.over(name, first)) else {}
        for name in ("first", "eager")
    }
    return [
        _placed(spec, device, shapes[t.shape], t.device_us, over["first"].get(t.shape), over["eager"].get(t.shape))
        for t in row.measurement.timings
        if t.shape in shapes
    ]


def _placed(
    spec: ProblemSpec, device: DeviceSpec, shape: Shape, best_us: float, first: float | None, eager: float | None
) -> Placed:
    dtype, n_bytes, flops = spec.dtype_of(shape), spec.bytes_moved(shape), spec.flops(shape)
    bound_us = device.bound_us(n_bytes, flops, dtype)
    times = (best_us * r if r is not None else None for r in (first, eager))
    return Placed(shape.name, dtype, n_bytes, flops, bound_us, best_us, *times)


def roofline_section(placed: Sequence[Placed], device: DeviceSpec, clock: str) -> str:
    drawable = [p for p in placed if p.flops > 0 and p.n_bytes > 0][: len(_MARKS)]
    drawing = _drawing(drawable, device) if drawable else ""
    legend = "".join(_legend(p, mark) for p, mark in zip(drawable, _MARKS, strict=False))
    note = (
        f"Operations and bytes are the fewest the problem needs, by its own formulas; times are {clock}. The roof is "
        f"the data sheet's: {device.dram_gb_s:,.0f} GB/s and {_peak(drawable, device):,.0f} TFLOP/s. "
        "● the best kernel, ○ the first kernel, ▽ the bound, which is on the roof (shapes are set side by side)."
    )
    return tag("div", drawing + tag("ul", legend, class_="legend") + tag("p", esc(note), class_="note"), class_="roof")


def _peak(placed: Sequence[Placed], device: DeviceSpec) -> float:
    return device.peak_tflops(placed[0].dtype if placed else "float32", True)


def _drawing(placed: Sequence[Placed], device: DeviceSpec) -> str:
    peak = _peak(placed, device)
    ridge = peak * 1e3 / device.dram_gb_s
    low_x, high_x = min(p.intensity for p in placed) / 4, max(*(p.intensity for p in placed), ridge) * 4
    lowest = min(p.tflops(max(t for t in (p.best_us, p.first_us or 0.0))) for p in placed)
    x = svg.Axis(low_x, high_x, 64, _WIDTH - 16, log=True)
    y = svg.Axis(lowest / 3, peak * 2, _HEIGHT - 44, 30, log=True)
    slope = max(low_x, y.low * 1e3 / device.dram_gb_s)
    roof = [(slope, slope * device.dram_gb_s / 1e3), (ridge, peak), (high_x, peak)]
    out = [svg.frame(x, y, "operations a byte", "TFLOP/s"), svg.path([(x.at(a), y.at(b)) for a, b in roof], "roofline")]
    cpu = device.peak_tflops("", False)
    if cpu < peak and cpu > y.low:
        at = cpu * 1e3 / device.dram_gb_s
        out.append(svg.path([(x.at(max(at, low_x)), y.at(cpu)), (x.end, y.at(cpu))], "roof-low"))
        out.append(svg.text(x.end, y.at(cpu) + 14, f"{cpu:,.0f} TFLOP/s without tensor cores", "tick", "end"))
    out.append(svg.text(x.end, y.at(peak) - 6, f"{peak:,.0f} TFLOP/s", "tick", "end"))
    out += [_marks(p, mark, x, y, i, len(placed)) for i, (p, mark) in enumerate(zip(placed, _MARKS, strict=False))]
    return svg.drawing(_WIDTH, _HEIGHT, "Roofline", "".join(out))


def _marks(p: Placed, mark: str, x: svg.Axis, y: svg.Axis, i: int, n: int) -> str:
    """Shapes of one intensity are set side by side, a few pixels apart, so that none hides another."""
    at = x.at(p.intensity) + 11 * (i - (n - 1) / 2)
    best, bound = y.at(p.tflops(p.best_us)), y.at(p.tflops(p.bound_us))
    out = [svg.text(at, bound - 3, "▽", f"mark {mark}", "middle")]
    lowest = best
    if p.first_us is not None:
        lowest = y.at(p.tflops(p.first_us))
        out.append(svg.circle(at, lowest, 4.5, f"open {mark}", f"{p.shape}: first kernel {us(p.first_us)}"))
    out.insert(0, svg.line(at, bound, at, lowest, f"stem {mark}"))
    out.append(svg.circle(at, best, 4.5, f"full {mark}", f"{p.shape}: {us(p.best_us)}, bound {us(p.bound_us)}"))
    return "".join(out)


def _legend(p: Placed, mark: str) -> str:
    reached = f"{100 * p.bound_us / p.best_us:.0f} % of the bound" if p.best_us > 0 else ""
    return tag("li", tag("b", "■", class_=f"mark {mark}") + esc(f" {p.shape}: {us(p.best_us)}, {reached}"))
