"""The first kernel beside the best one, with what changed inside a line marked. Pure."""

from collections.abc import Iterator

from kbtui.leaving.page.shown import Shown
from kbtui.leaving.page.text import esc, tag
from kbtui.tui.view.diff import Change, Diff, DiffRow, diff_sources

_CONTEXT = 4


def diff_section(shown: Shown) -> str:
    first, best = shown.first, shown.best
    if first is None or first.candidate.id == best.candidate.id:
        return tag("p", "The first kernel is still the best one:", class_="note") + _whole(shown.best_source)
    diff = diff_sources(shown.first_source, shown.best_source)
    names = tuple(f"{t.candidate.id} {t.candidate.summary}" for t in (first, best))
    head = "".join(tag("th", esc(name), colspan=2, scope="col") for name in names)
    rows = "".join(_rows(diff))
    columns = "<colgroup>" + '<col class="no"><col>' * 2 + "</colgroup>"
    table = tag("table", columns + tag("thead", tag("tr", head)) + tag("tbody", rows), class_="diff")
    whole = tag("details", tag("summary", esc(f"{best.candidate.id} as a whole")) + _whole(shown.best_source))
    return tag("div", table, class_="scroll") + whole


def _whole(source: str) -> str:
    return tag("pre", tag("code", esc(source)))


def _rows(diff: Diff) -> Iterator[str]:
    """Unchanged stretches longer than the context on both sides become one line that says how long."""
    near = _near(diff)
    skipped = 0
    for row, shown in zip(diff.rows, near, strict=True):
        if not shown:
            skipped += 1
            continue
        if skipped:
            yield _skipped(skipped)
            skipped = 0
        yield _row(diff, row)
    if skipped:
        yield _skipped(skipped)


def _near(diff: Diff) -> list[bool]:
    changed = [i for i, row in enumerate(diff.rows) if row.kind is not Change.SAME]
    near = [False] * len(diff.rows)
    for i in changed:
        for j in range(max(0, i - _CONTEXT), min(len(near), i + _CONTEXT + 1)):
            near[j] = True
    return near


def _skipped(n: int) -> str:
    return tag("tr", tag("td", esc(f"⋯ {n} unchanged lines"), colspan=4), class_="skip")


def _row(diff: Diff, row: DiffRow) -> str:
    left = _side(diff.left, row.left, row.left_spans, "del" if row.kind is not Change.SAME else "")
    right = _side(diff.right, row.right, row.right_spans, "ins" if row.kind is not Change.SAME else "")
    return tag("tr", left + right, class_=str(row.kind))


def _side(source: tuple[str, ...], number: int | None, spans: tuple[tuple[int, int], ...], mark: str) -> str:
    if number is None:
        return tag("td", "", class_="no") + tag("td", "", class_="none")
    sign = {"del": "−", "ins": "+"}.get(mark, "")
    code = _marked(source[number], spans, mark)
    return tag("td", esc(f"{number + 1} {sign}".rstrip()), class_="no") + tag("td", code, class_=f"code {mark}".strip())


def _marked(line: str, spans: tuple[tuple[int, int], ...], mark: str) -> str:
    """The line with its changed spans in ``<ins>`` or ``<del>``, which read as such without any style."""
    out, at = [], 0
    for start, end in spans:
        out += [esc(line[at:start]), tag(mark or "span", esc(line[start:end]))]
        at = end
    return "".join([*out, esc(line[at:])])
