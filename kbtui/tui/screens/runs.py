"""The workspace's runs."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from kbtui.domain.wording import counted
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.keys import bindings
from kbtui.tui.screens.help import Help
from kbtui.tui.screens.typing import viewer
from kbtui.tui.source import EngineStatus, RunRow
from kbtui.tui.text import Role, line, told_line
from kbtui.tui.view.runs import no_runs, run_line, runs_head
from kbtui.tui.widgets.key_bar import KeyBar
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.lines import Lines


class Runs(Screen[None]):
    """Enter opens the run under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("help"), Binding("enter", "open_candidate", "open", show=False)]
    AUTO_FOCUS = "#runs-list"
    DEFAULT_CSS = """
    Runs #runs-head { height: 1; margin: 1 2 0 2; }
    Runs #runs-list { height: 1fr; margin: 0 2; }
    Runs #no-runs { height: 1fr; margin: 1 2; display: none; }
    Runs.empty #runs-head, Runs.empty #runs-list { display: none; }
    Runs.empty #no-runs { display: block; }
    """

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(classes="ascii" if glyphs.ascii_only else "")
        self.g = glyphs

    def compose(self) -> ComposeResult:
        yield Lines(glyphs=self.g, id="header")
        yield Lines(glyphs=self.g, id="runs-head")
        yield LineList(cursor=True, glyphs=self.g, id="runs-list")
        yield Lines(glyphs=self.g, id="no-runs")
        yield Lines(glyphs=self.g, id="status")
        yield KeyBar(("open", "help", "leave"), id="keys")
        yield Static("kbtui needs 60 columns and 16 rows.\nMake the window larger, or the font smaller.", id="small")

    def show(self, rows: tuple[RunRow, ...], engine: EngineStatus | None) -> None:
        self.set_class(not rows, "empty")
        title = line((" kbtui ", Role.TITLE), f" {counted(len(rows), 'run')} in this workspace")
        self.query_one("#header", Lines).show(lambda _w, _h: [title])
        self.query_one("#no-runs", Lines).show(lambda w, _h: no_runs(w))
        self.query_one("#runs-head", Lines).show(lambda w, _h: [((f"  {runs_head(w)[0][0]}", Role.DIM),)])
        runs = self.query_one("#runs-list", LineList)
        runs.set_rows([r.run for r in rows], lambda i, _w: run_line(rows[i], engine, self.g))

    def show_status(self) -> None:
        said = viewer(self).said
        self.query_one("#status", Lines).show(lambda w, _h: [told_line(said, w, self.g.ellipsis)])

    @on(LineList.Chosen)
    def run_chosen(self) -> None:
        self.action_open_candidate()

    def action_open_candidate(self) -> None:
        chosen = self.query_one("#runs-list", LineList).key
        if chosen is None:
            viewer(self).say("no run to open; start one: kbtui run PROBLEM")
        else:
            viewer(self).open_run(chosen)

    def action_help(self) -> None:
        self.app.push_screen(Help("runs", self.g))
