"""The top of the page: the result with interval and clock, how it was verified, the times by shape. Pure."""

from collections.abc import Sequence

from kbtui.leaving.page.roofline import Placed
from kbtui.leaving.page.shown import Shown
from kbtui.leaving.page.text import esc, interval, seconds, tag, us, us_range
from kbtui.leaving.verified import how_verified
from kbtui.result import OVER, RunResult, Speedup, headline
from kbtui.scheduler.shrinkage import shrinkage_words


def headline_section(shown: Shown, result: RunResult) -> str:
    started = shown.state.started
    assert started is not None
    over = result.over("eager") or result.over("first")
    big = tag("p", _big(over) if over else esc(headline(result)), class_="big" if over else "big words")
    clock = tag("span", esc(result.clock), class_=f"badge {result.clock}")
    confirmed = _confirmed(result, shown)
    spent = f"{seconds(result.wall_s)} of wall time and {seconds(result.gpu_s)} of GPU time"
    told = f"{result.n_candidates} candidates in {spent}"
    lines = [
        tag("p", f"{clock} on {esc(result.device)}{' · ' + esc(confirmed) if confirmed else ''}"),
        _best_line(shown, result),
        *(tag("p", esc(f"Screened at {shrinkage_words(s)}."), class_="note") for s in result.shrinkage),
        tag("p", f"Verified {esc(how_verified(shown.best).sentence)}."),
        tag("p", esc(f"{told}. {_ended(result)}"), class_="note"),
    ]
    return big + _others(result, over) + "".join(lines)


def _big(speedup: Speedup) -> str:
    low_high = f" ({speedup.low:.2f}–{speedup.high:.2f})" if speedup.high > speedup.low else ""
    number = tag("b", f"{speedup.ratio:.2f}×")
    return f"{number}{tag('small', esc(low_high))} over {esc(OVER[speedup.over])}"


def _others(result: RunResult, shown: Speedup | None) -> str:
    rest = [s for s in result.speedups if s is not shown]
    said = ", ".join(f"{interval(s.ratio, s.low, s.high)} over {OVER[s.over]}" for s in rest)
    return tag("p", esc(f"and {said}"), class_="second") if said else ""


def _confirmed(result: RunResult, shown: Shown) -> str:
    if result.champion is None:
        return ""
    if not result.confirmed:
        return "not yet confirmed in fresh processes"
    last = shown.best.results[max(shown.best.results)].outcome.measurement
    n = max((c.n_processes for c in last.comparisons), default=0) if last else 0
    return f"confirmed in {n} fresh processes" if n > 1 else "confirmed on every shape"


def _best_line(shown: Shown, result: RunResult) -> str:
    candidate = shown.best.candidate
    who = "The champion" if result.confirmed else "The best so far" if result.champion else "The first kernel"
    origin = candidate.origin
    made = "the problem's own" if origin.generator == "seed" else f"made by {origin.generator} {origin.operator}"
    return tag("p", f"{esc(who)} is {tag('b', esc(candidate.id))}: {esc(candidate.summary)} ({esc(made)}).")


def _ended(result: RunResult) -> str:
    return f"It ended by {result.ended}." if result.ended else "It has not ended."


def shapes_table(result: RunResult, placed: Sequence[Placed]) -> str:
    """Times with their intervals, speedups with theirs, and how much of the problem's bound is reached."""
    if not result.shapes:
        return ""
    bounds = {p.shape: p for p in placed}
    over = sorted(result.speedups, key=lambda s: list(OVER).index(s.over))
    head = ["shape", "best kernel", *(f"over {OVER[s.over]}" for s in over), "bound", "of the bound"]
    rows = []
    for shape in result.shapes:
        ratios = [next((interval(r, a, b) for n, r, a, b in s.per_shape if n == shape.shape), "") for s in over]
        at = bounds.get(shape.shape)
        reached = _meter(at.bound_us / at.best_us) if at and at.best_us > 0 else ""
        cells = [us_range(shape.champion_us, shape.low_us, shape.high_us), *ratios, us(at.bound_us) if at else ""]
        tds = "".join(tag("td", esc(c), class_="num") for c in cells) + tag("td", reached, class_="num")
        rows.append(tag("tr", tag("th", esc(shape.shape), scope="row") + tds))
    heads = "".join(tag("th", esc(h), scope="col", class_=None if i == 0 else "num") for i, h in enumerate(head))
    return tag("div", tag("table", tag("thead", tag("tr", heads)) + tag("tbody", "".join(rows))), class_="scroll")


def _meter(part: float) -> str:
    width = f"width:{min(100.0, 100 * part):.0f}%"
    return tag("span", tag("i", "", class_="part promoted", style=width), class_="bar small") + f" {100 * part:.0f} %"
