"""Best so far over wall and over GPU time. Pure."""

from collections.abc import Sequence

from kbtui.domain.event import Decision
from kbtui.domain.rung import MEASURE
from kbtui.leaving.page import svg
from kbtui.leaving.page.text import ratio, tag
from kbtui.leaving.rows import RungRow

_WIDTH, _HEIGHT = 540, 300


def curve_section(rows: Sequence[RungRow], ends: tuple[float, float]) -> str:
    """``ends``: seconds of wall and of GPU time the run spent. Times on all shapes count, the screen's do not."""
    timed = [r for r in rows if r.event.rung >= MEASURE and r.event.score is not None]
    if not timed:
        return tag("p", "No candidate has been timed on all shapes yet.", class_="note")
    level = eager_level(timed)
    drawings = [_drawing(timed, level, end, by_gpu) for by_gpu, end in enumerate(ends) if end > 0]
    note = (
        "Speedup over the run's first kernel. The line steps up when an adjudicated comparison made a candidate the "
        "best on a rung that times all shapes; dots are the candidates timed there; ★ was confirmed in fresh processes."
    )
    return tag("div", "".join(drawings), class_="pair") + tag("p", note, class_="note")


def eager_level(timed: Sequence[RungRow]) -> float | None:
    """PyTorch eager on the scale of the scores, from the highest rung that timed both."""
    both = [
        (r.event.rung, r.event.score / eager.ratio) for r in timed if (eager := r.over("eager", None)) and r.event.score
    ]
    return max(both)[1] if both else None


def steps(timed: Sequence[RungRow]) -> list[tuple[RungRow, float]]:
    """The rows at which the best so far rose, and to what."""
    found: list[tuple[RungRow, float]] = []
    for row in timed:
        score = row.event.score
        if row.event.new_incumbent and score is not None and (not found or score > found[-1][1]):
            found.append((row, score))
    return found


def _drawing(timed: Sequence[RungRow], level: float | None, end: float, by_gpu: int) -> str:
    def at(row: RungRow) -> float:
        return row.gpu_s if by_gpu else row.wall_s

    scores = [r.event.score for r in timed if r.event.score is not None]
    values = [*scores, 1.0, *([level] if level else [])]
    room = 0.08 * (max(values) - min(values) or 1.0)
    x = svg.Axis(0.0, end, 56, _WIDTH - 16)
    y = svg.Axis(max(0.0, min(values) - room), max(values) + room, _HEIGHT - 44, 30)
    out = [svg.frame(x, y, f"{'GPU' if by_gpu else 'wall'} time, s", "speedup over the first kernel", "×")]
    if level:
        out.append(svg.line(x.start, y.at(level), x.end, y.at(level), "level"))
        out.append(svg.text(x.end, y.at(level) - 6, f"PyTorch eager {ratio(level)}", "level-name", "end"))
    out += [svg.circle(x.at(at(r)), y.at(r.event.score or 0), 2.5, "dot", _title(r)) for r in timed]
    rising = steps(timed)
    out.append(svg.path(_corners([(x.at(at(r)), y.at(s)) for r, s in rising], x.end), "best"))
    crowned = [r for r in timed if r.event.decision is Decision.CROWN and r.event.score is not None]
    for row in crowned:
        place = x.at(at(row)), y.at(row.event.score or 0)
        out.append(f"<g>{svg.text(place[0], place[1] + 5, '★', 'star', 'middle')}<title>{_title(row)}</title></g>")
    name = f"Best so far over {'GPU' if by_gpu else 'wall'} time"
    return svg.drawing(_WIDTH, _HEIGHT, name, "".join(out))


def _corners(points: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    out: list[tuple[float, float]] = []
    for px, py in points:
        out += [(px, out[-1][1])] if out else []
        out.append((px, py))
    return [*out, (end, out[-1][1])] if out else []


def _title(row: RungRow) -> str:
    return f"{row.tried.candidate.id}, {row.rung_name}: {ratio(row.event.score)}"
