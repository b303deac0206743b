"""Fresh process pairs in two helpings: whether more are worth their time, and what is said on all of them. Pure.

Where a candidate is ahead and its processes leave it unclear whether it is faster, as many again tell apart what is
closer by the square root of two, and more: their spread is better known, too. Nobody else gets any: who is behind has
nothing to gain, since a tie goes to the older.
"""

from collections.abc import Sequence

from kbtui.domain.measurement import Comparison, Outcome
from kbtui.domain.rung import Rung
from kbtui.evaluation.measure.adjudicate import ErrorRates, Evidence, compare


def compare_fresh(against: str, evidence: Evidence, rung: Rung) -> Comparison:
    """The comparison over fresh processes; each of the rung's decisions errs as rarely as they may together."""
    return compare(against, evidence, 1, ErrorRates().split(2 if rung.more_process_pairs else 1))


def n_further(rung: Rung, met: Sequence[Comparison]) -> int:
    """How many more process pairs are worth their time, after the rung's first. ``met``: all whom it has to beat."""
    return rung.more_process_pairs if rung.process_pairs > 1 and may_yet_win(met) else 0


def may_yet_win(met: Sequence[Comparison]) -> bool:
    """Whether more evidence could make the candidate faster than all of those that it has to beat.

    It is ahead of each with whom that is unclear, of one at least, and faster than all others.
    """
    unclear = [c for c in met if c.outcome is Outcome.UNCLEAR]
    beaten = sum(c.outcome is Outcome.FASTER for c in met)
    return bool(unclear) and len(unclear) + beaten == len(met) and all(c.ratio > 1 for c in unclear)
