"""The six benchmarks as pictures, out of measured cases alone: files of their own, as SVG. Pure."""

from collections.abc import Mapping, Sequence

from benchmarks.six import judging
from benchmarks.six.cases import Case
from benchmarks.six.record import CHAMPION, MEASURED, CaseRecord
from kbtui.evaluation.baselines import EAGER
from kbtui.leaving.page import svg
from kbtui.leaving.page.text import esc

Measured = Sequence[tuple[Case, CaseRecord]]
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1f2328}.tick,.note{fill:#59636e;font-size:11px}.title{font-weight:600}"
    ".grid{stroke:#d8dee4}.axis{stroke:#59636e}.one{stroke:#1f2328;stroke-dasharray:4 3}.whisker{stroke:#0969da;"
    "stroke-width:2}.champion{fill:#0969da}.lost{fill:#fff;stroke:#0969da;stroke-width:2}.compiled{fill:#fff;"
    "stroke:#8250df;stroke-width:2}.expert{fill:#f0c36d;opacity:.55}.best{fill:none;stroke:#0969da;stroke-width:2}"
    ".close{stroke:#1a7f37;stroke-dasharray:3 2}.inside{fill:#fff;font-size:10px}"
)
_PAPER = '<rect width="100%" height="100%" fill="#fff"/>'
#: Parts of a search's time, in the order in which they are drawn.
_FILLS = {
    "opening": "#57606a", "compile": "#6639ba", "screen": "#0a3069", "measure": "#0969da", "profile": "#9a6700",
    "confirm": "#116329", "generators": "#bf3989", "other": "#d8dee4",
}  # fmt: skip


def plots(cases: Sequence[Case], records: Mapping[str, CaseRecord]) -> dict[str, str]:
    """By the file's name; none where nothing was measured."""
    measured = [(c, r) for c in cases if (r := records.get(c.name)) is not None and r.kind == MEASURED]
    if not measured:
        return {}
    return {
        "six-speedups.svg": speedups(measured),
        "six-searches.svg": searches(measured),
        "six-budgets.svg": budgets(measured),
    }


def speedups(measured: Measured) -> str:
    """A row a case: the champion with its interval, the best of torch.compile, and what the expert reached."""
    row, left, width = 24, 290, 860
    high = max(max(c.expert, _over_eager(r), _compiled(r) or 0.0) for c, r in measured) * 1.08
    low = min(0.4, *(min(_over_eager(r), _compiled(r) or 1.0) * 0.95 for _, r in measured))
    bottom = 44 + row * len(measured)
    x = svg.Axis(low, high, left, width - 20)
    out = [svg.line(x.at(t), 36, x.at(t), bottom, "grid") for t in x.ticks(8)]
    out += [svg.text(x.at(t), bottom + 16, f"{svg.number(t)}×", "tick", "middle") for t in x.ticks(8)]
    out.append(svg.line(x.at(1.0), 36, x.at(1.0), bottom, "one"))
    out.append(svg.text(x.at(1.0), bottom + 32, "PyTorch eager", "note", "middle"))
    for index, (case, record) in enumerate(measured):
        out.append(_speedup_row(x, 50 + row * index, case, record, left))
    legend = "● champion (hollow: no win), line: 95 %   ◇ best of torch.compile   ▮ the expert, less the tolerance"
    out.append(svg.text(12, 20, legend, "note"))
    return _file(width, bottom + 44, "Speedup over PyTorch eager", "".join(out))


def _speedup_row(x: svg.Axis, y: float, case: Case, record: CaseRecord, left: float) -> str:
    eager = record.contest.beside(EAGER)
    asked = case.expert * (1 - judging.tolerance(case))
    out = [
        svg.text(left - 10, y + 4, _name(case), "", "end"),
        f'<rect x="{x.at(asked):.1f}" y="{y - 8:.1f}" width="{max(2.0, x.at(case.expert) - x.at(asked)):.1f}" '
        f'height="16" class="expert"><title>expert {case.expert:.2f}×</title></rect>',
    ]
    if (compiled := _compiled(record)) is not None:
        at = x.at(compiled)
        diamond = f"{at:.1f},{y - 5} {at + 5:.1f},{y} {at:.1f},{y + 5} {at - 5:.1f},{y}"
        out.append(
            f'<polygon points="{diamond}" class="compiled"><title>torch.compile {compiled:.2f}×</title></polygon>'
        )
    if eager is not None and eager.ratio and eager.low and eager.high:
        won = judging.standing(record) is judging.Standing.WIN
        out.append(svg.line(x.at(eager.low), y, x.at(eager.high), y, "whisker"))
        out.append(svg.circle(x.at(eager.ratio), y, 4.5, "champion" if won else "lost", f"{eager.ratio:.3f}×"))
    return "".join(out)


def searches(measured: Measured) -> str:
    """A small panel a case: the best so far as a share of the final score, and when it was within 2 %."""
    columns, wide, tall = 4, 220, 150
    out = []
    for index, (case, record) in enumerate(measured):
        left, top = 10 + wide * (index % columns), 10 + tall * (index // columns)
        out.append(_search_panel(left, top, wide - 14, tall - 18, case, record))
    n_rows = -(-len(measured) // columns)
    return _file(20 + wide * columns, 20 + tall * n_rows, "Best so far over each search's seconds", "".join(out))


def _search_panel(left: float, top: float, wide: float, tall: float, case: Case, record: CaseRecord) -> str:
    story = record.story
    scores = [s.score for s in story.steps] or [1.0]
    x = svg.Axis(0.0, max(story.wall_s, 1e-3), left + 34, left + wide)
    y = svg.Axis(min(0.0, *scores), 1.05 * max(scores), top + tall - 18, top + 20)
    out = [svg.text(left, top + 10, _name(case), "tick")]
    for value in y.ticks(3):
        out += [svg.line(x.start, y.at(value), x.end, y.at(value), "grid")]
        out += [svg.text(x.start - 4, y.at(value) + 4, f"{svg.number(value)}×", "tick", "end")]
    out += [svg.text(x.at(t), y.start + 14, f"{svg.number(t)} s", "tick", "middle") for t in x.ticks(3)]
    out.append(svg.line(x.start, y.start, x.end, y.start, "axis"))
    if story.within_wall_s is not None:
        at = x.at(story.within_wall_s)
        out.append(svg.line(at, y.start, at, y.end, "close"))
        out.append(svg.text(at + 3, y.start - 5, f"2 %: {story.within_wall_s:.0f} s", "tick"))
    points: list[tuple[float, float]] = []
    for step in story.steps:
        at = x.at(min(step.wall_s, story.wall_s)), y.at(step.score)
        points += [(at[0], points[-1][1])] if points else []
        points.append(at)
    if points:
        out.append(svg.path([*points, (x.end, points[-1][1])], "best"))
    return "".join(out)


def budgets(measured: Measured) -> str:
    """A bar a case: parts of the search's wall time by rung, opening, waiting for generators, and the rest."""
    row, left, width = 24, 290, 860
    met = {name for _, r in measured for name, _ in shares(r)}
    names = [name for name in _FILLS if name in met]
    x = svg.Axis(0.0, 1.0, left, width - 20)
    out = []
    for index, name in enumerate(names):
        at = 12 + index * 105
        out.append(f'<rect x="{at}" y="10" width="12" height="12" fill="{_FILLS[name]}"/>')
        out.append(svg.text(at + 17, 20, name, "note"))
    for index, (case, record) in enumerate(measured):
        y = 34 + row * index
        out.append(svg.text(left - 10, y + 14, _name(case), "", "end"))
        begin = 0.0
        for name, share in shares(record):
            width_px = x.at(begin + share) - x.at(begin)
            out.append(
                f'<rect x="{x.at(begin):.1f}" y="{y}" width="{width_px:.1f}" height="18" '
                f'fill="{_FILLS.get(name, _FILLS["other"])}"><title>{esc(name)} {share:.0%}</title></rect>'
            )
            if width_px > 34 and name != "other":
                out.append(svg.text(x.at(begin) + width_px / 2, y + 13, f"{share:.0%}", "inside", "middle"))
            begin += share
    return _file(width, 50 + row * len(measured), "What each search's time went into", "".join(out))


def shares(record: CaseRecord) -> tuple[tuple[str, float], ...]:
    """(what, part of the wall time, 0 to 1); they sum up to 1."""
    story = record.story
    whole = max(story.wall_s, 1e-9)
    parts = [("opening", story.open_s), *((s.rung, s.wall_s) for s in story.spent), ("generators", story.asked_s)]
    known = sum(seconds for _, seconds in parts)
    scale = min(1.0, whole / known) if known else 1.0
    found = [(name, scale * seconds / whole) for name, seconds in parts if seconds > 0]
    return (*found, ("other", max(0.0, 1.0 - sum(share for _, share in found))))


def _over_eager(record: CaseRecord) -> float:
    return judging.over_eager(record.contest, CHAMPION) or 1.0


def _compiled(record: CaseRecord) -> float | None:
    best = judging.best_compiled(record.contest)
    return judging.over_eager(record.contest, best.name) if best else None


def _name(case: Case) -> str:
    return f"{case.problem} {case.short_dtype} {case.shape}"


def _file(width: float, height: float, title: str, inner: str) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    named = f' role="img" aria-label="{esc(title)}"><title>{esc(title)}</title><style>{_STYLE}</style>'
    return f"{head}{named}{_PAPER}{inner}</svg>\n"
