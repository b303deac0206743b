"""The workspace's runs as rows."""

from kbtui.tui import fmt
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.source import EngineStatus, RunRow
from kbtui.tui.text import Line, Role, columns, fit
from kbtui.tui.view.header import short_device

_TAIL = [("spent", 7, True), ("device", 16, False), ("problem", 10, False)]
#: Cells from which on a row has room for a whole name and for why a run has ended.
_WHOLE_FROM = 74


def _cells(width: int) -> tuple[int, int, int]:
    """For a run's name, its state and its best, which is to be read in any width."""
    return (20, 17, 15) if width >= _WHOLE_FROM else (14, 9, 12)


def runs_head(width: int) -> Line:
    name, state, best = _cells(width)
    head = [("", 2, False), ("run", name, False), ("clock", 9, False), ("state", state, False)]
    head += [("best over first" if width >= _WHOLE_FROM else "over first", best, True), ("candidates", 10, True)]
    return ((columns([*head, *_TAIL])[:width], Role.DIM),)


def run_line(
    row: RunRow, engine: EngineStatus | None, g: Glyphs, marked: bool = False, width: int = _WHOLE_FROM
) -> Line:
    """One run: what it searched, where, how far it came, and whether an engine works on it now."""
    name_cells, state_cells, best_cells = _cells(width)
    here = engine is not None and engine.alive and engine.run == row.run
    why = f": {row.end_reason}" if width >= _WHOLE_FROM else ""
    state = f"ended{why}" if row.end_reason else "searching" if here else "no engine"
    sign = g.ended if row.end_reason else g.alive if here else g.lost
    role = Role.GOOD if here else Role.DIM if row.end_reason else Role.WARN
    best = f"{fmt.ratio(row.best_score, g)} {row.best_candidate or ''}" if row.best_score is not None else g.dash
    modelled = row.clock == "modelled"
    clock = (f"{row.clock.upper() if modelled else row.clock:<9} ", Role.WARN if modelled else Role.DIM)
    where = [(fit(short_device(row.device), 16, g.ellipsis), 16, False), (row.problem, 10, False)]
    numbers = [(best, best_cells, True), (str(row.n_candidates), 10, True), (fmt.clock(row.wall_s), 7, True)]
    return (
        (f"{sign}{g.marked if marked else ' '} ", role),
        (f"{fit(row.run, name_cells, g.ellipsis)} ", Role.STRONG),
        clock,
        (f"{fit(state, state_cells, g.ellipsis)} ", role),
        (f"{columns(numbers)} ", Role.PLAIN),
        (columns(where), Role.DIM),
    )


def no_runs(width: int) -> list[Line]:
    return [
        (("Runs of this workspace appear here.", Role.PLAIN),),
        (),
        (("Start one from the shell:  ", Role.DIM), ("kbtui run PROBLEM", Role.KEY)),
        (("for instance               ", Role.DIM), ("kbtui run sample_kernels/softmax --budget 10m", Role.KEY)),
    ]
