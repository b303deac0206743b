"""The workspace's runs as rows."""

from kbtui.tui import fmt
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.source import EngineStatus, RunRow
from kbtui.tui.text import Line, Role, columns, fit
from kbtui.tui.view.header import short_device

_HEAD = [
    ("", 2, False),
    ("run", 20, False),
    ("clock", 9, False),
    ("state", 17, False),
    ("best over first", 15, True),
    ("candidates", 10, True),
]
_TAIL = [("spent", 7, True), ("device", 16, False), ("problem", 10, False)]


def runs_head(width: int) -> Line:
    return ((columns([*_HEAD, *_TAIL])[:width], Role.DIM),)


def run_line(row: RunRow, engine: EngineStatus | None, g: Glyphs, marked: bool = False) -> Line:
    """One run: what it searched, where, how far it came, and whether an engine works on it now."""
    here = engine is not None and engine.alive and engine.run == row.run
    state = f"ended: {row.end_reason}" if row.end_reason else "searching" if here else "no engine"
    sign = g.ended if row.end_reason else g.alive if here else g.lost
    role = Role.GOOD if here else Role.DIM if row.end_reason else Role.WARN
    best = f"{fmt.ratio(row.best_score, g)} {row.best_candidate or ''}" if row.best_score is not None else g.dash
    modelled = row.clock == "modelled"
    clock = (f"{row.clock.upper() if modelled else row.clock:<9} ", Role.WARN if modelled else Role.DIM)
    where = [(fit(short_device(row.device), 16, g.ellipsis), 16, False), (row.problem, 10, False)]
    numbers = [(best, 15, True), (str(row.n_candidates), 10, True), (fmt.clock(row.wall_s), 7, True)]
    return (
        (f"{sign}{g.marked if marked else ' '} ", role),
        (f"{fit(row.run, 20, g.ellipsis)} ", Role.STRONG),
        clock,
        (f"{fit(state, 17, g.ellipsis)} ", role),
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
