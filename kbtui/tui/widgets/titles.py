"""Border titles that are set only when they change: Textual repaints the whole widget on every assignment."""

from textual.content import Content
from textual.widget import Widget

from kbtui.tui.text import fit
from kbtui.tui.widgets.paint import to_ascii


def set_titles(widget: Widget, title: str, subtitle: str = "", ascii_only: bool = False) -> None:
    """Both titles of a pane as plain text, never markup: they may hold what a model wrote."""
    if ascii_only:
        room = max(widget.outer_size.width - 6, 20)  # a longer one Textual would cut with a sign that is not ASCII
        title, subtitle = fit(to_ascii(title), min(len(title), room), ".."), to_ascii(subtitle)
    told = (title, subtitle)
    if getattr(widget, "_titles_told", None) != told:
        widget._titles_told = told  # type: ignore[attr-defined]
        widget.border_title = Content(title).markup
        widget.border_subtitle = Content(subtitle).markup
