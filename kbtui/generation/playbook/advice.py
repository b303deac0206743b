"""What suits a problem's sizes on a device: which structures to draft first, from which parameters. Pure.

A short search makes some fifteen candidates, so the order and the first parameters decide what it finds. The rules
(``advice_rules.py``) are arithmetic on sizes and on the chip, each with its reason; where they know nothing of a
family, or a problem names its sizes otherwise, entries keep the order of their file and their own defaults.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import ITEM_BYTES, ProblemSpec, ShapeRole
from kbtui.generation.playbook.constants import Value
from kbtui.generation.playbook.entry import Entry

#: In a rule's answer: where the entries come that it does not name.
OTHERS = "*"
_NOTHING: Mapping[str, Value] = MappingProxyType({})
_NO_LIMITS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Size:
    """One timed shape: its dims in the order of the problem's file, and the bytes of an element."""

    dims: tuple[int, ...]
    item_bytes: int


@dataclass(frozen=True, slots=True)
class Suit:
    """How one entry suits a size.

    Attributes:
        entry: the entry's name.
        start: parameters to draft it with, where they are not its defaults.
        idle: parameters that change nothing at this size.
        widest: the largest value of a parameter that acts; those above act as it does.
    """

    entry: str
    start: Mapping[str, Value] = field(default_factory=lambda: _NOTHING)
    idle: frozenset[str] = frozenset()
    widest: Mapping[str, int] = field(default_factory=lambda: _NO_LIMITS)


#: A rule answers the entries of its family that it knows, the likeliest to be fast first; OTHERS stands for the rest.
Rule = Callable[[Size, DeviceSpec], tuple[Suit, ...]]


@dataclass(frozen=True, slots=True)
class Advice:
    """A family's entries over all timed shapes of a problem. Without suits it says nothing."""

    suits: tuple[Suit, ...] = ()

    def place(self, entry: Entry) -> int:
        """The entry's place in the order; those not known come where the OTHERS do, all alike, or last."""
        names = [suit.entry for suit in self.suits]
        name = entry.name if entry.name in names else OTHERS
        return names.index(name) if name in names else len(names)

    def start(self, entry: Entry) -> dict[str, Value]:
        """Parameters to draft an entry with: on its grid, and none that it keeps out."""
        defaults, suit = entry.defaults(), self._of(entry)
        grid = dict(entry.grid)
        wanted = defaults | {n: v for n, v in suit.start.items() if n in grid and v in grid[n]}
        return defaults if entry.why_kept_out(wanted) else wanted

    def acts(self, entry: Entry, name: str, before: Value, after: Value) -> bool:
        """Whether another value of a parameter can make another kernel on any of the shapes."""
        suit = self._of(entry)
        limit = suit.widest.get(name)
        beyond = (
            isinstance(before, int) and isinstance(after, int) and limit is not None and min(before, after) >= limit
        )
        return name not in suit.idle and not beyond

    def _of(self, entry: Entry) -> Suit:
        return next((suit for suit in self.suits if suit.entry == entry.name), Suit(entry.name))


def advise(spec: ProblemSpec, device: DeviceSpec, rule: Rule | None, n_dims: int) -> Advice:
    """The rule's answers for every timed shape, as one: by the sum of places, from the largest shape's parameters."""
    shapes = spec.shapes_of(ShapeRole.TUNE)
    if rule is None or not shapes or any(len(shape.dims) != n_dims for shape in shapes):
        return Advice()
    sizes = [Size(tuple(n for _, n in s.dims), ITEM_BYTES[spec.dtype_of(s)]) for s in shapes]
    answers = [rule(size, device) for size in sorted(sizes, key=_elements, reverse=True)]
    return Advice(tuple(_joined(name, answers) for name in _by_places(answers)))


def _elements(size: Size) -> int:
    """The product of all dims, by which a problem's shapes are told apart: no tensor need have so many."""
    product = 1
    for n in size.dims:
        product *= n
    return product


def _by_places(answers: list[tuple[Suit, ...]]) -> list[str]:
    """Names by the sum of their places; who is equal, as the largest shape has them."""
    places: dict[str, int] = {}
    for answer in answers:
        for place, suit in enumerate(answer):
            places[suit.entry] = places.get(suit.entry, 0) + place
    return sorted(places, key=lambda name: places[name])


def _joined(name: str, answers: list[tuple[Suit, ...]]) -> Suit:
    """Idle is what is idle on every shape, and a limit the widest of all, where all have one."""
    suits = [suit for answer in answers for suit in answer if suit.entry == name]
    idle = frozenset.intersection(*(suit.idle for suit in suits))
    limited = set.intersection(*(set(suit.widest) for suit in suits))
    return Suit(name, suits[0].start, idle, {n: max(suit.widest[n] for suit in suits) for n in limited})
