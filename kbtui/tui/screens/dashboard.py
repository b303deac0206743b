"""One run: the four panes side by side, or one at a time where there is little room."""

from collections.abc import Iterable
from typing import Protocol, cast

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container
from textual.widgets import Input, Static

from kbtui.tui.feed import Declared, News, NoText, Text
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.look import Look
from kbtui.tui.moment import Delta, Moment, Older
from kbtui.tui.panes.bottleneck import BottleneckPane
from kbtui.tui.panes.live import LivePane
from kbtui.tui.reading import Beat
from kbtui.tui.screens.keyed import TOO_SMALL, KeyedScreen
from kbtui.tui.screens.looking import Looking
from kbtui.tui.screens.selecting import Selecting
from kbtui.tui.screens.typing import viewer
from kbtui.tui.steering import Steering
from kbtui.tui.view.base import pair_of
from kbtui.tui.view.header import header_line, header_view
from kbtui.tui.widgets.board import Board
from kbtui.tui.widgets.diff import DiffPane
from kbtui.tui.widgets.key_bar import KeyBar
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.lines import Lines
from kbtui.tui.widgets.one_line import OneLine
from kbtui.tui.widgets.status import status_line
from kbtui.tui.widgets.tabs import TabLine

PANES = ("rungs", "live", "bottleneck", "diff", "history", "lineage", "compare", "log")
#: The first so many stand side by side; the others are only ever shown alone.
_TOGETHER = 4
_NARROW_BELOW = (116, 28)


class Pane(Protocol):
    """What a pane of this screen is, beside a widget: it shows a moment as a look asks for it."""

    def show_moment(self, moment: Moment, look: Look) -> None: ...


class Dashboard(KeyedScreen):
    """``active`` is the number of the pane with the focus, from 1."""

    AUTO_FOCUS = ""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self.active = 1
        self.zoomed = False
        self.look = Look()
        self.selecting = Selecting(self)
        self._moved = 0

    def compose(self) -> ComposeResult:
        yield Lines(glyphs=self.g, id="header")
        yield TabLine(id="tabs")
        with Container(id="panes"):
            yield Board(self.g)
            yield LivePane(self.g)
            yield BottleneckPane(self.g)
            yield DiffPane(self.g)
        yield Lines(glyphs=self.g, id="status")
        yield KeyBar(id="keys")
        yield OneLine(placeholder="words to look for: id, operator, hint, state, r2", id="filter", compact=True)
        yield Static(TOO_SMALL, id="small")

    def on_mount(self) -> None:
        self.steering = Steering(viewer(self), lambda: self.look.selected)
        self.looking = Looking(self)
        self.selecting.lead_by("cards", "kanban")
        self._arrange()
        self.call_after_refresh(self._mount_others)

    async def _mount_others(self) -> None:
        """The panes that are only ever shown alone: made once the first four are on the screen."""
        from kbtui.tui.panes.compare import ComparePane
        from kbtui.tui.panes.history import HistoryPane
        from kbtui.tui.panes.lineage import LineagePane
        from kbtui.tui.panes.log import LogPane

        for panes in self.query("#panes"):  # none where the screen was left meanwhile
            await panes.mount_all(pane(self.g) for pane in (HistoryPane, LineagePane, ComparePane, LogPane))
        if self.query("#history-list"):
            self.selecting.lead_by("history-list", "lineage", "log")
            self._arrange()

    # What is shown

    def hear(self, news: News) -> None:
        match news:
            case Delta() | Older() | Declared():
                self.show()
            case Beat():
                self.show(beat=True)
            case Text(key=key, text=text):
                self._text_arrived(key, text)
            case NoText(key=key):
                self.steering.source_missing(key)
                self.looking.text_missing(key)
            case _:
                pass

    def show(self, beat: bool = False) -> None:
        """Draw the moment: everything, or after a heartbeat only what moves with time."""
        moment = viewer(self).moment
        if moment is None or not self.query("#status"):
            return
        frozen = viewer(self).frozen
        self.query_one("#header", Lines).show(
            lambda w, _h: [header_line(header_view(moment, self.g, frozen), w, self.g)]
        )
        self.query_one(KeyBar).show_search(moment.goes_on)
        if beat:
            return
        if not self.alone:  # its cursor leads the others
            board = self.query_one(Board)
            board.show_moment(moment, self.look)
            self.look.selected = board.cards.key
        self._show_panes(("live", "history", "lineage", "log"), moment)
        self.show_selected()
        self.show_status()

    def _show_panes(self, names: Iterable[str], moment: Moment) -> None:
        for name in names:
            if self.seen(name):
                cast(Pane, self.query_one(f"#{name}")).show_moment(moment, self.look)

    def seen(self, pane: str) -> bool:
        return any(found.display for found in self.query(f"#{pane}"))

    def show_selected(self) -> None:
        """The panes that follow the cursor."""
        moment = viewer(self).moment
        if moment is None:
            return
        self._show_panes(("bottleneck", "compare"), moment)
        if self.seen("diff"):
            self._show_diff()

    def _show_diff(self) -> None:
        app = viewer(self)
        if app.moment is not None:
            pair = pair_of(app.moment, self.look.selected, self.look.base, self.look.marked)
            self.query_one(DiffPane).show(pair, app.feed.text, self.narrow)

    def show_status(self) -> None:
        app = viewer(self)
        self.query_one("#status", Lines).show(lambda w, _h: [status_line(app.moment, app.said, w, self.g)])

    def _text_arrived(self, key: str, text: str) -> None:
        """A source is there that the diff, a copy or the editor waits for."""
        self.steering.source_arrived(key, text)
        self.looking.text_arrived(key, text)
        if self.seen("diff"):
            self._show_diff()

    # Layout

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()

    @property
    def narrow(self) -> bool:
        return self.app.size.width < _NARROW_BELOW[0] or self.app.size.height < _NARROW_BELOW[1]

    @property
    def alone(self) -> bool:
        """The active pane is one that is only ever shown alone."""
        return self.active > _TOGETHER

    @property
    def single(self) -> bool:
        return self.narrow or self.zoomed or self.alone

    def _arrange(self) -> None:
        """Show the panes that belong on the screen, and put the focus on the active one."""
        self.set_class(self.narrow, "narrow")
        self.set_class(self.single, "single")
        for number, name in enumerate(PANES, start=1):
            for pane in self.query(f"#{name}"):
                pane.set_class(number == self.active, "active")
                pane.display = number == self.active if self.single else number <= _TOGETHER
        self.query_one(TabLine).choose(self.active)
        self.query_one(DiffPane).set_whole(self.single)
        self.query_one(KeyBar).show_pane(PANES[self.active - 1])
        self._focus_active()
        self.call_after_refresh(self.show)

    def _focus_active(self) -> None:
        if self.has_class("filtering"):
            return
        match PANES[self.active - 1]:
            case "rungs":
                self.query_one(Board).cards.focus()
            case name:
                for pane in self.query("#history-list" if name == "history" else f"#{name}"):
                    pane.focus()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A click on a pane makes it the active one."""
        for number, name in enumerate(PANES, start=1):
            if number != self.active and any(w.id == name for w in event.widget.ancestors_with_self):
                self.active = number
                self.query_one(TabLine).choose(number)
                self.query_one(KeyBar).show_pane(name)

    # What the lists tell

    @on(LineList.Moved)
    def cursor_moved(self, event: LineList.Moved) -> None:
        if viewer(self).moment is not None and self.selecting.leads(event.lines):
            self._moved += 1
            self.call_after_refresh(self._show_moved, self._moved)

    def _show_moved(self, number: int) -> None:
        """What follows the cursor is drawn once the cursor is, and not for a row that it has left again."""
        if number == self._moved:
            self.show_selected()

    @on(LineList.Chosen)
    def row_chosen(self, event: LineList.Chosen) -> None:
        self.looking.open()

    # Keys

    def action_steer(self, name: str) -> None:
        self.steering.do(name)

    def action_look(self, name: str) -> None:
        self.looking.do(name)

    def action_resume_engine(self) -> None:
        viewer(self).resume_engine()

    def action_pane(self, number: int) -> None:
        self._turn_to(number)

    def _turn_to(self, number: int) -> None:
        """Another pane: its cursor goes to the candidate that keys are about, or keys to the one under its cursor."""
        self.active = number
        self._arrange()
        moment, name = viewer(self).moment, PANES[number - 1]
        if moment is None:
            return
        for lines in self.selecting.list_of(name):
            wanted = self.look.selected if name != "log" and not self.query_one(Board).cards.following else None
            self._show_panes((name,), moment)
            if wanted is not None:
                lines.move_to_key(wanted)
            self.selecting.select(lines)
        if number <= _TOGETHER:
            self.selecting.select(self.query_one(Board).cards)

    def action_step_pane(self, by: int) -> None:
        last = len(PANES) if self.narrow or self.zoomed else _TOGETHER
        self.action_pane((min(self.active, last) - 1 + by) % last + 1)

    def action_zoom(self) -> None:
        if self.narrow:
            viewer(self).say(f"the window shows one pane at a time already; 1 to {len(PANES)} choose it")
            return
        if self.alone:
            self._turn_to(1)
            return
        self.zoomed = not self.zoomed
        self._arrange()

    def action_back(self) -> None:
        """Out of the filter, then out of the full screen."""
        if self.has_class("filtering") or self.look.query:
            self._close_filter("")
        elif self.zoomed or self.alone:
            self.zoomed = False
            self._turn_to(1 if self.alone else self.active)
        else:
            viewer(self).say("nothing to go back from; r lists the runs, q leaves (the search goes on)")

    def action_help(self) -> None:
        self.open_help(PANES[self.active - 1])

    # Filter

    def open_filter(self) -> None:
        self.add_class("filtering")
        box = self.query_one("#filter", Input)
        box.value = self.look.query
        box.focus()

    @on(Input.Changed, "#filter")
    def filter_changed(self, event: Input.Changed) -> None:
        if self.has_class("filtering"):
            self.look.query = event.value
            self.show()

    @on(Input.Submitted, "#filter")
    def filter_done(self, event: Input.Submitted) -> None:
        self._close_filter(event.value)

    def _close_filter(self, text: str) -> None:
        self.look.query = text
        self.remove_class("filtering")
        self._focus_active()
        self.show()
