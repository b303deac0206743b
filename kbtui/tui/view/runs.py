"""The workspace's runs as rows."""

from kbtui.tui import fmt
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.source import EngineStatus, RunRow
from kbtui.tui.text import Line, Role, columns, fit
from kbtui.tui.view.header import short_device

_HEAD = [("", 2, False), ("run", 22, False), ("problem", 16, False), ("device", 18, False), ("clock", 8, False)]
_TAIL = [("candidates", 10, True), ("best over first", 15, True), ("spent", 8, True), ("state", 18, False)]


def runs_head(width: int) -> Line:
    return ((columns([*_HEAD, *_TAIL])[:width], Role.DIM),)


def run_line(row: RunRow, engine: EngineStatus | None, g: Glyphs) -> Line:
    """One run: what it searched, where, how far it came, and whether an engine works on it now."""
    here = engine is not None and engine.alive and engine.run == row.run
    state = f"ended: {row.end_reason}" if row.end_reason else "searching" if here else "no engine"
    sign = g.ended if row.end_reason else g.alive if here else g.lost
    role = Role.GOOD if here else Role.DIM if row.end_reason else Role.WARN
    best = f"{fmt.ratio(row.best_score, g)} {row.best_candidate or ''}" if row.best_score is not None else g.dash
    cells = [(row.run, 22, False), (row.problem, 16, False), (fit(short_device(row.device), 18, g.ellipsis), 18, False)]
    numbers = [(str(row.n_candidates), 10, True), (best, 15, True), (fmt.clock(row.wall_s), 8, True)]
    clock = (f"{row.clock.upper() if row.clock == 'modelled' else row.clock:<8} ", Role.WARN if row.clock == "modelled" else Role.DIM)
    return ((f"{sign}  ", role), (columns(cells) + " ", Role.PLAIN), clock, (columns(numbers) + " ", Role.STRONG), (state, role))


def no_runs(width: int) -> list[Line]:
    return [
        (("Runs of this workspace appear here.", Role.PLAIN),),
        (),
        (("Start one from the shell:  ", Role.DIM), ("kbtui run PROBLEM", Role.KEY)),
        (("for instance               ", Role.DIM), ("kbtui run sample_kernels/softmax --budget 10m", Role.KEY)),
    ]
