"""One run: the four panes side by side, or one at a time where there is little room."""

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.screen import Screen
from textual.widgets import Input, Static

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.keys import bindings
from kbtui.tui.moment import subject_candidate
from kbtui.tui.screens.detail import Detail
from kbtui.tui.screens.help import Help
from kbtui.tui.screens.typing import viewer
from kbtui.tui.steering import Steering
from kbtui.tui.view.base import Base, next_base, pair_of
from kbtui.tui.view.bottleneck import bottleneck_lines, bottleneck_title, bottleneck_view
from kbtui.tui.view.header import header_line, header_view
from kbtui.tui.view.history import Order, head_line, history_keys, history_line
from kbtui.tui.view.live import live_lines, live_title, live_view
from kbtui.tui.view.log import log_line, said
from kbtui.tui.widgets.board import Board
from kbtui.tui.widgets.diff import DiffPane
from kbtui.tui.widgets.key_bar import KeyBar
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.lines import Lines
from kbtui.tui.widgets.paint import to_ascii
from kbtui.tui.widgets.status import status_line
from kbtui.tui.widgets.tabs import TabLine
from kbtui.tui.widgets.titles import set_titles

PANES = ("rungs", "live", "bottleneck", "diff", "history", "log")
_NARROW_BELOW = (116, 28)
#: Cells a list of candidates keeps for its cursor and its scrollbar.
_ROW_MARGIN = 3


class Dashboard(Screen[None]):
    """``active`` is the pane with the focus, 1 to 6; history and log are only ever shown alone."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]
    AUTO_FOCUS = ""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(classes="ascii" if glyphs.ascii_only else "")
        self.g = glyphs
        self.active = 1
        self.zoomed = False
        self.selected: str | None = None
        self.marked: str | None = None
        self.base = Base.PARENT
        self.filter_text = ""
        self.by_gpu = False
        self.order = Order.NEWEST
        self._copying: str | None = None

    def compose(self) -> ComposeResult:
        yield Lines(glyphs=self.g, id="header")
        yield TabLine(id="tabs")
        with Container(id="panes"):
            yield Board(self.g, id="rungs", classes="pane")
            yield Lines(glyphs=self.g, focusable=True, id="live", classes="pane")
            yield Lines(glyphs=self.g, focusable=True, id="bottleneck", classes="pane")
            yield DiffPane(self.g, id="diff", classes="pane")
            with Vertical(id="history", classes="pane"):
                yield Lines(glyphs=self.g, id="history-head")
                yield LineList(cursor=True, glyphs=self.g, id="history-list")
            yield LineList(cursor=True, glyphs=self.g, id="log", classes="pane")
        yield Lines(glyphs=self.g, id="status")
        yield KeyBar(id="keys")
        yield Input(placeholder="words to look for: id, operator, hint, state, r2", id="filter", compact=True)
        yield Static("kbtui needs 60 columns and 16 rows.\nMake the window larger, or the font smaller.", id="small")

    def on_mount(self) -> None:
        self.steering = Steering(viewer(self), lambda: self.selected)
        self._arrange()

    # What is shown

    def show(self, beat: bool = False) -> None:
        """Draw the moment: everything, or after a heartbeat only what moves with time."""
        moment = viewer(self).moment
        if moment is None or not self.query("#status"):
            return
        frozen = viewer(self).frozen
        self.query_one("#header", Lines).show(
            lambda w, _h: [header_line(header_view(moment, self.g, frozen), w, self.g)]
        )
        if beat:
            return
        if self._seen("rungs") or self.active < 5:
            self.query_one(Board).show(moment, self.filter_text, self.marked)
        if self._seen("live"):
            self.show_live()
        if self._seen("history"):
            self._show_history()
        if self._seen("log"):
            self._show_log()
        self._show_selected()
        self.show_status()

    def _seen(self, pane: str) -> bool:
        return self.query_one(f"#{pane}").display

    def show_live(self) -> None:
        moment = viewer(self).moment
        if moment is not None:
            pane, view = self.query_one("#live", Lines), live_view(moment)
            set_titles(pane, self._title(f"2 {live_title(view)}"))
            pane.show(lambda w, h: live_lines(view, w, h, self.g, self.by_gpu))

    def _show_selected(self) -> None:
        """The panes that follow the cursor."""
        moment = viewer(self).moment
        if moment is None:
            return
        if self._seen("bottleneck"):
            view, pane = bottleneck_view(moment, self.selected, self.g), self.query_one("#bottleneck", Lines)
            set_titles(pane, self._title(f"3 {bottleneck_title(view)}"))
            pane.show(lambda w, _h: bottleneck_lines(view, w, self.g))
        if self._seen("diff"):
            self._show_diff()

    def _show_diff(self) -> None:
        app, pane = viewer(self), self.query_one(DiffPane)
        if app.moment is None:
            return
        pair = pair_of(app.moment, self.selected, self.base, self.marked)
        if pair.missing:
            pane.show_missing(pair.missing)
            set_titles(pane, "4 Diff")
            return
        left, right = app.feed.text(pair.left_commit), app.feed.text(pair.right_commit)
        if left is not None and right is not None:
            pane.show_pair(left, right)
        place = f"  ({pane.place})" if self.narrow and pane.place else ""
        set_titles(pane, self._title(f"4 {pair.title.replace('{arrow}', self.g.arrow)}{place}"), pane.place)

    def _show_history(self) -> None:
        moment = viewer(self).moment
        if moment is None:
            return
        rows = self.query_one("#history-list", LineList)
        self.query_one("#history-head", Lines).show(lambda w, _h: [head_line(w - _ROW_MARGIN)])
        keys = history_keys(moment, self.filter_text, self.order)
        rows.set_rows(keys, lambda i, w: history_line(moment, keys[i], w, self.g))
        count = f"/{self.filter_text}: {len(keys)}" if self.filter_text else f"{len(keys)} candidates"
        set_titles(self.query_one("#history"), f"5 History, {self.order.value}", self._title(count))

    def _show_log(self) -> None:
        moment = viewer(self).moment
        if moment is None:
            return
        words = self.filter_text.lower().split()
        events_ = list(reversed(moment.journal))
        if words:
            events_ = [e for e in events_ if all(word in said(moment, e).lower() for word in words)]
        log = self.query_one("#log", LineList)
        log.set_rows([str(e.seq) for e in events_], lambda i, _w: log_line(moment, events_[i], self.g))
        set_titles(log, "6 Log, newest first", f"{len(events_)} events")

    def show_status(self) -> None:
        app = viewer(self)
        self.query_one("#status", Lines).show(lambda w, _h: [status_line(app.moment, app.said, w, self.g)])

    def _title(self, text: str) -> str:
        return to_ascii(text) if self.g.ascii_only else text

    def text_arrived(self, key: str, text: str) -> None:
        """A source is there that the diff, a copy or the editor waits for."""
        self.steering.source_arrived(key, text)
        moment = viewer(self).moment
        if self._copying is not None and moment is not None and moment.state.tried[self._copying].commit == key:
            viewer(self).copy_source(self._copying, text)
            self._copying = None
        if self._seen("diff"):
            self._show_diff()

    # Layout

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()

    @property
    def narrow(self) -> bool:
        return self.app.size.width < _NARROW_BELOW[0] or self.app.size.height < _NARROW_BELOW[1]

    @property
    def single(self) -> bool:
        return self.narrow or self.zoomed or self.active > 4

    def _arrange(self) -> None:
        """Show the panes that belong on the screen, and put the focus on the active one."""
        self.set_class(self.narrow, "narrow")
        self.set_class(self.single, "single")
        for number, name in enumerate(PANES, start=1):
            pane = self.query_one(f"#{name}")
            pane.set_class(number == self.active, "active")
            pane.display = number == self.active if self.single else number < 5
        self.query_one(TabLine).choose(self.active)
        self.query_one(DiffPane).set_whole(self.single)
        self._focus_active()
        self.call_after_refresh(self.show)

    def _focus_active(self) -> None:
        if self.has_class("filtering"):
            return
        target = {"rungs": "#cards", "history": "#history-list"}.get(
            PANES[self.active - 1], f"#{PANES[self.active - 1]}"
        )
        self.query_one(target).focus()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A click on a pane makes it the active one."""
        for number, name in enumerate(PANES, start=1):
            if self.query_one(f"#{name}") in event.widget.ancestors_with_self and number != self.active:
                self.active = number
                self.query_one(TabLine).choose(number)

    # What the lists tell

    @on(LineList.Moved)
    def cursor_moved(self, event: LineList.Moved) -> None:
        moment, lines = viewer(self).moment, event.lines.id
        if moment is None or lines not in ("cards", "history-list", "log") or (lines == "cards" and self.active > 4):
            return
        self.selected = self._candidate_of_event(event.key) if lines == "log" else event.key
        if event.lines.id == "history-list" and event.key and not event.lines.following:
            self.query_one(Board).cards.move_to_key(event.key)
        self.query_one(Board).show_why(moment)
        self._show_selected()

    def _candidate_of_event(self, key: str | None) -> str | None:
        moment = viewer(self).moment
        if moment is None or key is None:
            return self.selected
        found = next((e for e in reversed(moment.journal) if str(e.seq) == key), None)
        return (subject_candidate(found) if found else None) or self.selected

    @on(LineList.Chosen)
    def row_chosen(self, event: LineList.Chosen) -> None:
        self.action_open_candidate()

    # Keys

    def action_steer(self, name: str) -> None:
        self.steering.do(name)

    def action_resume_engine(self) -> None:
        viewer(self).resume_engine()

    def action_pane(self, number: int) -> None:
        self.active = number
        self._arrange()

    def action_step_pane(self, by: int) -> None:
        last = 6 if self.narrow or self.zoomed else 4
        self.action_pane((min(self.active, last) - 1 + by) % last + 1)

    def action_zoom(self) -> None:
        if self.narrow:
            viewer(self).say("the window shows one pane at a time already; 1 to 6 choose it")
            return
        if self.active > 4:
            self.active = 1
        else:
            self.zoomed = not self.zoomed
        self._arrange()

    def action_back(self) -> None:
        """Out of the filter, then out of the full screen."""
        if self.has_class("filtering") or self.filter_text:
            self._close_filter("")
        elif self.zoomed or self.active > 4:
            self.zoomed = False
            self.active = 1 if self.active > 4 else self.active
            self._arrange()
        else:
            viewer(self).say("nothing to go back from; r lists the runs, q leaves (the search goes on)")

    def action_next_base(self) -> None:
        moment = viewer(self).moment
        if moment is None or self.selected is None:
            viewer(self).say("no candidate under the cursor to compare")
            return
        for _ in Base:
            self.base = next_base(self.base)
            if not pair_of(moment, self.selected, self.base, self.marked).missing:
                break
        viewer(self).say(f"diff against the {self.base.value}{' kernel' if self.base is Base.FIRST else ''}")
        if not self._seen("diff"):
            self.action_pane(4)
        self._show_diff()

    def action_mark(self) -> None:
        if self.selected is None:
            viewer(self).say("no candidate under the cursor to mark")
            return
        self.marked = None if self.marked == self.selected else self.selected
        viewer(self).say(f"{self.selected} is marked; d compares others with it" if self.marked else "the mark is gone")
        self.show()

    def action_change(self, by: int) -> None:
        if not self._seen("diff"):
            viewer(self).say("the diff is not on the screen; 4 shows it")
            return
        refused = self.query_one(DiffPane).go(by)
        if refused:
            viewer(self).say(refused)
        self._show_diff()

    def action_unified(self) -> None:
        if not self._seen("diff"):
            viewer(self).say("the diff is not on the screen; 4 shows it")
            return
        self.query_one(DiffPane).toggle_unified()

    def action_axis(self) -> None:
        moment = viewer(self).moment
        if moment is not None and moment.gpu_s <= 0:
            viewer(self).say("no GPU time was spent on this device; the curve is over wall time")
            return
        self.by_gpu = not self.by_gpu
        self.show_live()

    def action_order(self) -> None:
        if self.active != 5:
            viewer(self).say("o orders the history; 5 shows it")
            return
        orders = list(Order)
        self.order = orders[(orders.index(self.order) + 1) % len(orders)]
        self._show_history()

    def action_freeze(self) -> None:
        app = viewer(self)
        app.frozen = not app.frozen
        app.say(
            "the screen is held still; the search goes on, space follows it again" if app.frozen else "following again"
        )
        self.show()
        app.tick()

    def action_open_candidate(self) -> None:
        if self.selected is None:
            viewer(self).say("no candidate under the cursor to open")
            return
        self.app.push_screen(Detail(self.g, self.selected))

    def action_copy(self) -> None:
        app = viewer(self)
        tried = app.moment.state.tried.get(self.selected or "") if app.moment else None
        if tried is None:
            app.say("no candidate under the cursor to copy")
            return
        text = app.feed.text(tried.commit)
        if text is None:
            self._copying = tried.candidate.id
        else:
            app.copy_source(tried.candidate.id, text)

    def action_runs(self) -> None:
        viewer(self).list_runs()

    def action_help(self) -> None:
        self.app.push_screen(Help(PANES[self.active - 1], self.g))

    # Filter

    def action_filter(self) -> None:
        self.add_class("filtering")
        box = self.query_one("#filter", Input)
        box.value = self.filter_text
        box.focus()

    @on(Input.Changed, "#filter")
    def filter_changed(self, event: Input.Changed) -> None:
        if self.has_class("filtering"):
            self.filter_text = event.value
            self.show()

    @on(Input.Submitted, "#filter")
    def filter_done(self, event: Input.Submitted) -> None:
        self._close_filter(event.value)

    def _close_filter(self, text: str) -> None:
        self.filter_text = text
        self.remove_class("filtering")
        self._focus_active()
        self.show()
