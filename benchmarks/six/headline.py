"""The six benchmarks in a few lines, for the front page: what to run of each case. Pure."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from benchmarks.six import judging
from benchmarks.six.cases import Case
from benchmarks.six.judging import Standing, Target
from benchmarks.six.markdown import markdown_table
from benchmarks.six.record import CHAMPION, CaseRecord
from benchmarks.six.summary import beside_no_search

_SEPARATOR = " · "


def headline(cases: Sequence[Case], records: Mapping[str, CaseRecord]) -> str:
    """A sentence that counts, and a table with a row for each problem and dtype; measured cases alone."""
    measured = [(case, records[case.name]) for case in cases if case.name in records]
    standings = [judging.standing(record) for _, record in measured]
    ratios = [(case, judging.over_eager(record.contest, CHAMPION)) for case, record in measured]
    found = [judging.target(case, ratio) for case, ratio in ratios]
    told = (
        f"{len(measured)} of {len(cases)} cases measured: faster than eager and than every mode of torch.compile in "
        f"{standings.count(Standing.WIN)}. Beside what an expert reached in an hour: passed in "
        f"{found.count(Target.PASSED)}, within the tolerance in {found.count(Target.REACHED)}, short of it in "
        f"{found.count(Target.MISSED)}. Beside no search: {beside_no_search(measured)}"
    )
    head = ("problem", "shapes", "over eager", "best torch.compile, over eager")
    rows = [_row(list(group)) for _, group in groupby(measured, key=lambda one: (one[0].problem, one[0].dtype))]
    return f"{told}\n\n{markdown_table(head, rows)}"


def _row(group: Sequence[tuple[Case, CaseRecord]]) -> Sequence[str]:
    case, _ = group[0]
    return (
        f"{case.problem} {case.short_dtype}",
        _SEPARATOR.join(case.shape.replace("x", "×") for case, _ in group),
        _SEPARATOR.join(_champion(record) for _, record in group),
        _SEPARATOR.join(_compiled(record) for _, record in group),
    )


def _champion(record: CaseRecord) -> str:
    """Bold where it is what a person should run."""
    told = _times(judging.over_eager(record.contest, CHAMPION))
    return f"**{told}**" if judging.standing(record) is Standing.WIN else told


def _compiled(record: CaseRecord) -> str:
    best = judging.best_compiled(record.contest)
    return _times(judging.over_eager(record.contest, best.name) if best else None)


def _times(ratio: float | None) -> str:
    return f"{ratio:.2f}×" if ratio is not None else "not measured"
