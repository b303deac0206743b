"""One candidate: what is known of it on the left, its source, prompt and reply on the right."""

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from kbtui.domain.candidate import ArtifactRef
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.keys import bindings
from kbtui.tui.screens.help import Help
from kbtui.tui.screens.typing import viewer
from kbtui.tui.view.detail import detail_lines, readable
from kbtui.tui.view.diff import wrap_points
from kbtui.tui.view.header import header_line, header_view
from kbtui.tui.widgets.diff import coloured
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.lines import Lines
from kbtui.tui.widgets.status import status_line
from kbtui.tui.widgets.titles import set_titles


class Detail(Screen[None]):
    """``documents`` are (name, key of its text); the first is the source."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("help", "copy"),
        Binding("escape,backspace", "close", "back", show=False),
        Binding("right_square_bracket,n", "document(1)", "next", show=False),
        Binding("left_square_bracket,N", "document(-1)", "previous", show=False),
        Binding("tab,shift+tab", "other_pane", "other pane", show=False),
    ]
    AUTO_FOCUS = "#document"

    def __init__(self, glyphs: Glyphs, candidate: str) -> None:
        super().__init__(classes="ascii" if glyphs.ascii_only else "")
        self.g, self.candidate = glyphs, candidate
        self.documents: list[tuple[str, str, bool]] = []
        self.chosen = 0
        self._shown = ""

    def compose(self) -> ComposeResult:
        yield Lines(glyphs=self.g, id="header")
        with Horizontal(id="columns-detail"):
            yield Lines(glyphs=self.g, focusable=True, id="facts", classes="pane")
            yield LineList(glyphs=self.g, id="document", classes="pane active")
        yield Lines(glyphs=self.g, id="status")
        yield Static(
            Content.from_markup(
                " [bold $text-accent]][/] [bold $text-accent]\\[[/] source, prompt, reply  "
                "[bold $text-accent]tab[/] other pane  "
                "[bold $text-accent]y[/] copy  [bold $text-accent]?[/] help  [bold $text-accent]esc[/] back"
            ),
            id="keys",
        )
        yield Static("kbtui needs 60 columns and 16 rows.\nMake the window larger, or the font smaller.", id="small")

    def on_mount(self) -> None:
        app = viewer(self)
        if app.moment is not None:
            self.documents = [("kernel.py", app.moment.state.tried[self.candidate].commit, False)]
            app.feed.stored(app.moment.run, self.candidate)
        self.show()
        self._load()

    def show(self) -> None:
        """What is known may have grown."""
        moment = viewer(self).moment
        if moment is None or self.candidate not in moment.state.tried:
            return
        header = self.query_one("#header", Lines)
        header.show(lambda w, _h: [header_line(header_view(moment, self.g), w, self.g)])
        facts = self.query_one("#facts", Lines)
        set_titles(facts, f"Candidate {self.candidate}")
        facts.show(lambda w, _h: detail_lines(moment, self.candidate, w, self.g))
        self.show_status()

    def show_status(self) -> None:
        app = viewer(self)
        self.query_one("#status", Lines).show(lambda w, _h: [status_line(app.moment, app.said, w, self.g)])

    def refs_arrived(self, candidate: str, refs: tuple[ArtifactRef, ...]) -> None:
        """Prompt, reply and the like can be read too."""
        if candidate == self.candidate:
            self.documents += [(r.name, r.sha256, True) for r in refs if readable(r.name)]
            self._name_document()

    def text_arrived(self, key: str, text: str) -> None:
        if self.documents and self.documents[self.chosen][1] == key:
            self._show_text(text)

    def _load(self) -> None:
        if self.documents:
            _, key, artifact = self.documents[self.chosen]
            text = viewer(self).feed.text(key, artifact)
            self._name_document()
            if text is not None:
                self._show_text(text)

    def _name_document(self) -> None:
        pane = self.query_one("#document", LineList)
        place = f"{self.chosen + 1} of {len(self.documents)}" if len(self.documents) > 1 else ""
        set_titles(pane, self.documents[self.chosen][0], place)

    def _show_text(self, text: str) -> None:
        self._shown = text
        self._lay_out()
        self.query_one("#document", LineList).scroll_home(animate=False)

    def _lay_out(self) -> None:
        """Number the lines and wrap them to the pane."""
        pane, text = self.query_one("#document", LineList), self._shown
        code = bool(self.documents) and self.documents[self.chosen][0].endswith(".py")
        rows = coloured(text) if code else [Content(r) for r in text.splitlines()]
        width = max(pane.scrollable_content_region.width - 6, 8)
        drawn = [
            Content.assemble((f"{i if start == 0 else self.g.wrap:>4}  ", "$kb-dim"), row[start:end])
            for i, row in enumerate(rows, start=1)
            for start, end in wrap_points(row.plain, width)
        ]
        pane.set_rows([str(i) for i in range(len(drawn))], lambda i, _w: drawn[i])

    def action_document(self, by: int) -> None:
        if len(self.documents) < 2:
            viewer(self).say(
                "only the source is stored of this candidate; kernels a model wrote have a prompt and a reply"
            )
            return
        self.chosen = (self.chosen + by) % len(self.documents)
        self._load()

    def action_other_pane(self) -> None:
        facts, document = self.query_one("#facts"), self.query_one("#document")
        to = document if facts.has_focus else facts
        facts.set_class(to is facts, "active")
        document.set_class(to is document, "active")
        self.call_after_refresh(to.focus)

    def action_copy(self) -> None:
        viewer(self).copy_source(self.candidate, self._shown)

    def action_help(self) -> None:
        self.app.push_screen(Help("detail", self.g))

    def action_close(self) -> None:
        self.dismiss(None)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < 100, "narrow")
        self.call_after_refresh(self._lay_out)
