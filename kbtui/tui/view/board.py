"""The rung queue: a column a rung with its counts and share of the spend, and the candidates as cards."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kbtui.domain.event import Decision
from kbtui.scheduler.state import RunState, Tried
from kbtui.tui import fmt
from kbtui.tui.draw import bar
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Line, Part, Role, columns, fit, line, spread, wrap
from kbtui.tui.view.standing import ROLES, Standing, glyph_of, number_of, rung_of, standing_of

#: The board lists what is in flight and this many that finished last; the history has them all.
_FINISHED_SHOWN = 300
_ORDER = {Standing.RUNNING: 0, Standing.WAITING: 1, Standing.UNFINISHED: 3}


@dataclass(frozen=True, slots=True)
class RungColumn:
    """One rung: who is there, what it decided, its part of what was spent and the most it may take (0 to 1).

    ``over``: the run has ended, and who is there will go no further.
    """

    index: int
    name: str
    waiting: int
    running: int
    seen: int
    promoted: int
    pruned: int
    rejected: int
    unverified: int
    champions: int
    share: float
    allowed: float
    over: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """One candidate on the board. ``steps`` is how far up the ladder it came, one sign a rung; ``score`` S(p, r)."""

    id: str
    summary: str
    operator: str
    score: str
    standing: Standing
    rung: int
    number: Part
    steps: str
    flags: str
    asked: str


@dataclass(frozen=True, slots=True)
class BoardView:
    columns: tuple[RungColumn, ...]
    cards: tuple[Card, ...]
    n_hidden: int = field(default=0)


def board_view(moment: Moment, g: Glyphs, query: str = "", marked: str | None = None) -> BoardView:
    state = moment.state
    chosen = [t for t in state.tried.values() if matches(moment, t, query)]
    rank = {t.candidate.id: _rank(moment, t) for t in chosen}
    chosen.sort(key=lambda t: rank[t.candidate.id])
    n_active = sum(1 for t in chosen if rank[t.candidate.id][0] < 2)
    shown = chosen[: n_active + _FINISHED_SHOWN]
    asked = {c.argument: c.kind.value for c in moment.pending}
    cards = tuple(card_of(moment, t, g, marked, asked.get(t.candidate.id, "")) for t in shown)
    return BoardView(rung_columns(moment), cards, moment.n_candidates - len(shown))


def _rank(moment: Moment, tried: Tried) -> tuple[int, int, int]:
    """Running first, then waiting from the top rung down (pinned ones first), then the latest finished, then the rest.

    When the run has ended its champion comes first: that is what a person came back for.
    """
    standing = standing_of(moment, tried)
    if standing is Standing.CHAMPION and moment.state.ended is not None:
        return -1, 0, 0
    group = _ORDER.get(standing, 2)
    touched = moment.touched.get(tried.candidate.id, tried.admitted_seq)
    if group >= 2:
        return group, 0, -touched
    return group, -10 * rung_of(moment, tried) - (5 if tried.pinned else 0), tried.admitted_seq


def matches(moment: Moment, tried: Tried, query: str) -> bool:
    """Every word of the filter is somewhere in what the card says: id, summary, operator, hint, state, ``r2``."""
    if not query.strip():
        return True
    c = tried.candidate
    said = (
        f"{c.id} {c.summary} {c.structure} {c.origin.generator} {c.origin.operator} {c.origin.hint or ''} "
        f"{standing_of(moment, tried).value} r{rung_of(moment, tried)} {'pinned' if tried.pinned else ''}"
    )
    if tried.last is not None:
        said += f" {tried.last.outcome.verdict.reason.value}"
    return all(word in said.lower() for word in query.lower().split())


def card_of(moment: Moment, tried: Tried, g: Glyphs, marked: str | None, asked: str) -> Card:
    standing, rung = standing_of(moment, tried), rung_of(moment, tried)
    flags = (g.pinned if tried.pinned else "") + (g.marked if tried.candidate.id == marked else "")
    number = number_of(tried, g)
    if standing is Standing.WAITING and not number[0]:
        number = (f"{fmt.ratio(tried.score, g)} vs first" if tried.score is not None else "not timed", Role.DIM)
    steps = _steps(moment.state, tried, standing, rung, g)
    c = tried.candidate
    score = fmt.ratio(tried.score, g) if tried.score is not None else ""
    problem = moment.state.started.problem if moment.state.started else ""
    operator = c.origin.operator.removeprefix(f"{problem}_").replace("_", " ")
    return Card(c.id, c.summary, operator, score, standing, rung, number, steps, flags, asked)


def _steps(state: RunState, tried: Tried, standing: Standing, rung: int, g: Glyphs) -> str:
    n_rungs = len(state.started.ladder) if state.started else 5
    out = [g.step_todo] * n_rungs
    for index, result in tried.results.items():
        if index < n_rungs:
            out[index] = g.step_done if result.decision in (Decision.PROMOTE, Decision.CROWN) else glyph_of(standing, g)
    if standing in (Standing.RUNNING, Standing.WAITING) and rung < n_rungs:
        out[rung] = g.step_here if standing is Standing.RUNNING else g.waiting
    return "".join(out)


def rung_columns(moment: Moment) -> tuple[RungColumn, ...]:
    """Counts per rung; ``seen`` counts completed evaluations."""
    state, running = moment.state, moment.running
    waiting, decided = moment.waiting, moment.decided
    total = sum(s.wall_s for s in state.spend.values())
    out = []
    for rung in state.started.ladder if state.started else ():
        i = rung.index
        here = 1 if running is not None and running[1] == i else 0
        spend = state.spend.get(i)
        out.append(
            RungColumn(
                index=i,
                name=rung.name,
                waiting=max(waiting.get(i, 0) - here, 0),
                running=here,
                seen=sum(n for (r, _), n in decided.items() if r == i),
                promoted=decided.get((i, Decision.PROMOTE), 0),
                pruned=decided.get((i, Decision.PRUNE), 0),
                rejected=decided.get((i, Decision.REJECT), 0),
                unverified=decided.get((i, Decision.SET_ASIDE), 0),
                champions=decided.get((i, Decision.CROWN), 0),
                share=spend.wall_s / total if spend and total > 0 else 0.0,
                allowed=rung.share,
                over=state.ended is not None,
            )
        )
    return tuple(out)


def column_lines(rungs: Sequence[RungColumn], width: int, height: int, g: Glyphs) -> list[Line]:
    """The columns side by side; where it is too narrow, a row a rung; where it is low, less."""
    if width < 11 * len(rungs):
        return _rung_rows(rungs, width, g)
    cell = cell_width(width, len(rungs))
    rows = [
        [(f"{r.index} {r.name}", _name_role(r)) for r in rungs],
        [(_share(r, cell, g), Role.ACCENT if r.running else Role.DIM) for r in rungs],
        [(_flow(r, cell, g), Role.STRONG if r.running else Role.PLAIN) for r in rungs],
        [(_seen(r, cell), Role.PLAIN) for r in rungs],
        [(_ended(r), Role.GOOD if r.champions else Role.DIM) for r in rungs],
        [_failed(r, cell, g) for r in rungs],
    ]
    shown = rows if height >= 16 else rows[:3]
    return [((" ", Role.PLAIN), *((fit(text, cell, g.ellipsis), role) for text, role in row)) for row in shown]


def cell_width(width: int, n_rungs: int) -> int:
    """Cells of one rung's column in a board of ``width``, which keeps one on the left and one for a scrollbar."""
    return max(width - 2, 1) // max(n_rungs, 1)


def _share(r: RungColumn, cell: int, g: Glyphs) -> str:
    """The rung's part of the spend as a bar and a number, beside the most it may take while others wait."""
    if not r.seen:
        return ""
    limit = f", cap {r.allowed:.0%}" if cell >= 17 and r.allowed < 1 else ""
    return f"{bar(r.share, max(min(cell - 6 - len(limit), 12), 3), g)} {r.share:.0%}{limit}"


def _seen(r: RungColumn, cell: int) -> str:
    if not r.seen:
        return ""
    return f"{r.seen} seen, {r.promoted} up" if cell >= 16 and r.promoted else f"{r.seen} seen"


def _failed(r: RungColumn, cell: int, g: Glyphs) -> Part:
    """Rejected is the candidates' failure, unverified ours or the machine's; both have their sign."""
    if cell >= 24:
        said = [f"{r.rejected} rejected"] * bool(r.rejected) + [f"{r.unverified} unverified"] * bool(r.unverified)
    else:
        said = [f"{g.rejected} {r.rejected}"] * bool(r.rejected) + [f"{g.unverified} {r.unverified}"] * bool(
            r.unverified
        )
    return ", ".join(said) if cell >= 24 else " ".join(said), Role.WARN if r.unverified else Role.DIM


def _name_role(r: RungColumn) -> Role:
    return Role.ACCENT if r.running else Role.TITLE


def _flow(r: RungColumn, cell: int, g: Glyphs) -> str:
    if r.running and r.waiting:
        return f"1 run, {r.waiting} wait" if cell >= 16 else f"{g.running} 1 {g.waiting} {r.waiting}"
    if r.running:
        return "1 running"
    return f"{r.waiting} {'left' if r.over else 'waiting'}" if r.waiting else "empty"


def _ended(r: RungColumn) -> str:
    if r.champions:
        return f"{r.champions} crowned"
    return f"{r.pruned} pruned" if r.pruned else ""


def _rung_rows(rungs: Sequence[RungColumn], width: int, g: Glyphs) -> list[Line]:
    wide = width >= 58
    head = [("rung", 10, False), ("wait", 4, True), ("run", 3, True), ("seen", 5, True), ("rej", 4, True)]
    head += [("unv", 3, True), ("prun", 4, True)] + ([("up", 4, True)] if wide else []) + [("spend", 6, True)]
    out: list[Line] = [((columns(head), Role.DIM),)]
    for r in rungs:
        cells = [(f"{r.index} {r.name}", 10, False), (str(r.waiting), 4, True), (str(r.running), 3, True)]
        cells += [(str(r.seen), 5, True), (str(r.rejected), 4, True), (str(r.unverified), 3, True)]
        cells += [(str(r.pruned), 4, True)]
        cells += [(str(r.promoted + r.champions), 4, True)] if wide else []
        cells += [(f"{r.share:.0%}" if r.seen else "", 6, True)]
        text = columns(cells)
        room = width - len(text) - 2
        drawn = f"  {bar(r.share, min(room, 24), g)}" if room >= 6 else ""
        out.append(((text, Role.STRONG if r.running else Role.PLAIN), (drawn, Role.ACCENT if r.running else Role.DIM)))
    return out


def card_line(card: Card, width: int, g: Glyphs) -> Line:
    """One card: sign, id, summary, its way up the ladder, state, number."""
    role = ROLES[card.standing]
    wide = width >= 70
    state = fit(card.standing.value, 10) + " " if width >= 62 else ""
    flags = f"{card.flags} " if card.flags else ""
    asked = f"{g.pending}{card.asked} " if card.asked else ""
    left = line((f"{glyph_of(card.standing, g)} ", role), (card.id, _id_role(card)), " ", (flags, Role.WARN))
    left += ((card.summary, Role.DIM if card.standing in (Standing.PRUNED, Standing.REJECTED) else Role.PLAIN),)
    rung = f"r{card.rung} " if wide else ""
    right = line((asked, Role.WARN), (card.steps, role), " ", (rung, Role.DIM), (state, role))
    return spread(left, (*right, (fit(card.number[0], 16, g.ellipsis), card.number[1])), width, g.ellipsis)


def _id_role(card: Card) -> Role:
    return ROLES[card.standing] if card.standing is not Standing.PRUNED else Role.DIM


def why_lines(moment: Moment, candidate: str | None, width: int, g: Glyphs, rows: int = 2) -> list[Line]:
    """Why the card under the cursor is where it is: one line of numbers, filled to exactly ``rows`` lines."""
    out = _why(moment, candidate, width, g, rows)
    return (out + [()] * rows)[:rows]


def _why(moment: Moment, candidate: str | None, width: int, g: Glyphs, rows: int) -> list[Line]:
    tried = moment.state.tried.get(candidate or "")
    if tried is None:
        return []
    ladder = moment.state.started.ladder if moment.state.started else ()
    last = tried.last
    if last is None:
        origin = tried.candidate.origin
        by = f"{origin.generator}: {origin.operator}" + (f", for hint {origin.hint}" if origin.hint else "")
        return wrap(f"{tried.candidate.id} not evaluated yet; made by {by}", width, Role.DIM, most=rows)
    name = ladder[last.rung].name if last.rung < len(ladder) else str(last.rung)
    cost = f"; cost {last.outcome.wall_s:.1f} s" + (f", GPU {last.outcome.gpu_s:.1f} s" if last.outcome.gpu_s else "")
    word = {"promote": "promoted from", "prune": "pruned at", "reject": "rejected at", "crown": "crowned at"}
    done = word.get(last.decision.value, "unverified at")
    return wrap(f"{tried.candidate.id} {done} {last.rung} {name}: {last.reason}{cost}", width, Role.PLAIN, most=rows)


def empty_board(width: int, query: str) -> list[Line]:
    if query:
        return [*wrap(f"No candidate matches “{query}”.", width, Role.DIM), (("Esc shows all again.", Role.DIM),)]
    return wrap(
        "Candidates appear here as they climb the ladder, from a compile to a confirmed champion. "
        "Press e to put in a kernel of your own, h to give the search a hint.",
        width,
        Role.DIM,
    )
