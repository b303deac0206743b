"""The workspace's runs."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kbtui.domain.wording import counted
from kbtui.tui.feed import Listing, News
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.screens.keyed import TOO_SMALL, KeyedScreen
from kbtui.tui.screens.typing import viewer
from kbtui.tui.source import EngineStatus, RunRow
from kbtui.tui.text import Role, line, told_line
from kbtui.tui.view.runs import no_runs, run_line, runs_head
from kbtui.tui.widgets.key_bar import KeyBar
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.lines import Lines


class Runs(KeyedScreen):
    """Enter opens the run under the cursor; m marks one, c compares the other with it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "look('open')", "open", show=False)]
    AUTO_FOCUS = "#runs-list"
    WHERE = "it is for one run: enter opens the one under the cursor"
    HELP_PAGE = "runs"
    DEFAULT_CSS = """
    Runs #runs-head { height: 1; margin: 1 2 0 2; }
    Runs #runs-list { height: 1fr; margin: 0 2; }
    Runs #no-runs { height: 1fr; margin: 1 2; display: none; }
    Runs.empty #runs-head, Runs.empty #runs-list { display: none; }
    Runs.empty #no-runs { display: block; }
    """

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self.marked: str | None = None
        self._rows: tuple[RunRow, ...] = ()
        self._engine: EngineStatus | None = None

    def compose(self) -> ComposeResult:
        yield Lines(glyphs=self.g, id="header")
        yield Lines(glyphs=self.g, id="runs-head")
        yield LineList(cursor=True, glyphs=self.g, id="runs-list")
        yield Lines(glyphs=self.g, id="no-runs")
        yield Lines(glyphs=self.g, id="status")
        yield KeyBar(("open", "mark", "compare", "help", "leave"), id="keys")
        yield Static(TOO_SMALL, id="small")

    def hear(self, news: News) -> None:
        if isinstance(news, Listing):
            self.show(news.rows, news.engine)

    def show(self, rows: tuple[RunRow, ...], engine: EngineStatus | None) -> None:
        self._rows, self._engine = rows, engine
        self.set_class(not rows, "empty")
        title = line((" kbtui ", Role.TITLE), f" {counted(len(rows), 'run')} in this workspace")
        self.query_one("#header", Lines).show(lambda _w, _h: [title])
        self.query_one("#no-runs", Lines).show(lambda w, _h: no_runs(w))
        self.query_one("#runs-head", Lines).show(lambda w, _h: [((f"  {runs_head(w - 2)[0][0]}", Role.DIM),)])
        runs, marked = self.query_one("#runs-list", LineList), self.marked
        runs.set_rows([r.run for r in rows], lambda i, w: run_line(rows[i], engine, self.g, rows[i].run == marked, w))

    def show_status(self) -> None:
        said = viewer(self).said
        self.query_one("#status", Lines).show(lambda w, _h: [told_line(said, w, self.g.ellipsis)])

    @on(LineList.Chosen)
    def run_chosen(self) -> None:
        self.action_look("open")

    def action_look(self, name: str) -> None:
        chosen = self.query_one("#runs-list", LineList).key
        if name not in ("open", "mark", "compare"):
            return self.not_here(name)
        if chosen is None:
            return viewer(self).say("there is no run here yet; start one: kbtui run PROBLEM")
        match name:
            case "open":
                viewer(self).open_run(chosen)
            case "mark":
                self._mark(chosen)
            case _:
                self._compare(chosen)
        return None

    def _mark(self, run: str) -> None:
        self.marked = None if self.marked == run else run
        viewer(self).say(f"{run} is marked; move to another, c compares the two" if self.marked else "the mark is gone")
        self.show(self._rows, self._engine)

    def _compare(self, run: str) -> None:
        if self.marked is None or self.marked == run:
            return viewer(self).say("mark another run first: move to it and press m")
        from kbtui.tui.screens.compare_runs import CompareRuns

        self.app.push_screen(CompareRuns(self.g, self.marked, run))
        return None

    def action_runs(self) -> None:
        viewer(self).say("this is the list of runs; enter opens the one under the cursor")

    def action_back(self) -> None:
        viewer(self).say("nothing to go back from; q leaves")
