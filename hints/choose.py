"""From a diagnosis to the few hints worth following now. Pure."""

from collections import Counter
from collections.abc import Iterable

from kbtui.domain.profile import Diagnosis
from kbtui.domain.proposal import Hint, Phase, Space

#: Coarse to fine: what to decide first is what the rest depends on.
_COARSE_ORDER = (Space.ALGORITHM, Space.TILING, Space.MEMORY, Space.PIPELINING, Space.LAUNCH, Space.PRECISION)
_NARROW_ORDER = (Space.TILING, Space.LAUNCH, Space.PIPELINING, Space.MEMORY, Space.PRECISION, Space.ALGORITHM)

#: A hint that answers something and names the family is worth this much more than one that is for all.
_FAMILY_BONUS = 0.2
#: What further findings that it answers add, beside the heaviest: a hint is for one thing first.
_FURTHER = 0.3
#: What is left of a hint's worth where nothing but a language model can carry it out.
_BY_HAND = 0.8
#: Each failure halves what a hint is worth; each gain gives it half of what it had on top.
_FAILURE, _GAIN = 0.5, 1.5


def choose_hints(
    hints: Iterable[Hint],
    family: str | None,
    diagnosis: Diagnosis | None,
    phase: Phase,
    tried_outcomes: Iterable[tuple[str, bool]],
    limit: int,
    arch: int | None = None,
) -> tuple[Hint, ...]:
    """The ``limit`` best hints, best first.

    A hint's worth is the diagnosis's weight on the heaviest bottleneck it answers and part of the others', more if it
    is for this very family, less for every time it was tried and did not help. Ties go coarse to fine (in the narrow
    phase: constants first), then as the files have them.

    Args:
        arch: the chip's compute capability, 90 for 9.0; hints for later ones are left out.
        tried_outcomes: (hint id, whether the candidate made from it got better than its parent), one a trial.
    """
    outcomes = Counter(tried_outcomes)
    order = _COARSE_ORDER if phase is Phase.COARSE else _NARROW_ORDER
    fitting = [h for h in hints if _fits(h, family, arch)]

    def worth(hint: Hint) -> float:
        answered = _answered(hint, diagnosis)
        bonus = _FAMILY_BONUS if hint.families and answered > 0 else 0.0
        by_hand = 1.0 if hint.operators else _BY_HAND
        tried = _FAILURE ** outcomes[hint.id, False] * _GAIN ** outcomes[hint.id, True]
        return (answered + bonus) * by_hand * tried

    ranked = sorted(fitting, key=lambda h: (-worth(h), order.index(h.space)))
    return tuple(ranked[: max(limit, 0)])


def _fits(hint: Hint, family: str | None, arch: int | None) -> bool:
    return (not hint.families or family in hint.families) and (arch is None or hint.since_arch <= arch)


def _answered(hint: Hint, diagnosis: Diagnosis | None) -> float:
    """Weight of the findings a hint answers; without a diagnosis every hint answers a little."""
    if diagnosis is None:
        return 0.1
    weights = sorted((f.weight for f in diagnosis.findings if f.bottleneck.value in hint.answers), reverse=True)
    return weights[0] + _FURTHER * sum(weights[1:]) if weights else 0.0
