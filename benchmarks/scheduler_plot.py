"""The plot of the scheduler study as SVG text: one panel a pool, how far short of its best over GPU seconds. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, TOP, GAP = 330, 220, 52, 46, 40
#: Lines differ by dash as well as by colour.
STYLES = (("#0072b2", ""), ("#56b4e9", "6 3"), ("#d55e00", ""), ("#009e73", "2 3"), ("#7f7f7f", "8 3 2 3"))
#: Below this, parts of one, a kernel counts as the best itself; above the other it is off the scale.
LEAST, MOST = 0.001, 1.0


@dataclass(frozen=True, slots=True)
class Curve:
    """(GPU seconds, part by which the kernel held is slower than the pool's best), in order."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    curves: tuple[Curve, ...]

    @property
    def end_s(self) -> float:
        return max(x for c in self.curves for x, _ in c.points)


def plot(panels: list[Panel], goal: float) -> str:
    """All panels side by side, three a line, with a legend above and the goal as a thin line."""
    columns = min(len(panels), 3)
    lines = math.ceil(len(panels) / 3)
    width = columns * (WIDTH + LEFT) + 20
    height = TOP + lines * (HEIGHT + 2 * GAP)
    drawn = [*_legend([c.name for c in panels[0].curves], width)]
    for n, panel in enumerate(panels):
        x, y = (n % 3) * (WIDTH + LEFT) + LEFT, TOP + (n // 3) * (HEIGHT + 2 * GAP) + GAP / 2
        drawn.append(f'<g transform="translate({x:.0f},{y:.0f})">{"".join(_panel(panel, goal))}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="#ffffff"/>{"".join(drawn)}</svg>\n'
    )


def _legend(names: list[str], width: float) -> Iterable[str]:
    x, y = 20.0, 18.0
    for name, (colour, dash) in zip(names, STYLES, strict=False):
        needs = 40 + 6.2 * len(name)
        if x + needs > width:
            x, y = 20.0, y + 16
        yield _line([(x, y), (x + 26, y)], colour, dash, 2.5)
        yield f'<text x="{x + 32:.0f}" y="{y + 4:.0f}">{escape(name)}</text>'
        x += needs + 16


def _panel(panel: Panel, goal: float) -> Iterable[str]:
    yield f'<text x="0" y="-8" font-weight="bold">{escape(panel.title)}</text>'
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>'
    for part, label in ((0.001, "≤0.1 %"), (0.01, "1 %"), (0.1, "10 %"), (1.0, "100 %")):
        y = _y(part)
        yield _line([(0, y), (WIDTH, y)], "#e0e0e0", "", 1)
        yield f'<text x="-6" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    yield _line([(0, _y(goal)), (WIDTH, _y(goal))], "#000000", "1 3", 1)
    for second in _ticks(panel.end_s):
        x = second / panel.end_s * WIDTH
        yield f'<text x="{x:.0f}" y="{HEIGHT + 15}" text-anchor="middle">{second:.0f}</text>'
    yield f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT + 31}" text-anchor="middle">GPU seconds</text>'
    for curve, (colour, dash) in zip(panel.curves, STYLES, strict=False):
        at = [(x / panel.end_s * WIDTH, _y(short)) for x, short in _steps(curve.points)]
        yield _line(at, colour, dash, 1.8)


def _steps(points: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    """A value holds until the next one; points that change nothing are left out."""
    drawn: list[tuple[float, float]] = []
    for x, y in points:
        if drawn and y != drawn[-1][1]:
            drawn.append((x, drawn[-1][1]))
        if not drawn or y != drawn[-1][1]:
            drawn.append((x, y))
    return [*drawn, (points[-1][0], points[-1][1])] if points else []


def _y(part: float) -> float:
    part = min(max(part, LEAST), MOST)
    return HEIGHT * (1 - math.log(part / LEAST) / math.log(MOST / LEAST))


def _ticks(end_s: float) -> list[float]:
    step = next(s for s in (10, 20, 50, 100, 200, 500, 1000, 5000) if end_s / s <= 7)
    return [float(n * step) for n in range(int(end_s // step) + 1)]


def _line(points: list[tuple[float, float]], colour: str, dash: str, width: float) -> str:
    told = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{told}" fill="none" stroke="{colour}" stroke-width="{width}"{dashed}/>'
