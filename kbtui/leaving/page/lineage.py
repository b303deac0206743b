"""Who was made from whom, as a tree of nested lists; children that came to nothing are folded into one line. Pure."""

from collections import defaultdict
from collections.abc import Sequence

from kbtui.domain.rung import MEASURE
from kbtui.leaving.page.candidates import scored_at
from kbtui.leaving.page.shown import SIGNS, Shown, standing
from kbtui.leaving.page.text import esc, ratio, tag
from kbtui.scheduler.state import RunState, Tried

Children = dict[str | None, list[Tried]]


def lineage_section(shown: Shown) -> str:
    state = shown.state
    children = children_of(state)
    on_line = ancestors(state, shown.best.candidate.id)
    tree = tag("ul", _branch(state, children, children[None], on_line), class_="tree")
    depth = len(on_line)
    line = " → ".join(reversed(on_line))
    said = f"The best kernel's line of descent: {line}." if depth > 1 else "The best kernel was made from nothing else."
    return tag("p", esc(said)) + tag("div", tree, class_="scroll")


def children_of(state: RunState) -> Children:
    """By the first parent; None for those without one."""
    found: Children = defaultdict(list)
    for tried in state.tried.values():
        parent = tried.candidate.parents[0] if tried.candidate.parents else None
        found[parent if parent in state.tried else None].append(tried)
    return found


def ancestors(state: RunState, candidate: str) -> list[str]:
    """The candidate, its first parent, and so on."""
    line: list[str] = []
    while candidate in state.tried and candidate not in line:
        line.append(candidate)
        parents = state.tried[candidate].candidate.parents
        candidate = parents[0] if parents else ""
    return line


def _branch(state: RunState, children: Children, members: Sequence[Tried], line: Sequence[str]) -> str:
    """Depth first without recursion in Python's stack: a lineage may be longer than that."""
    out: list[str] = []
    waiting: list[Tried | str] = [*reversed(_ordered(members, line))]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        below = children[item.candidate.id]
        kept = [t for t in below if _worth_showing(t, children, line)]
        folded = [t for t in below if t not in kept]
        out.append(f"<li>{_node(state, item, line)}")
        if below:
            out.append("<ul>")
            waiting += [f"{_fold(state, folded)}</ul></li>", *reversed(_ordered(kept, line))]
        else:
            out.append("</li>")
    return "".join(out)


def _ordered(members: Sequence[Tried], line: Sequence[str]) -> list[Tried]:
    return sorted(members, key=lambda t: (t.candidate.id not in line, -(t.score or 0.0), t.admitted_seq))


def _worth_showing(tried: Tried, children: Children, line: Sequence[str]) -> bool:
    reached = max(tried.results, default=0)
    return tried.candidate.id in line or bool(children[tried.candidate.id]) or reached > MEASURE


def _fold(state: RunState, folded: Sequence[Tried]) -> str:
    if not folded:
        return ""
    best = max((t.score for t in folded if t.score is not None), default=None)
    told = f"{len(folded)} more that went no further" + (f", the best at {ratio(best)}" if best else "")
    inner = "".join(tag("li", _node(state, t, ())) for t in folded)
    return tag("li", tag("details", tag("summary", esc(told)) + tag("ul", inner)))


def _node(state: RunState, tried: Tried, line: Sequence[str]) -> str:
    candidate, word = tried.candidate, standing(state, tried)
    cross = f" × {candidate.parents[1]}" if len(candidate.parents) > 1 else ""
    told = f"{SIGNS[word]} {candidate.id}{cross}"
    screened = " on one shape" if (scored_at(tried) or 0) < MEASURE else ""
    score = tag("b", esc(ratio(tried.score))) + screened if tried.score is not None else ""
    on = " on-line" if candidate.id in line else ""
    link = tag("a", esc(told), href=f"#{candidate.id}")
    made = tag("span", esc(candidate.origin.operator), class_="by")
    inner = f"{link} {score} {esc(candidate.summary)} {made}"
    return tag("span", inner, class_=f"node {word.replace(' ', '-')}{on}", title=word)
