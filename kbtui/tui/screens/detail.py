"""One candidate: what is known of it on the left; its source, gate report, samples, profile, prompt and reply."""

from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from kbtui.domain.candidate import ArtifactRef
from kbtui.tui.feed import Declared, News, NoText, Stored, Text
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Delta, Older
from kbtui.tui.safe import shown
from kbtui.tui.screens.keyed import TOO_SMALL, KeyedScreen
from kbtui.tui.screens.typing import viewer
from kbtui.tui.steering import Steering
from kbtui.tui.text import Line
from kbtui.tui.view.detail import detail_lines, readable
from kbtui.tui.view.diff import wrap_points
from kbtui.tui.view.documents import Match, gate_lines, matches_in, profile_lines, samples_lines
from kbtui.tui.view.header import header_line, header_view
from kbtui.tui.widgets.diff import coloured
from kbtui.tui.widgets.key_bar import KeyBar
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.lines import Lines
from kbtui.tui.widgets.paint import to_ascii
from kbtui.tui.widgets.status import status_line
from kbtui.tui.widgets.titles import set_titles

_SOURCE, _GATE, _SAMPLES, _PROFILE = "kernel.py", "gate", "samples", "profile"
_NARROW_BELOW = 100


@dataclass(frozen=True, slots=True)
class Page:
    """One page: a stored text by its key (a commit, or an artifact's SHA-256), or one made from the record."""

    name: str
    key: str = ""
    artifact: bool = False


class Detail(KeyedScreen):
    """The steering keys act on this candidate; ``]`` and ``[`` turn the pages, tab goes to the other pane."""

    AUTO_FOCUS = "#document"
    WHERE = "esc goes back to the run"
    HELP_PAGE = "detail"
    DEFAULT_CSS = """
    Detail #columns-detail { height: 1fr; }
    Detail .pane { width: 1fr; height: 1fr; }
    Detail #facts { width: 4fr; }
    Detail #document { width: 5fr; }
    Detail.narrow .pane { display: none; }
    Detail.narrow .pane.active { display: block; }
    """

    def __init__(self, glyphs: Glyphs, candidate: str) -> None:
        super().__init__(glyphs)
        self.candidate = candidate
        self.pages: list[Page] = []
        self.chosen = 0
        self._text = ""
        self._source: str | None = None
        self._copying = False
        self._logs: dict[str, tuple[Match, ...] | None] = {}

    def compose(self) -> ComposeResult:
        yield Lines(glyphs=self.g, id="header")
        with Horizontal(id="columns-detail"):
            yield Lines(glyphs=self.g, focusable=True, id="facts", classes="pane")
            yield LineList(glyphs=self.g, id="document", classes="pane active")
        yield Lines(glyphs=self.g, id="status")
        yield KeyBar(
            ("next_change", "next_pane", "copy", "pin", "prune", "promote", "submit", "back", "help"), id="keys"
        )
        yield Static(TOO_SMALL, id="small")

    def on_mount(self) -> None:
        app = viewer(self)
        self.steering = Steering(app, lambda: self.candidate)
        tried = app.moment.state.tried.get(self.candidate) if app.moment is not None else None
        if app.moment is not None and tried is not None:
            commit = tried.commit
            self.pages = [Page(_SOURCE, commit), Page(_GATE), Page(_SAMPLES), Page(_PROFILE)]
            app.feed.stored(app.moment.run, self.candidate)
        self.show()
        self._load()

    def hear(self, news: News) -> None:
        match news:
            case Delta() | Older() | Declared():
                self.show()
            case Text(key=key, text=text):
                self._text_arrived(key, text)
            case NoText(key=key):
                self.steering.source_missing(key)
                self._copying = self._copying and not (self.pages and self.pages[0].key == key)
            case Stored(candidate=candidate, refs=refs) if candidate == self.candidate:
                self._refs_arrived(refs)
            case _:
                pass

    def show(self) -> None:
        """What is known may have grown."""
        moment = viewer(self).moment
        if moment is None or self.candidate not in moment.state.tried:
            return
        header = self.query_one("#header", Lines)
        frozen = viewer(self).frozen
        header.show(lambda w, _h: [header_line(header_view(moment, self.g, frozen), w, self.g)])
        facts = self.query_one("#facts", Lines)
        set_titles(facts, f"Candidate {self.candidate}")
        facts.show(lambda w, _h: detail_lines(moment, self.candidate, w, self.g))
        if self.pages and not self.pages[self.chosen].key:
            self._lay_out()
        self.show_status()

    def show_status(self) -> None:
        app = viewer(self)
        self.query_one("#status", Lines).show(lambda w, _h: [status_line(app.moment, app.said, w, self.g)])

    def _refs_arrived(self, refs: tuple[ArtifactRef, ...]) -> None:
        """Prompt, reply and the like can be read too, and logs of samples."""
        known = {p.key for p in self.pages}
        logs = [r for r in refs if r.name.endswith(".json")]
        self._logs = {r.sha256: self._logs.get(r.sha256) for r in logs}
        texts = [r for r in refs if readable(r.name) and not r.name.endswith(".json") and r.sha256 not in known]
        self.pages += [Page(r.name, r.sha256, True) for r in texts]
        self._load()

    def _text_arrived(self, key: str, text: str) -> None:
        self.steering.source_arrived(key, text)
        if key in self._logs:
            self._logs[key] = matches_in(text)
            self._lay_out()
        if self.pages and self.pages[0].key == key:
            self._have_source(text)
        if self.pages and self.pages[self.chosen].key == key:
            self._show_text(text)

    def _load(self) -> None:
        """Show the chosen page, and ask for what it needs."""
        if not self.pages:
            return
        page, feed = self.pages[self.chosen], viewer(self).feed
        self._name_pages()
        if page.key:
            text = feed.text(page.key, page.artifact)
            if text is not None:
                self._show_text(text)
            return
        for key in [k for k, found in self._logs.items() if found is None] if page.name == _SAMPLES else []:
            text = feed.text(key, True)
            if text is not None:
                self._logs[key] = matches_in(text)
        self._lay_out()
        self.query_one("#document", LineList).scroll_home(animate=False)

    def _name_pages(self) -> None:
        """Every page by name, the chosen one between brackets."""
        names = [f"[{p.name}]" if i == self.chosen else f" {p.name} " for i, p in enumerate(self.pages)]
        place = f"{self.chosen + 1} of {len(self.pages)}"
        set_titles(self.query_one("#document"), "".join(names), place, self.g.ascii_only)

    def _show_text(self, text: str) -> None:
        self._text = text
        if self.pages[self.chosen].name == _SOURCE:
            self._have_source(text)
        self._lay_out()
        self.query_one("#document", LineList).scroll_home(animate=False)

    def _have_source(self, text: str) -> None:
        self._source = text
        if self._copying:
            self._copying = False
            viewer(self).copy_source(self.candidate, text)

    def _copy(self) -> None:
        """Once it is there: an empty file is nobody's kernel."""
        self._copying = bool(self.pages)
        text = self._source if self._source is not None else viewer(self).feed.text(self.pages[0].key)
        if text is not None:
            self._have_source(text)

    def _lay_out(self) -> None:
        """Draw the chosen page for the pane's width."""
        pane = self.query_one("#document", LineList)
        width = pane.scrollable_content_region.width
        if not self.pages or width <= 0:
            return
        page = self.pages[self.chosen]
        drawn = self._numbered(page, max(width - 6, 8)) if page.key else self._made(page, width)
        pane.set_rows([str(i) for i in range(len(drawn))], lambda i, _w: drawn[i])

    def _numbered(self, page: Page, width: int) -> list[Content | Line]:
        """A stored text with line numbers, wrapped."""
        text = to_ascii(shown(self._text)) if self.g.ascii_only else shown(self._text)
        rows = coloured(text) if page.name.endswith(".py") else [Content(r) for r in text.splitlines()]
        return [
            Content.assemble((f"{i if start == 0 else self.g.wrap:>4}  ", "$kb-dim"), row[start:end])
            for i, row in enumerate(rows, start=1)
            for start, end in wrap_points(row.plain, width)
        ]

    def _made(self, page: Page, width: int) -> list[Content | Line]:
        moment = viewer(self).moment
        if moment is None:
            return []
        tried = moment.state.tried.get(self.candidate)
        if tried is None:
            return []
        match page.name:
            case "gate":
                return list(gate_lines(moment, tried, self._source, width, self.g))
            case "samples":
                matches = [m for found in self._logs.values() for m in found or ()]
                return list(samples_lines(tried, matches, width, self.g))
            case _:
                return list(profile_lines(moment, tried, moment.problem, width, self.g))

    # Keys

    def action_steer(self, name: str) -> None:
        self.steering.do(name)

    def action_resume_engine(self) -> None:
        viewer(self).resume_engine()

    def action_look(self, name: str) -> None:
        match name:
            case "next_change" | "previous_change":
                self.turn(1 if name == "next_change" else -1)
            case "copy":
                self._copy()
            case _:
                self.not_here(name)

    def turn(self, by: int) -> None:
        self.chosen = (self.chosen + by) % max(len(self.pages), 1)
        self._load()

    def action_pane(self, number: int) -> None:
        """A page by its number."""
        if number > len(self.pages):
            viewer(self).say(f"this candidate has {len(self.pages)} pages; ] turns them")
            return
        if number - 1 == self.chosen:
            viewer(self).say(f"page {number}, {self.pages[self.chosen].name}, is shown already")
            return
        self.chosen = number - 1
        self._load()

    def action_step_pane(self, by: int) -> None:
        facts, document = self.query_one("#facts"), self.query_one("#document")
        to = document if facts.has_focus else facts
        facts.set_class(to is facts, "active")
        document.set_class(to is document, "active")
        self.call_after_refresh(to.focus)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < _NARROW_BELOW, "narrow")
        self.call_after_refresh(self._lay_out)
