"""The table of all candidates, sortable where scripts run and in order of speed where they do not. Pure."""

from kbtui.domain.event import RungCompleted
from kbtui.domain.measurement import Comparison
from kbtui.domain.rung import MEASURE
from kbtui.leaving.page.shown import SIGNS, Shown, standing
from kbtui.leaving.page.text import comparison, esc, ratio, tag
from kbtui.leaving.rows import FIXED_OPPONENTS
from kbtui.scheduler.state import Tried

#: Heading, whether it is a number.
_HEAD = (
    ("candidate", False),
    ("what it is", False),
    ("made by", False),
    ("from", False),
    ("rung", True),
    ("ended as", False),
    ("over first", True),
    ("against", False),
    ("ratio to it", True),
    ("why", False),
)


def candidates_section(shown: Shown) -> str:
    champion = shown.state.champion
    tried = sorted(shown.state.tried.values(), key=lambda t: (t.candidate.id != champion, *_by_speed(t)))
    heads = "".join(tag("th", esc(h), scope="col", class_="num" if n else None) for h, n in _HEAD)
    body = "".join(_row(shown, t) for t in tried)
    table = tag("table", tag("thead", tag("tr", heads)) + tag("tbody", body), class_="sortable", id="candidates")
    note = (
        "“Over first” is the speedup over the run's first kernel at the highest rung that timed it, chained through "
        "the comparisons that decided, with its 95 % interval where it met the first kernel there. "
        "“Ratio to it” is what decided that rung: above 1 the candidate is the faster. Click a heading to sort."
    )
    return tag("div", table, class_="scroll") + tag("p", esc(note), class_="note")


def _by_speed(tried: Tried) -> tuple[bool, bool, float, int]:
    """Those timed on all shapes first: a screen's score is of one shape, and not to be set beside theirs."""
    rung = scored_at(tried)
    return rung is None, (rung or 0) < MEASURE, -(tried.score or 0.0), tried.admitted_seq


def scored_at(tried: Tried) -> int | None:
    """The rung that its score is from."""
    return next((r.rung for r in _from_top(tried) if r.score is not None), None)


def _over_first(shown: Shown, tried: Tried) -> str:
    rung = scored_at(tried)
    if rung is None or tried.score is None:
        return ""
    direct = _direct(tried, shown.state.first)
    interval = f" ({direct.low:.3f}–{direct.high:.3f})" if direct else ""
    return ratio(tried.score) + interval + (" on one shape" if rung < MEASURE else "")


def _row(shown: Shown, tried: Tried) -> str:
    candidate, word = tried.candidate, standing(shown.state, tried)
    last = tried.last
    rival = _rival(tried)
    cells = (
        _cell(candidate.id, int(candidate.id[1:]) if candidate.id[1:].isdecimal() else candidate.id),
        _cell(candidate.summary, class_="summary"),
        tag("td", esc(candidate.origin.operator or candidate.origin.generator).replace("_", "_<wbr>")),
        _cell(" × ".join(candidate.parents)),
        _cell(last.rung if last else "", class_="num"),
        _cell(f"{SIGNS[word]} {word}", class_=f"state {word.replace(' ', '-')}"),
        _cell(_over_first(shown, tried), tried.score if tried.score is not None else -1, class_="num"),
        _cell(rival.against if rival else ""),
        _cell(comparison(rival), rival.ratio if rival else -1, class_="num"),
        _cell(last.reason if last else "", class_="why"),
    )
    return tag("tr", "".join(cells), id=candidate.id, class_=word.replace(" ", "-"))


def _cell(text: object, key: object = None, class_: str | None = None) -> str:
    return tag("td", esc(text), data_key=key, class_=class_)


def _from_top(tried: Tried) -> list[RungCompleted]:
    return [result for _, result in sorted(tried.results.items(), reverse=True)]


def _direct(tried: Tried, first: str | None) -> Comparison | None:
    """Its comparison with the first kernel at the rung its score is from, if it met it there."""
    scored = next((r for r in _from_top(tried) if r.score is not None), None)
    measurement = scored.outcome.measurement if scored else None
    found = (measurement.against("first") or measurement.against(first or "")) if measurement else None
    return found if found and found.high > found.low else None


def _rival(tried: Tried) -> Comparison | None:
    """The comparison with another candidate, else with the first kernel, that decided its last timed rung."""
    for result in _from_top(tried):
        measurement = result.outcome.measurement
        if measurement is not None and measurement.comparisons:
            others = [c for c in measurement.comparisons if c.against not in FIXED_OPPONENTS]
            return others[0] if others else measurement.against("first")
    return None
