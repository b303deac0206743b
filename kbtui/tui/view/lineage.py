"""The candidates as a tree: who was made from whom, and how fast each turned out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kbtui.scheduler.state import Tried
from kbtui.tui import fmt
from kbtui.tui.draw import bar
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Line, Role, fit, line, spread, wrap
from kbtui.tui.view.board import matches
from kbtui.tui.view.standing import ROLES, Standing, glyph_of, number_of, standing_of

#: Deeper generations are drawn at this depth, with their number in front.
_DEEPEST = 14


@dataclass(frozen=True, slots=True)
class Node:
    """One candidate in the tree: ``stem`` is what is drawn before it, ``parent`` the one it hangs under."""

    id: str
    depth: int
    stem: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class Lineage:
    """The tree from top to bottom as it is shown. ``best`` is the highest score of all, 0 before any."""

    nodes: tuple[Node, ...]
    first_child: dict[str, str]
    best: float = 0.0


def lineage_of(moment: Moment, query: str, only_bests: bool, g: Glyphs) -> Lineage:
    """The shown candidates under the first of their parents; who matches a filter keeps the line that led to it."""
    tried = moment.state.tried
    kept = _kept(moment, query, only_bests)
    below: dict[str | None, list[str]] = {}
    for name in kept:
        parents = [p for p in tried[name].candidate.parents if p in kept]
        below.setdefault(parents[0] if parents else None, []).append(name)
    nodes: list[Node] = []
    stack: list[tuple[str, int, str, str | None, bool]] = [
        (name, 0, "", None, False) for name in reversed(below.get(None, []))
    ]
    while stack:
        name, depth, trunk, parent, last = stack.pop()
        joint = (g.last_branch if last else g.branch) if depth else ""
        nodes.append(Node(name, depth, _stem(trunk + joint, depth, g), parent))
        under = trunk + (("  " if last else g.trunk) if depth else "")
        children = below.get(name, [])
        stack.extend((c, depth + 1, under, name, c == children[-1]) for c in reversed(children))
    best = max((t.score for t in tried.values() if t.score is not None), default=0.0)
    return Lineage(tuple(nodes), {str(p): names[0] for p, names in below.items() if p is not None}, best)


def _stem(text: str, depth: int, g: Glyphs) -> str:
    return text if depth <= _DEEPEST else f"{depth} {g.ellipsis}{text[-2 * _DEEPEST + 6 :]}"


def _kept(moment: Moment, query: str, only_bests: bool) -> dict[str, None]:
    """The shown candidates in order of admission: all, or those chosen and everything they were made from."""
    tried = moment.state.tried
    if not query.strip() and not only_bests:
        return dict.fromkeys(tried)
    chosen = bests(moment) if only_bests else tried
    wanted = {name for name in chosen if name in tried and matches(moment, tried[name], query)}
    wanted = with_ancestors(tried, wanted)
    return dict.fromkeys(name for name in tried if name in wanted)


def bests(moment: Moment) -> frozenset[str]:
    """Who was the best once on a rung that times all shapes, who is on any, and who runs now."""
    now = {moment.running[0]} if moment.running else set()
    state = moment.state
    champion = {state.champion} if state.champion else set()
    return frozenset({s.candidate for s in moment.steps} | set(state.incumbents.values()) | champion | now)


def with_ancestors(tried: dict[str, Tried], names: Iterable[str]) -> set[str]:
    out: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in tried and name not in out:
            out.add(name)
            todo += tried[name].candidate.parents
    return out


def speed_role(score: float, best: float) -> Role:
    """How near a score is to the best one: within 1 %, within 10 %, within 30 %, or slower."""
    if best <= 0:
        return Role.PLAIN
    near = score / best
    steps = ((0.99, Role.SPEED_BEST), (0.9, Role.SPEED_NEAR), (0.7, Role.SPEED_FAIR))
    return next((role for limit, role in steps if near >= limit), Role.SPEED_SLOW)


def lineage_line(moment: Moment, lineage: Lineage, index: int, width: int, g: Glyphs) -> Line:
    """One candidate: its place in the tree, what it is, its score over the first kernel as a number and a bar."""
    node = lineage.nodes[index]
    tried = moment.state.tried[node.id]
    standing = standing_of(moment, tried)
    role = ROLES[standing]
    dim = standing in (Standing.PRUNED, Standing.REJECTED, Standing.UNVERIFIED)
    left = line((node.stem, Role.DIM), (f"{glyph_of(standing, g)} {node.id} ", role))
    left += ((tried.candidate.summary, Role.DIM if dim else Role.PLAIN),)
    two = tried.candidate.parents[1:]
    left += ((f" (and from {', '.join(two)})", Role.DIM),) if two else ()
    state = ((fit(standing.value, 11, g.ellipsis), role),) if width >= 76 else ()
    return spread(left, (*state, *_speed(tried, lineage.best, g)), width, g.ellipsis)


def _speed(tried: Tried, best: float, g: Glyphs) -> Line:
    if tried.score is None:
        return ((fit(f" {number_of(tried, g)[0]}", 15, g.ellipsis), Role.DIM),)
    role = speed_role(tried.score, best)
    return line((f"{fmt.ratio(tried.score, g):>8} ", role), (bar(tried.score / best if best else 0.0, 6, g), role))


def empty_lineage(width: int, query: str, only_bests: bool) -> Sequence[Line]:
    what = "Each candidate appears here under the one it was made from, with its speed over the first kernel."
    return nothing_listed(what, width, query, only_bests)


def nothing_listed(what: str, width: int, query: str, only_bests: bool) -> list[Line]:
    """Why a list of candidates is empty, and which key changes that. ``what`` will appear in it, as a sentence."""
    if query:
        return wrap(f"No candidate matches “{query}”. Esc shows all again.", width, Role.DIM)
    if only_bests:
        return wrap("Nothing has been the best of its rung yet. i shows every candidate.", width, Role.DIM)
    first = "The first comes when the engine has read the problem's kernel; e submits one of yours."
    return wrap(f"{what} {first}", width, Role.DIM)
