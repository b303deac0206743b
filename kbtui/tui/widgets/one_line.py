"""A line to type or paste into."""

from textual import events
from textual.widgets import Input

from kbtui.tui.safe import shown


class OneLine(Input):
    """What is pasted over several lines is one line here, where Textual keeps the first and drops the rest."""

    def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        words = shown(" ".join(event.text.split()))
        if self.selection.is_empty:
            self.insert_text_at_cursor(words)
        else:
            self.replace(words, *self.selection)
