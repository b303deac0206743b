"""Border titles that are set only when they change: Textual repaints the whole widget on every assignment."""

from textual.content import Content
from textual.widget import Widget


def set_titles(widget: Widget, title: str, subtitle: str = "") -> None:
    """Both titles of a pane as plain text, never markup: they may hold what a model wrote."""
    told = (title, subtitle)
    if getattr(widget, "_titles_told", None) != told:
        widget._titles_told = told  # type: ignore[attr-defined]
        widget.border_title = Content(title).markup
        widget.border_subtitle = Content(subtitle).markup
