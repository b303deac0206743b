"""What was asked of the six benchmarks, and what came of it, a line each. Pure.

Every line counts measured cases alone, and says how many are not.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from benchmarks.six import judging
from benchmarks.six.cases import Case
from benchmarks.six.judging import Standing, Target
from benchmarks.six.marks import told
from benchmarks.six.record import CHAMPION, DRAFT, FIRST, Against, CaseRecord
from kbtui.domain.measurement import Outcome
from kbtui.domain.wording import counted, signed
from kbtui.evaluation.baselines import LIBRARIES

Measured = Sequence[tuple[Case, CaseRecord]]
NOT_MEASURED = "not measured"


def summary(cases: Sequence[Case], records: Mapping[str, CaseRecord], ladder: str) -> str:
    """``ladder``: what is known of searches without it."""
    measured = [(case, records[case.name]) for case in cases if case.name in records]
    lines = (
        ("The expert's speedup over eager", _expert(measured)),
        ("A win, faster than eager and than torch.compile", _wins(measured)),
        ("90 % of the measured bandwidth, where memory bounds", _bandwidth(measured)),
        ("Beside no search", beside_no_search(measured)),
        ("A public library's kernel for the same operation", _libraries(measured)),
        ("Compiles for an A100: sm_80, 163 KiB, no spills", _a100(measured)),
        ("Half the time by the ladder, to the same quality", ladder),
    )
    missing = len(cases) - len(measured)
    verb = "is" if len(measured) == 1 else "are"
    head = f"{len(measured)} of {len(cases)} cases {verb} measured" + (f", {missing} not." if missing else ".")
    return "\n".join([head, "", *(f"- **{asked}:** {came}" for asked, came in lines)])


def name_of(case: Case) -> str:
    return f"{case.problem} {case.short_dtype} {case.shape.replace('x', '×')}"


def _expert(measured: Measured) -> str:
    if not measured:
        return f"{NOT_MEASURED}."
    ratios = {case: judging.over_eager(record.contest, CHAMPION) for case, record in measured}
    found = {case: judging.target(case, ratio) for case, ratio in ratios.items()}
    passed = sum(target is Target.PASSED for target in found.values())
    near = sum(target is Target.REACHED for target in found.values())
    short = [(c, ratios[c] or 0.0) for c, target in found.items() if target is Target.MISSED]
    missed = [f"{name_of(c)} ({signed(ratio / c.expert)} %)" for c, ratio in short]
    told = f"passed in {passed} of {len(measured)}, reached within the tolerance in {near} more"
    return _sentence(told, missed)


def _wins(measured: Measured) -> str:
    if not measured:
        return f"{NOT_MEASURED}."
    found = {name_of(case): judging.standing(record) for case, record in measured}
    n_wins = sum(standing is Standing.WIN for standing in found.values())
    others = [f"{name}: {standing}" for name, standing in found.items() if standing is not Standing.WIN]
    return _sentence(f"{n_wins} of {len(measured)}", others)


def _bandwidth(measured: Measured) -> str:
    known = [(c, found) for c, r in measured if (found := judging.asked_bandwidth(c, r)) is not None]
    if not known:
        return f"{NOT_MEASURED}."
    short = [f"{name_of(c)} {100 * b.share:.0f} %" for c, b in known if not b.enough]
    return _sentence(f"{len(known) - len(short)} of {len(known)}", short)


def beside_no_search(measured: Measured) -> str:
    """What the champions gain over the first kernel and over the best draft, and how often a draft is the champion."""
    if not measured:
        return f"{NOT_MEASURED}."
    told = [_range(role, [r.contest.beside(role) for _, r in measured]) for role in (FIRST, DRAFT)]
    same = sum(_is_champion(record, DRAFT) for _, record in measured)
    told += [f"in {counted(same, 'case')} a draft is the champion"] if same else []
    return f"{'; '.join(one for one in told if one)}."


def _range(role: str, found: Iterable[Against | None]) -> str:
    ratios = [a.ratio for a in found if a is not None and a.ratio is not None]
    if not ratios:
        return ""
    named = {FIRST: "over the first kernel", DRAFT: "over the best draft"}[role]
    spread = f"{min(ratios):.2f}× to {max(ratios):.2f}×, median " if len(ratios) > 1 else ""
    return f"{named} {spread}{median(ratios):.2f}×"


def _is_champion(record: CaseRecord, role: str) -> bool:
    champion, other = record.kernel(CHAMPION), record.kernel(role)
    return champion is not None and other is not None and champion.source == other.source


def _libraries(measured: Measured) -> str:
    met = [(c, a) for c, r in measured for name in LIBRARIES if (a := r.contest.beside(name)) is not None]
    if not met:
        return f"{NOT_MEASURED}."
    others = [(c, a) for c, a in met if a.outcome != Outcome.FASTER]
    told = [f"{name_of(c)} {a.ratio:.2f}× of {a.name}'s, {a.outcome}" for c, a in others if a.ratio is not None]
    n_ahead = len(met) - len(others)
    return _sentence(f"the champion is faster in {n_ahead} of {counted(len(met), 'meeting')}", told)


def _a100(measured: Measured) -> str:
    known = [(case, record.a100) for case, record in measured if record.a100 is not None]
    if not known:
        return "not compiled yet."
    fits = sum(found.fits for _, found in known)
    others = [
        f"{name_of(case)}: {found.substitute or 'nobody'} in its place"
        for case, found in known
        if not found.fits
    ]  # fmt: skip
    left = len(measured) - len(known)
    waiting = f", {left} not compiled yet" if left else ""
    return _sentence(f"the champions of {fits} of {len(known)}{waiting}", others)


def _sentence(told: str, others: Sequence[str]) -> str:
    return f"{told}; not: {'; '.join(others)}." if others else f"{told}."


def costs(measured: Measured) -> str:
    """What a case took, by phase, of those that one call searched and measured; nothing where none kept that."""
    kept = [r.phases for _, r in measured if r.phases and not r.earlier]
    if not kept:
        return ""
    whole = sorted(sum(seconds for _, seconds in phases) for phases in kept)
    slowest = max(kept, key=lambda phases: sum(seconds for _, seconds in phases))
    spread = f"{whole[0]:.0f} to {whole[-1]:.0f} s" if len(whole) > 1 else f"{whole[0]:.0f} s"
    of = f"A case that one call searched and measured ({len(kept)} of {len(measured)})"
    return f"{of} took {spread} of the machine. The longest, in seconds: {told(slowest)}."
