"""What a decision rests on, in numbers: S by its terms, the rival, the interval, what was spent and saved. Pure."""

from statistics import fmean

from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.event import Basis, Decision, Spent
from kbtui.domain.measurement import Comparison
from kbtui.domain.rung import DEFAULT_LADDER
from kbtui.scheduler.score import score_at, score_from, score_words, term_words
from kbtui.scheduler.state import RunState, Tried


def basis_of(
    state: RunState,
    candidate: str,
    rung: int,
    outcome: RungOutcome,
    decision: Decision,
    speed: float | None,
    comparison: Comparison | None,
) -> Basis:
    """Of a decision on an outcome that is not in the state yet.

    ``speed`` over the run's first kernel; ``comparison`` is the one with the rung's incumbent, if there was one.
    """
    tried = state.tried.get(candidate)
    named = state.first if comparison and comparison.against == "first" else comparison and comparison.against
    rival = state.tried.get(named or "")
    saved, unpriced = _above(state, rung) if decision is Decision.PRUNE else (Spent(), ())
    return Basis(
        score=score_from(rung, outcome, speed),
        rival=comparison.against if comparison else None,
        rival_score=score_at(rival, rung) if rival else None,
        ratio=comparison.ratio if comparison else None,
        low=comparison.low if comparison else None,
        high=comparison.high if comparison else None,
        spent=_spent(tried, outcome),
        saved=saved,
        unpriced=unpriced,
    )


def _spent(tried: Tried | None, outcome: RungOutcome) -> Spent:
    outcomes = [*(r.outcome for r in tried.results.values()), outcome] if tried else [outcome]
    return Spent(sum(o.wall_s for o in outcomes), sum(o.gpu_s for o in outcomes))


def _above(state: RunState, rung: int) -> tuple[Spent, tuple[int, ...]]:
    """What those who passed the rungs above paid there on the average, in all; and the rungs where nobody has yet."""
    wall_s = gpu_s = 0.0
    unpriced: list[int] = []
    ladder = state.started.ladder if state.started else DEFAULT_LADDER
    for above in range(rung + 1, len(ladder)):
        passed = [t.results[above].outcome for t in state.tried.values() if above in t.results]
        passed = [outcome for outcome in passed if outcome.verdict.ok]
        if passed:
            wall_s += fmean(o.wall_s for o in passed)
            gpu_s += fmean(o.gpu_s for o in passed)
        else:
            unpriced.append(above)
    return Spent(wall_s, gpu_s), tuple(unpriced)


def basis_words(basis: Basis) -> tuple[str, ...]:
    """Lines for a person: S beside the rival's, then what was spent and saved; nothing where nothing was."""
    lines = (_score_words(basis), _cost_words(basis))
    return tuple(line for line in lines if line)


def _score_words(basis: Basis) -> str:
    """``S +0.038 = speed +0.040, …; c0031 has S +0.012``. The interval over it stands in the reason."""
    if basis.score is None:
        return ""
    rival = f"; {basis.rival} has S {term_words(basis.rival_score.total)}" if basis.rival_score else ""
    return f"{score_words(basis.score)}{rival}"


def _cost_words(basis: Basis) -> str:
    """``spent so far 1.9 s (GPU 1.8 s); saved 27.0 s (GPU 26.1 s), as the rungs above cost others``."""
    if not basis.spent.wall_s:
        return ""
    told = f"spent so far {_seconds(basis.spent)}"
    if basis.saved.wall_s:
        told += f"; saved {_seconds(basis.saved)}, as the rungs above cost others"
    if basis.unpriced:
        told += f"; the cost of rung {', '.join(map(str, basis.unpriced))} is not known yet"
    return told


def _seconds(spent: Spent) -> str:
    return f"{spent.wall_s:.1f} s (GPU {spent.gpu_s:.1f} s)" if spent.gpu_s else f"{spent.wall_s:.1f} s"
