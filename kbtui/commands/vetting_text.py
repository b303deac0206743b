"""What vetting found, on stdout for a person. Effects: prints."""

import math
import shlex
from pathlib import Path

from kbtui.domain.problem import Problem, ProblemFormat
from kbtui.domain.vetting import Flaw, NullSummary, Vetting

_MOST_LINES = 12


def print_sound(vetting: Vetting, at_length: bool) -> None:
    print(f"{vetting.problem} is sound by {vetting.criterion}: {vetting.headline}")
    _print_rest(vetting)
    if at_length:
        print_nulls(vetting)


def print_refusal(vetting: Vetting, problem: Problem, at_length: bool) -> None:
    """What passes and where, then what to change."""
    nulls = [c.what for c in vetting.complaints if c.flaw is Flaw.NULL_PASSES]
    others = [str(c) for c in vetting.complaints if c.flaw is not Flaw.NULL_PASSES]
    print(f"{vetting.problem} is refused, by {vetting.criterion}:")
    for told in (*others, *nulls)[:_MOST_LINES]:
        print(f"  {told}")
    if len(vetting.complaints) > _MOST_LINES:
        print(f"  and {len(vetting.complaints) - _MOST_LINES} more; --json has all")
    for do in dict.fromkeys(c.do for c in vetting.complaints if c.flaw is Flaw.NULL_PASSES):
        print(f"  what to do: {do}")
    _print_rest(vetting)
    if nulls and problem.format is ProblemFormat.KERNELBENCH and Path(problem.path).is_file():
        print(f"  kbtui verify {shlex.quote(problem.path)} --harden looks for inputs and a tolerance that are sound")
    if at_length:
        print_nulls(vetting)


def _print_rest(vetting: Vetting) -> None:
    for text in vetting.notes[:_MOST_LINES]:
        print(f"  note: {text}")
    for text in vetting.unvetted[:_MOST_LINES]:
        print(f"  not vetted: {text}")


def print_nulls(vetting: Vetting) -> None:
    """One line a null kernel: how often it was caught, and by how much at its best."""
    if vetting.reductions:
        print(f"  reduced axes: {', '.join(vetting.reductions)}")
    if not vetting.nulls:
        return
    print(f"  {'null kernel':<44} {'caught':>9}  smallest error, x limit")
    for null in vetting.nulls:
        print(f"  {null.null:<44} {null.n_caught:>4}/{null.n_cells:<4}  {_closest(null)}")


def _closest(null: NullSummary) -> str:
    if math.isinf(null.closest):
        return "no finite answer"
    passed = f"   right at {', '.join(null.passed_at[:2])}" if null.passed_at else ""
    more = f" and {len(null.passed_at) - 2} more" if len(null.passed_at) > 2 else ""
    return f"{null.closest:.2g}{passed}{more}"
