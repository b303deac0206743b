"""Why a decision was made, in one line of numbers: what a person reads in the ledger and on every screen. Pure."""

from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.measurement import Clock, Comparison, Outcome
from kbtui.domain.wording import counted, percent, signed, sure


def resources_words(outcome: RungOutcome) -> str:
    """The compiled kernels in one line."""
    if not outcome.resources:
        return "compiles"
    widest = max(outcome.resources, key=lambda r: r.registers)
    spills = f"{widest.spill_bytes} B spilled" if widest.spill_bytes else "no spills"
    return f"compiles: {widest.registers} registers, {spills}, occupancy {widest.occupancy:.0%} ({widest.limiter})"


def comparison_words(comparison: Comparison, clock: Clock) -> str:
    """A comparison in one line.

    ``+4.1 % (+3.0 to +5.2) over c0031, faster, 97 % sure, 14 pairs in 1 process``; a modelled one has neither
    interval nor doubt: ``+34.2 % over c0001 (modelled)``.
    """
    over = "the first kernel" if comparison.against == "first" else comparison.against
    if clock is Clock.MODELLED:
        return f"{percent(comparison.ratio)} over {over} (modelled)"
    interval = f"({signed(comparison.low)} to {signed(comparison.high)})"
    return f"{percent(comparison.ratio)} {interval} over {over}, {comparison.outcome}, {evidence_words(comparison)}"


def evidence_words(comparison: Comparison) -> str:
    """What a measured outcome rests on: ``97 % sure, 14 pairs in 1 process``; nobody is sure of an unclear one."""
    sides = counted(comparison.n_processes, "process", "processes")
    pairs = f"{counted(comparison.n_pairs, 'pair')} in {sides}"
    return pairs if comparison.outcome is Outcome.UNCLEAR else f"{sure(comparison.confidence)} sure, {pairs}"
