"""From judged null answers to what is wrong with a problem and what to change. Pure."""

import math
from collections.abc import Sequence

from kbtui.domain.problem import TOLERANCE_FLOOR, ProblemSpec, ShapeRole
from kbtui.domain.vetting import NULL_WORDS, Cell, Complaint, Flaw, NullSummary

#: Right where a tolerance was widened on purpose, or the reference is that inaccurate itself: told, not refused.
PRECISION = "rounded inputs"
_EXACT = 1e-12
_NOISY = 100.0


def summaries(cells: Sequence[Cell]) -> tuple[NullSummary, ...]:
    """Every null kernel over all its cells, in the order of first appearance."""
    found = []
    for null in dict.fromkeys(c.null for c in cells):
        mine = [c for c in cells if c.null == null]
        closest = min((c.error / c.limit for c in mine if not c.passes), default=math.inf)
        passed = tuple(dict.fromkeys(f"{c.shape}, {c.distribution}" for c in mine if c.passes))
        found.append(NullSummary(null, len(mine), sum(not c.passes for c in mine), closest, passed))
    return tuple(found)


def null_complaints(cells: Sequence[Cell], spec: ProblemSpec, allclose: float | None) -> tuple[Complaint, ...]:
    """A null kernel that every distribution lets pass at a timed shape: a candidate may treat that shape alone."""
    timed = {s.name for s in spec.shapes if s.role is not ShapeRole.HIDDEN}
    by_place: dict[tuple[str, int], dict[str, list[Cell]]] = {}
    for cell in cells:
        if cell.stands_for in timed and cell.null != PRECISION:
            by_place.setdefault((cell.null, cell.output), {}).setdefault(cell.stands_for, []).append(cell)
    complaints = []
    for places in by_place.values():
        blind = {name: there for name, there in places.items() if all(c.passes for c in there)}
        if blind:
            complaints.append(_complaint(blind, spec, allclose))
    return tuple(complaints)


def null_words(null: str) -> str:
    """``zeros``, ``a quarter of x[1], scaled up``."""
    if null in NULL_WORDS:
        return NULL_WORDS[null]
    return f"{null} read, the rest made up" if " of " in null else null


def _complaint(blind: dict[str, list[Cell]], spec: ProblemSpec, allclose: float | None) -> Complaint:
    cells = [c for there in blind.values() for c in there]
    worst = max(cells, key=lambda c: c.error)
    where = " and ".join(_place(there[0]) for there in blind.values())
    output = f" as output {worst.output}" if worst.output else ""
    why, do = _why(worst, spec, allclose)
    return Complaint(Flaw.NULL_PASSES, f"{null_words(worst.null)}{output} would pass on {where}: {why}", do)


def _place(cell: Cell) -> str:
    return cell.stands_for if cell.shape == cell.stands_for else f"{cell.stands_for} (tried as {cell.shape})"


def _why(worst: Cell, spec: ProblemSpec, allclose: float | None) -> tuple[str, str]:
    """``worst`` is the largest error that was let pass."""
    if allclose is not None:
        do = f"allclose at {allclose:g} hides that: judge by relative error, on inputs that tell"
        if worst.largest <= allclose:
            return f"no right answer is larger than {worst.largest:.1e}", do
        return f"it is off by {worst.error:.1e} (relative L2)", do
    if worst.error <= _EXACT:
        return _is_the_answer(worst)
    told = f"its relative error is {worst.error:.1e}, and {worst.limit:.1e} is allowed"
    floor = TOLERANCE_FLOOR[spec.dtype]
    if worst.limit > max(spec.tolerance.floor, floor):
        return f"{told}, twice the reference's own", "scale the inputs so that the reference is accurate in its dtype"
    if spec.tolerance.floor > floor:
        return told, f"set [tolerance] floor below {_below(worst.error):.0e}; the default is {floor:g}"
    return told, "widen the distributions: what a null kernel leaves out must count in the answer"


def _is_the_answer(cell: Cell) -> tuple[str, str]:
    if cell.null.endswith(" returned") and cell.lowest_input >= 0:
        return "it is the answer there, for no input is negative", "draw signed inputs, such as `normal`"
    if cell.null in ("last call", "last distribution"):
        return "the answer does not depend on what is drawn", "draw inputs that the answer depends on"
    return "it is the answer there", "draw other inputs, or other shapes"


def _below(error: float) -> float:
    """A tenth of an error, as one digit."""
    return float(f"{error / 10:.0e}")


def tolerance_complaints(cells: Sequence[Cell], spec: ProblemSpec) -> tuple[Complaint, ...]:
    """A floor below what the reference itself achieves in its dtype: honest kernels would be rejected."""
    floor, default = spec.tolerance.floor, TOLERANCE_FLOOR[spec.dtype]
    noisy = [c for c in cells if c.own > floor]
    if floor >= default or not noisy:
        return ()
    worst = max(noisy, key=lambda c: c.own)
    what = (
        f"[tolerance] floor = {floor:g} is below the reference's own error in its dtype, "
        f"{worst.own:.1e} on {worst.shape}, {worst.distribution}"
    )
    return (Complaint(Flaw.BAD_TOLERANCE, what, f"leave floor out, it is {default:g} then"),)


def notes(cells: Sequence[Cell], spec: ProblemSpec, allclose: float | None) -> tuple[str, ...]:
    """What is weak and not wrong: precision that is not asked for, and shapes where the reference is noisy."""
    told = []
    lax = [c for c in cells if c.null == PRECISION and c.passes and c.error > _EXACT]
    if lax and (allclose is not None or spec.tolerance.floor > TOLERANCE_FLOOR[spec.dtype]):
        at = f"allclose at {allclose:g}" if allclose is not None else f"floor = {spec.tolerance.floor:g}"
        told.append(f"{at} lets the answer to inputs rounded to fewer bits pass: TF32 or half precision will do")
    dtypes = {s.name: spec.dtype_of(s) for s in spec.shapes}
    usual = {name: max(spec.tolerance.floor, TOLERANCE_FLOOR[dtype]) for name, dtype in dtypes.items()}
    noisy = [c for c in cells if c.own > _NOISY * usual.get(c.stands_for, spec.tolerance.floor)]
    if noisy:
        worst = max(noisy, key=lambda c: c.own)
        told.append(
            f"the reference's own error is {worst.own:.1e} on {worst.shape}, {worst.distribution}: "
            "twice that is allowed there"
        )
    return tuple(told)
