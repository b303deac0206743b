"""The hints that answer a kernel's diagnosis, tried and not tried yet, and what became of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from hints.choose import choose_hints
from kbtui.domain.profile import Diagnosis
from kbtui.domain.proposal import Phase
from kbtui.scheduler.state import Tried
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment, children_of
from kbtui.tui.text import Line, Role, fit, line, longest_fitting
from kbtui.tui.view.standing import ROLES, Standing, glyph_of, hint_word, standing_of

#: Hints that were not tried yet are named up to so many.
_UNTRIED_SHOWN = 3
_LABEL = 12


@dataclass(frozen=True, slots=True)
class Answer:
    """A hint that answers the diagnosis, or an operator that was tried, and what became of it.

    ``standing`` is None where it was not tried on this kernel yet.
    """

    name: str
    candidate: str
    standing: Standing | None
    words: str


def answers_of(moment: Moment, candidate: str, diagnosis: Diagnosis | None, g: Glyphs) -> tuple[Answer, ...]:
    """The newest child of each hint, or operator that had no hint, then what is not tried yet of the diagnosis."""
    newest: dict[str, Tried] = {}
    for child in children_of(moment.state, candidate):
        origin = child.candidate.origin
        name = (origin.hint or origin.operator).replace("_", " ")
        kept = newest.get(name)
        if kept is None or (child.score or 0) >= (kept.score or 0) or child.waiting_at is not None:
            newest[name] = child
    tried = [
        Answer(name, t.candidate.id, standing_of(moment, t), hint_word(moment, t, g)) for name, t in newest.items()
    ]
    return (*tried, *_untried(moment, diagnosis, set(newest)))


def _untried(moment: Moment, diagnosis: Diagnosis | None, tried_names: set[str]) -> list[Answer]:
    """The advice that answers the diagnosis best and was not followed from this kernel yet."""
    if diagnosis is None:
        return []
    found = {f.bottleneck.value for f in diagnosis.findings}
    family = moment.state.opened.report.family if moment.state.opened else None
    ranked = choose_hints(moment.hints, family, diagnosis, Phase.COARSE, (), len(moment.hints))
    fitting = [h.id.replace("_", " ") for h in ranked if found & set(h.answers)]
    names = [name for name in fitting if name not in tried_names][:_UNTRIED_SHOWN]
    return [Answer(name, "", None, "not tried yet") for name in names]


def answer_lines(answers: Sequence[Answer], width: int, g: Glyphs) -> list[Line]:
    if not answers:
        return [line(("hints       none tried on it yet; h adds one", Role.DIM))]
    out: list[Line] = []
    for i, a in enumerate(answers):
        name_room = max(min(width - 12 - 27, 30), 14)
        stands = f"{glyph_of(a.standing, g)} {a.candidate}" if a.standing is not None else g.dot
        words = (a.words, a.words.partition(",")[0])
        said = f"{stands} {longest_fitting(words, width - _LABEL - name_room - 4 - len(stands))}"
        out.append(
            line(
                (f"{'hints' if i == 0 else '':<12}", Role.DIM),
                (f"{fit(a.name, name_room, g.ellipsis)} {g.arrow} ", Role.PLAIN if a.standing else Role.DIM),
                (said, ROLES[a.standing] if a.standing is not None else Role.DIM),
            )
        )
    return out
