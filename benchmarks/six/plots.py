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
    ".close{stroke:#1a7f37;stroke-dasharray:3 2}.inside{fill:#fff;font-size:10px}.value{font-weight:600;"
    "font-size:11px}.none{fill:#818b98;font-size:11px;font-style:italic}"
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
        "six-speedups.svg": speedups(cases, dict(records)),
        "six-searches.svg": searches(measured),
        "six-budgets.svg": budgets(measured),
    }


def speedups(cases: Sequence[Case], records: Mapping[str, CaseRecord]) -> str:
    """A row a case: the champion with its interval, the best of torch.compile, and what the expert reached."""
    row, left, width, top = 24, 290, 860, 62
    found = {c.name: r for c in cases if (r := records.get(c.name)) is not None and r.kind == MEASURED}
    reached = [value for r in found.values() for value in (_over_eager(r), _compiled(r)) if value]
    x = svg.Axis(min(0.4, *reached) * 0.95, max(*(c.expert for c in cases), *reached) * 1.08, left, width - 20)
    bottom = top + row * len(cases)
    out = [svg.text(12, 20, "Speedup over PyTorch eager, in the same turns", "title"), _legend(12, 42)]
    out += [svg.line(x.at(t), top, x.at(t), bottom, "grid") for t in x.ticks(8)]
    out += [svg.text(x.at(t), bottom + 16, f"{svg.number(t)}×", "tick", "middle") for t in x.ticks(8)]
    out.append(svg.line(x.at(1.0), top, x.at(1.0), bottom, "one"))
    out.append(svg.text(x.at(1.0), bottom + 32, "PyTorch eager", "note", "middle"))
    for index, case in enumerate(cases):
        out.append(_speedup_row(x, top + 14 + row * index, case, found.get(case.name), left))
    return _file(width, bottom + 44, "Speedup over PyTorch eager", "".join(out))


def _legend(x: float, y: float) -> str:
    """The marks as they are drawn, each with its name."""
    return "".join((
        svg.line(x, y, x + 22, y, "whisker"), svg.circle(x + 11, y, 4.5, "champion", "a win"),
        svg.text(x + 28, y + 4, "champion, a win, and its 95 % interval", "note"),
        svg.circle(x + 256, y, 4.5, "lost", "no win"), svg.text(x + 266, y + 4, "no win", "note"),
        _diamond(x + 328, y, "torch.compile"), svg.text(x + 338, y + 4, "best of torch.compile", "note"),
        f'<rect x="{x + 478}" y="{y - 8}" width="14" height="16" class="expert"/>',
        svg.text(x + 497, y + 4, "the expert, and the tolerance below", "note"),
    ))  # fmt: skip


def _diamond(x: float, y: float, title: str) -> str:
    points = f"{x:.1f},{y - 5} {x + 5:.1f},{y} {x:.1f},{y + 5} {x - 5:.1f},{y}"
    return f'<polygon points="{points}" class="compiled"><title>{title}</title></polygon>'


def _speedup_row(x: svg.Axis, y: float, case: Case, record: CaseRecord | None, left: float) -> str:
    asked = case.expert * (1 - judging.tolerance(case))
    out = [
        svg.text(left - 10, y + 4, _name(case), "" if record else "none", "end"),
        f'<rect x="{x.at(asked):.1f}" y="{y - 8:.1f}" width="{max(2.0, x.at(case.expert) - x.at(asked)):.1f}" '
        f'height="16" class="expert"><title>expert {case.expert:.2f}×</title></rect>',
    ]
    if record is None:
        return "".join((*out, svg.text(x.at(case.expert) + 8, y + 4, "not measured", "none")))
    eager = record.contest.beside(EAGER)
    if (compiled := _compiled(record)) is not None:
        out.append(_diamond(x.at(compiled), y, f"torch.compile {compiled:.2f}×"))
    if eager is not None and eager.ratio and eager.low and eager.high:
        won = judging.standing(record) is judging.Standing.WIN
        out.append(svg.line(x.at(eager.low), y, x.at(eager.high), y, "whisker"))
        out.append(svg.circle(x.at(eager.ratio), y, 4.5, "champion" if won else "lost", f"{eager.ratio:.3f}×"))
        beside = max(eager.high, case.expert, compiled or 0.0)
        out.append(svg.text(x.at(beside) + 9, y + 4, f"{eager.ratio:.2f}×", "value"))
    return "".join(out)


def searches(measured: Measured) -> str:
    """A small panel a case: the best so far as a share of the final score, and when it was within 2 %."""
    columns, wide, tall = 4, 220, 150
    out = []
    for index, (case, record) in enumerate(measured):
        left, top = 10 + wide * (index % columns), 44 + tall * (index // columns)
        out.append(_search_panel(left, top, wide - 14, tall - 18, case, record))
    n_rows = -(-len(measured) // columns)
    title = "Best so far, over the first kernel"
    out.append(svg.text(12, 20, title, "title"))
    told = "seconds from the engine's start; dashed: when a candidate first scored within 2 % of the final champion"
    out.append(svg.text(12, 36, told, "note"))
    return _file(20 + wide * columns, 54 + tall * n_rows, title, "".join(out))


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
        late = story.within_wall_s > 0.7 * story.wall_s
        anchor = ("end", -3) if late else ("start", 3)
        out.append(svg.text(at + anchor[1], y.start - 5, f"{story.within_wall_s:.0f} s", "tick", anchor[0]))
    points: list[tuple[float, float]] = []
    for step in story.steps:
        rise_x = x.at(min(step.wall_s, story.wall_s))
        points += [(rise_x, points[-1][1])] if points else []
        points.append((rise_x, y.at(step.score)))
    if points:
        out.append(svg.path([*points, (x.end, points[-1][1])], "best"))
        out.append(svg.text(x.end, points[-1][1] + 14, f"{scores[-1]:.2f}×", "value", "end"))
    return "".join(out)


def budgets(measured: Measured) -> str:
    """A bar a case: parts of the search's wall time by rung, opening, waiting for generators, and the rest."""
    row, left, width = 24, 290, 860
    met = {name for _, r in measured for name, _ in shares(r)}
    names = [name for name in _FILLS if name in met]
    x = svg.Axis(0.0, 1.0, left, width - 20)
    out = []
    out.append(svg.text(12, 20, "What each search's time went into", "title"))
    for index, name in enumerate(names):
        at = 12 + index * 105
        out.append(f'<rect x="{at}" y="32" width="12" height="12" fill="{_FILLS[name]}"/>')
        out.append(svg.text(at + 17, 42, name, "note"))
    for index, (case, record) in enumerate(measured):
        y = 58 + row * index
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
    return _file(width, 74 + row * len(measured), "What each search's time went into", "".join(out))


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
