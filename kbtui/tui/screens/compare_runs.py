"""Two runs beside each other: their facts and curves, and what changed between their best kernels."""

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.widgets import Static

from kbtui.tui.feed import Folded, News, Text
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.screens.keyed import TOO_SMALL, KeyedScreen
from kbtui.tui.screens.typing import viewer
from kbtui.tui.text import Line, Role, line, told_line
from kbtui.tui.view.base import Base, Pair
from kbtui.tui.view.compare_runs import best_tried, curves_lines, run_lines
from kbtui.tui.widgets.diff import DiffPane
from kbtui.tui.widgets.key_bar import KeyBar
from kbtui.tui.widgets.lines import Lines
from kbtui.tui.widgets.titles import set_titles

_PANES = ("facts", "curves", "diff")
_NARROW_BELOW = (116, 28)


class CompareRuns(KeyedScreen):
    """``left`` is the marked run. Tab goes round the panes; t turns the curves to GPU time; ] [ move in the diff."""

    AUTO_FOCUS = "#facts"
    WHERE = "esc goes back to the list of runs"
    HELP_PAGE: ClassVar[str] = "compare_runs"
    DEFAULT_CSS = """
    CompareRuns #run-panes { height: 1fr; layout: grid; grid-size: 2 2; grid-rows: 1fr 1fr; grid-columns: 1fr 1fr; }
    CompareRuns #facts { row-span: 2; }
    CompareRuns.narrow #run-panes { layout: vertical; }
    CompareRuns.narrow .pane { display: none; height: 1fr; }
    CompareRuns.narrow .pane.active { display: block; }
    """

    def __init__(self, glyphs: Glyphs, left: str, right: str) -> None:
        super().__init__(glyphs)
        self.names = (left, right)
        self.moments: dict[str, Moment] = {}
        self.by_gpu = False
        self.active = 0

    def compose(self) -> ComposeResult:
        yield Lines(glyphs=self.g, id="header")
        with Container(id="run-panes"):
            yield Lines(glyphs=self.g, focusable=True, id="facts", classes="pane active")
            yield Lines(glyphs=self.g, focusable=True, id="curves", classes="pane")
            yield DiffPane(self.g, 3)
        yield Lines(glyphs=self.g, id="status")
        yield KeyBar(("next_pane", "axis", "next_change", "back", "help"), id="keys")
        yield Static(TOO_SMALL, id="small")

    def on_mount(self) -> None:
        for name in self.names:
            viewer(self).feed.fold(name)
        self.show()

    def hear(self, news: News) -> None:
        match news:
            case Folded(moment=moment) if moment.run in self.names:
                self.moments[moment.run] = moment
                self.show()
            case Text():
                self._show_diff()
            case _:
                pass

    @property
    def pair(self) -> tuple[Moment, Moment] | None:
        """Both runs, once both are read."""
        left, right = (self.moments.get(name) for name in self.names)
        return (left, right) if left is not None and right is not None else None

    def show(self) -> None:
        title = line((" kbtui ", Role.TITLE), f" {self.names[0]} beside {self.names[1]}")
        self.query_one("#header", Lines).show(lambda _w, _h: [title])
        pair, by_gpu = self.pair, self.by_gpu
        waiting: list[Line] = [((f"reading {' and '.join(self.names)} {self.g.ellipsis}", Role.DIM),)]
        self.query_one("#facts", Lines).show(lambda w, _h: run_lines(*pair, w, self.g) if pair else waiting)
        self.query_one("#curves", Lines).show(
            lambda w, h: curves_lines(pair, by_gpu, w, h, self.g) if pair else waiting
        )
        set_titles(self.query_one("#facts"), "1 The two runs")
        set_titles(self.query_one("#curves"), "2 Best so far", "t: wall time" if by_gpu else "t: GPU time")
        self._show_diff()
        self.show_status()

    def _show_diff(self) -> None:
        if self.pair is None:
            return
        best = [best_tried(m) for m in self.pair]
        pane, narrow = self.query_one(DiffPane), self.has_class("narrow")
        if best[0] is None or best[1] is None:
            missing = "What changed between the two best kernels appears here once both runs have timed one."
            pane.show(Pair(Base.CHAMPION, missing=missing), viewer(self).feed.text, narrow)
            return
        left, right = ((t.candidate.id, t.commit) for t in best if t is not None)
        title = f"{self.names[0]} {left[0]} {{arrow}} {self.names[1]} {right[0]}"
        shown = Pair(Base.CHAMPION, left[0], right[0], left[1], right[1], title)
        pane.show(shown, viewer(self).feed.text, narrow)

    def show_status(self) -> None:
        said = viewer(self).said
        self.query_one("#status", Lines).show(lambda w, _h: [told_line(said, w, self.g.ellipsis)])

    # Keys

    def action_look(self, name: str) -> None:
        match name:
            case "axis":
                self.by_gpu = not self.by_gpu
                self.show()
            case "unified":
                refused = self.query_one(DiffPane).toggle_unified()
                if refused:
                    viewer(self).say(refused)
            case "next_change" | "previous_change":
                refused = self.query_one(DiffPane).go(1 if name == "next_change" else -1)
                if refused:
                    viewer(self).say(refused)
                self._show_diff()
            case _:
                self.not_here(name)

    def action_pane(self, number: int) -> None:
        if number > len(_PANES):
            viewer(self).say("1 the two runs, 2 best so far, 3 what changed between the two best kernels")
            return
        if number - 1 == self.active:
            viewer(self).say("it has the focus already; tab goes to the next")
            return
        self._activate(number - 1)

    def action_step_pane(self, by: int) -> None:
        self._activate((self.active + by) % len(_PANES))

    def _activate(self, index: int) -> None:
        self.active = index
        for i, name in enumerate(_PANES):
            self.query_one(f"#{name}").set_class(i == index, "active")
        self.query_one(f"#{_PANES[index]}").focus()
        self.call_after_refresh(self.show)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < _NARROW_BELOW[0] or event.size.height < _NARROW_BELOW[1], "narrow")
        self.call_after_refresh(self.show)
