"""What the diff is against: the parent, the champion, the first kernel, or the marked candidate."""

from dataclasses import dataclass
from enum import StrEnum

from kbtui.tui.moment import Moment


class Base(StrEnum):
    PARENT = "parent"
    CHAMPION = "champion"
    FIRST = "first"
    MARKED = "marked"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two candidates to compare and their commits; ``missing`` says why there is no pair."""

    base: Base
    left: str = ""
    right: str = ""
    left_commit: str = ""
    right_commit: str = ""
    title: str = ""
    missing: str = ""


_NOBODY = (
    "The change that made the candidate under the cursor appears here, side by side. "
    "Choose a candidate with the arrows in 1, 5 or 6."
)


def pair_of(moment: Moment, selected: str | None, base: Base, marked: str | None) -> Pair:
    """The pair for a base. A candidate without a parent is compared with the first kernel."""
    state = moment.state
    tried = state.tried.get(selected or "")
    if tried is None:
        return Pair(base, missing=_NOBODY)
    parents = tried.candidate.parents
    names = {
        Base.PARENT: parents[0] if parents else state.first,
        Base.CHAMPION: state.champion,
        Base.FIRST: state.first,
        Base.MARKED: marked,
    }
    left = names[base]
    if left is None or left not in state.tried:
        why = {Base.CHAMPION: "no champion yet", Base.MARKED: "nothing is marked; m marks the card under the cursor"}
        return Pair(base, missing=f"{why.get(base, 'nothing to compare with')}. d compares with something else.")
    if left == tried.candidate.id:
        word = "the first kernel" if left == state.first else f"the {base.value} itself"
        return Pair(base, missing=f"{left} is {word}: nothing to compare. d compares with something else.")
    note = (
        "" if base is Base.PARENT and parents else f" ({'first kernel' if base is not Base.CHAMPION else 'champion'})"
    )
    note = " (marked)" if base is Base.MARKED else note
    origin = tried.candidate.origin
    by = f"{origin.operator.replace('_', ' ')}{', hint ' + origin.hint.replace('_', ' ') if origin.hint else ''}"
    title = f"{left}{note} {{arrow}} {tried.candidate.id}  {tried.candidate.summary or by}"
    return Pair(base, left, tried.candidate.id, state.tried[left].commit, tried.commit, title)


def next_base(base: Base) -> Base:
    order = list(Base)
    return order[(order.index(base) + 1) % len(order)]
