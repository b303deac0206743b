"""Which checks each stage of the gate runs, on a GPU and under the interpreter. Pure.

Stage 1: the rung's shape, two small hidden shapes, three distributions, no-op replay. Stage 2: all timed shapes and
all distributions. Stage 4: all hidden shapes; and every shape again, once the process is seconds old. Under the
interpreter proxies stand for the timed shapes, hidden shapes must be small, and the later stages take every shape and
every distribution but not their product, for it is slow.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from kbtui.domain.problem import ProblemSpec, Shape, ShapeRole
from kbtui.domain.verdict import Proof

N_SCREEN_DISTRIBUTIONS = 3
N_SCREEN_HIDDEN = 2
N_NUDGES = 2
#: Those that run the kernel.
STAGES = (1, 2, 4)
INTERPRETER_MAX_ELEMENTS = 40_000


class CheckKind(StrEnum):
    """VALUES compares one call; REPEAT calls again on the same inputs, NUDGE on the last ones partly overwritten in
    place; LATE does as NUDGE after many calls that nobody watched; NO_OP replays with launches that do nothing. AGED
    does as VALUES, on new values of shapes met before, in a process that has lived for a while."""

    VALUES = "values"
    REPEAT = "repeat"
    NUDGE = "nudge"
    LATE = "late"
    AGED = "aged"
    NO_OP = "no_op"


@dataclass(frozen=True, slots=True)
class Check:
    """One call of the candidate on fresh inputs. ``seed`` makes them; it never reaches the candidate."""

    kind: CheckKind
    shape: Shape
    distribution: str
    seed: int

    @property
    def where(self) -> str:
        return f"{self.shape.name}, {self.distribution}"


def stages_to_run(passed_stage: int, gate_stage: int) -> tuple[int, ...]:
    """Stages that run the kernel and are still to be passed, in order."""
    return tuple(s for s in STAGES if passed_stage < s <= gate_stage)


def plan(spec: ProblemSpec, stage: int, seed: int, proof: Proof) -> tuple[Check, ...]:
    """Checks of one stage, cheapest shapes first so that a wrong candidate costs little."""
    interpreted = proof is Proof.INTERPRETER
    match stage:
        case 1 if interpreted:
            checks = _screen_interpreted(spec)
        case 1:
            checks = _screen(spec)
        case 2 if interpreted:
            checks = _in_turn(_by_size(spec.shapes_of(ShapeRole.PROXY)), spec.distributions)
        case 2:
            checks = _repeated(_cross(_by_size(spec.shapes_of(ShapeRole.TUNE)), spec.distributions))
        case 4 if interpreted:
            hidden, proxies = _hidden(spec, interpreted), _by_size(spec.shapes_of(ShapeRole.PROXY))
            checks = [*_in_turn(hidden, spec.distributions), *_aged([*hidden[-1:], *proxies[:1]], spec.distributions)]
        case 4:
            hidden = _hidden(spec, interpreted)
            # The first call after a rest is on a shape that the process has met, and whose answers tell it apart.
            aged = _aged([*reversed(hidden), *_by_size(spec.shapes_of(ShapeRole.TUNE))], spec.distributions)
            checks = [*_repeated(_cross(hidden, spec.distributions)), *aged]
        case _:
            checks = []
    return tuple(replace(c, seed=_seed(seed, stage, i)) for i, c in enumerate(checks))


def n_elements(shape: Shape) -> int:
    """Product of the shape's dims: a size to order shapes by, not a tensor's."""
    return math.prod(size for _, size in shape.dims)


def _screen(spec: ProblemSpec) -> list[Check]:
    distributions = spec.distributions[:N_SCREEN_DISTRIBUTIONS]
    small = _typical_hidden(_hidden(spec, interpreted=False))
    timed = spec.timed_at(1) or spec.shapes_of(ShapeRole.TUNE)
    probe = small[-1] if small else timed[0]
    once = distributions[0]
    return [
        *_cross(small, distributions),
        Check(CheckKind.VALUES, probe, once, 0),
        Check(CheckKind.REPEAT, probe, once, 0),
        *[Check(CheckKind.NUDGE, probe, once, 0)] * N_NUDGES,
        Check(CheckKind.LATE, probe, once, 0),
        Check(CheckKind.NO_OP, probe, once, 0),
        *_cross(timed[:1], distributions),
        Check(CheckKind.REPEAT, timed[0], distributions[-1], 0),
    ]


def _screen_interpreted(spec: ProblemSpec) -> list[Check]:
    """Each shape and each distribution once, one shape twice: the interpreter takes up to 2 s a call."""
    proxies = _by_size(spec.shapes_of(ShapeRole.PROXY)) or _by_size(spec.shapes_of(ShapeRole.TUNE))[:1]
    shapes = [*_typical_hidden(_hidden(spec, interpreted=True)), *proxies[:2]]
    names = spec.distributions[:N_SCREEN_DISTRIBUTIONS]
    checks = [Check(CheckKind.VALUES, s, names[i % len(names)], 0) for i, s in enumerate(shapes)]
    probe = proxies[0]
    extra = [n for n in names if n not in {c.distribution for c in checks}] or [names[0]]
    checks += [Check(CheckKind.VALUES, probe, name, 0) for name in extra]
    return [
        *checks,
        *[Check(CheckKind.NUDGE, probe, extra[-1], 0)] * N_NUDGES,
        Check(CheckKind.LATE, probe, extra[-1], 0),
        Check(CheckKind.NO_OP, probe, names[0], 0),
    ]


def _typical_hidden(hidden: list[Shape]) -> list[Shape]:
    """The smallest, where edge cases live, and the next that is a little larger and shows indexing errors."""
    if len(hidden) <= N_SCREEN_HIDDEN:
        return hidden
    return [hidden[0], hidden[min(2, len(hidden) - 1)]]


def _hidden(spec: ProblemSpec, interpreted: bool) -> list[Shape]:
    hidden = _by_size(spec.shapes_of(ShapeRole.HIDDEN))
    if not interpreted:
        return hidden
    largest_proxy = max((n_elements(s) for s in spec.shapes_of(ShapeRole.PROXY)), default=INTERPRETER_MAX_ELEMENTS)
    return [s for s in hidden if n_elements(s) <= min(INTERPRETER_MAX_ELEMENTS, 2 * largest_proxy)]


def _by_size(shapes: Iterable[Shape]) -> list[Shape]:
    return sorted(shapes, key=n_elements)


def _cross(shapes: Iterable[Shape], distributions: Iterable[str]) -> list[Check]:
    return [Check(CheckKind.VALUES, s, d, 0) for s in shapes for d in tuple(distributions)]


def _repeated(checks: list[Check]) -> list[Check]:
    """The last once more, on the same inputs."""
    return [*checks, *(replace(c, kind=CheckKind.REPEAT) for c in checks[-1:])]


def _aged(shapes: list[Shape], distributions: tuple[str, ...]) -> list[Check]:
    """Each shape once more, the distributions in turn."""
    return [Check(CheckKind.AGED, s, distributions[i % len(distributions)], 0) for i, s in enumerate(shapes)]


def _in_turn(shapes: list[Shape], distributions: tuple[str, ...]) -> list[Check]:
    """Every shape and every distribution, at least two of each shape, without the whole product."""
    each = max(2, math.ceil(len(distributions) / max(1, len(shapes))))
    picked = (
        (s, distributions[(i * each + j) % len(distributions)]) for i, s in enumerate(shapes) for j in range(each)
    )
    return [Check(CheckKind.VALUES, s, d, 0) for s, d in dict.fromkeys(picked)]


def _seed(seed: int, stage: int, index: int) -> int:
    digest = hashlib.sha256(f"{seed}/{stage}/{index}".encode()).digest()
    return int.from_bytes(digest[:6], "big")
