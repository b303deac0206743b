"""Every case beside what was asked of it, and what stops those that fall short. Pure."""

from collections.abc import Mapping, Sequence

from benchmarks.six import judging
from benchmarks.six.cases import Case
from benchmarks.six.cells import NOTHING, beside, percent
from benchmarks.six.markdown import Row, markdown_table
from benchmarks.six.record import CHAMPION, CaseRecord
from benchmarks.six.summary import NOT_MEASURED, name_of
from kbtui.evaluation.baselines import EAGER


def targets(cases: Sequence[Case], measured: Mapping[str, CaseRecord]) -> str:
    """Every case, measured or not."""
    head = (
        "case", "expert, over eager (ms then)", "asked", "torch.compile then", "champion µs", "over eager",
        "best torch.compile, over eager", "beside the expert", "verdict",
    )  # fmt: skip
    return markdown_table(head, [_target_row(c, measured.get(c.name)) for c in cases])


def _target_row(case: Case, record: CaseRecord | None) -> Row:
    ms = f" ({case.expert_ms:g})" if case.expert_ms is not None else ""
    asked = case.expert * (1 - judging.tolerance(case))
    given = (name_of(case), f"{case.expert:.2f}{ms}", f"{asked:.2f}", f"{case.compiled:.2f}")
    if record is None:
        return (*given, NOT_MEASURED, NOTHING, NOTHING, NOTHING, NOT_MEASURED)
    contest = record.contest
    eager, compiled = contest.beside(EAGER), judging.best_compiled(contest)
    ratio = judging.over_eager(contest, compiled.name) if compiled else None
    doubt = f" ({contest.unstable})" if contest.unstable else ""
    return (
        *given,
        f"{contest.us:.2f}{doubt}",
        beside(contest, EAGER),
        f"{ratio:.2f} ({compiled.name})" if compiled and ratio else NOT_MEASURED,
        judging.target_words(case, eager.ratio if eager else None),
        str(judging.standing(record)),
    )


def measured_before(measured: Sequence[tuple[Case, CaseRecord]]) -> str:
    """The champions that were measured in more than one call: how far another card or hour moves a ratio."""
    lines = []
    for case, record in measured:
        same = [e for e in record.earlier if e.ratio is not None and e.champion == record.contest.champion]
        before = [f"{e.ratio:.3f} ({e.us:.2f} µs, {_minute(e.date)})" for e in same]
        now = record.contest.beside(EAGER)
        if before and now and now.ratio is not None:
            last = f"{now.ratio:.3f} ({record.contest.us:.2f} µs, {_minute(record.contest.date)})"
            lines.append(f"- {name_of(case)}: {', '.join(before)}, now {last}")
    again = [record for _, record in measured if record.earlier]
    cards = {r.device.uuid for r in again}.union(e.card for r in again for e in r.earlier)
    head = f"The same champions over eager in earlier calls, on {len(cards)} cards in all; the last one counts:"
    return "\n".join([head, "", *lines]) if lines else ""


def _minute(date: str) -> str:
    return f"{date[:16].replace('T', ' ')}Z"


def stopped(measured: Sequence[tuple[Case, CaseRecord]]) -> str:
    """What the cases are bound by that did not reach what was asked, or are no win, as far as their search told."""
    lines = []
    for case, record in measured:
        champion, standing = record.kernel(CHAMPION), judging.standing(record)
        missed = judging.target(case, judging.over_eager(record.contest, CHAMPION)) is judging.Target.MISSED
        moved = judging.asked_bandwidth(case, record)
        slow = [f"{percent(moved.share)} of the bandwidth"] if moved and not moved.enough else []
        if champion and (missed or slow or standing is not judging.Standing.WIN):
            found = champion.diagnosis or "not diagnosed"
            told = ", ".join((name_of(case), str(standing), *slow))
            lines.append(f"- {told}: {found}; the operation is bound by {judging.bound(case, record)}")
    asked = percent(judging.BANDWIDTH_ASKED)
    head = (
        f"What stops the cases that miss, are no win, or stay under {asked} of the bandwidth (counters: of the "
        "search's profile; compiled: estimated from the compiled kernel, where it was not profiled):"
    )
    return "\n".join([head, "", *lines]) if lines else ""
