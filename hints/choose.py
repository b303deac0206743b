"""From a diagnosis to the few hints worth following now. Pure."""

from collections import Counter
from collections.abc import Iterable

from kbtui.domain.profile import Diagnosis
from kbtui.domain.proposal import Hint, Phase, Space

#: Coarse to fine: what to decide first is what the rest depends on.
_COARSE_ORDER = (Space.ALGORITHM, Space.TILING, Space.MEMORY, Space.PIPELINING, Space.LAUNCH, Space.PRECISION)
_NARROW_ORDER = (Space.TILING, Space.LAUNCH, Space.PIPELINING, Space.MEMORY, Space.PRECISION, Space.ALGORITHM)

#: A hint that names the family is worth this much more than one that is for all.
_FAMILY_BONUS = 0.2
#: Each failure halves what a hint is worth; each gain gives it half of what it had on top.
_FAILURE, _GAIN = 0.5, 1.5


def choose_hints(
    hints: Iterable[Hint],
    family: str | None,
    diagnosis: Diagnosis | None,
    phase: Phase,
    tried_outcomes: Iterable[tuple[str, bool]],
    limit: int,
) -> tuple[Hint, ...]:
    """The ``limit`` best hints, best first.

    A hint's worth is the diagnosis's weight on the bottlenecks it answers, more if it is for this very family, less
    for every time it was tried and did not help. Ties go coarse to fine (in the narrow phase: constants first), then as
    the files have them.

    Args:
        tried_outcomes: (hint id, whether the candidate made from it got better than its parent), one a trial.
    """
    outcomes = Counter(tried_outcomes)
    order = _COARSE_ORDER if phase is Phase.COARSE else _NARROW_ORDER
    fitting = [h for h in hints if not h.families or family in h.families]

    def worth(hint: Hint) -> float:
        answered = _answered(hint, diagnosis)
        bonus = _FAMILY_BONUS if hint.families else 0.0
        tried = _FAILURE ** outcomes[hint.id, False] * _GAIN ** outcomes[hint.id, True]
        return (answered + bonus) * tried

    ranked = sorted(fitting, key=lambda h: (-worth(h), order.index(h.space)))
    return tuple(ranked[: max(limit, 0)])


def _answered(hint: Hint, diagnosis: Diagnosis | None) -> float:
    """Weight of the findings a hint answers; without a diagnosis every hint answers a little."""
    if diagnosis is None:
        return 0.1
    return sum(f.weight for f in diagnosis.findings if f.bottleneck.value in hint.answers)
