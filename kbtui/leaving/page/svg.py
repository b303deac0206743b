"""Drawing in SVG: a frame with axes, linear or logarithmic, and ticks that people count in. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kbtui.leaving.page.text import esc

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """Values ``low`` to ``high`` on pixels ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value."""
        low, high, v = (math.log10(x) if self.log else x for x in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (v - low) / (high - low)

    def ticks(self, about: int = 5) -> list[float]:
        """Round values inside the axis; on a logarithmic one powers of ten, with 2 and 5 where there are few."""
        if not self.log:
            return nice_ticks(self.low, self.high, about)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for factors in ((1,), (1, 3), (1, 2, 5)):
            found = [f * 10.0**p for p in powers for f in factors if self.low <= f * 10.0**p <= self.high]
            if len(found) >= 3:
                return found
        return found


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten between two values."""
    if not high > low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in _STEPS if s * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value: float) -> str:
    """A tick's label: no trailing zeros, no exponent where a person would not write one."""
    return f"{value:.10g}" if 1e-3 <= abs(value) < 1e6 or value == 0 else f"{value:.1e}"


def text(x: float, y: float, words: object, class_: str = "", anchor: str = "start") -> str:
    named = f' class="{class_}"' if class_ else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{esc(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{class_}"/>'


def path(points: Sequence[tuple[float, float]], class_: str) -> str:
    moves = " ".join(f"{'M' if i == 0 else 'L'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(points))
    return f'<path d="{moves}" class="{class_}"/>'


def circle(x: float, y: float, r: float, class_: str, title: str = "") -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" class="{class_}"><title>{esc(title)}</title></circle>'


def drawing(width: int, height: int, title: str, inner: str) -> str:
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{esc(title)}">'
    return f"{head}<title>{esc(title)}</title>{inner}</svg>"


def frame(x: Axis, y: Axis, x_name: str, y_name: str, y_unit: str = "") -> str:
    """Grid, tick labels and the axes' names."""
    out = []
    for value in y.ticks():
        out.append(line(x.start, y.at(value), x.end, y.at(value), "grid"))
        out.append(text(x.start - 6, y.at(value) + 4, f"{number(value)}{y_unit}", "tick", "end"))
    for value in x.ticks():
        out.append(line(x.at(value), y.start, x.at(value), y.start + 4, "axis"))
        out.append(text(x.at(value), y.start + 17, number(value), "tick", "middle"))
    out.append(line(x.start, y.start, x.end, y.start, "axis"))
    out.append(text(x.end, y.start + 34, x_name, "name", "end"))
    out.append(text(x.start - 40, y.end - 10, y_name, "name"))
    return "".join(out)
