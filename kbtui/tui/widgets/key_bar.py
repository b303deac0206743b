"""The keys that fit, most needed ones first kept; each can be clicked."""

from textual.content import Content
from textual.widgets import Static

from kbtui.tui.keymap import shown_key
from kbtui.tui.keys import BY_ID, KEYS, PANE_KEYS, Key
from kbtui.tui.screens.typing import viewer

_ALWAYS = ("help", "leave")
#: What has a meaning only while a search goes on, and only where it does not.
_OF_WHAT_GOES_ON, _OF_WHAT_STANDS = ("pause", "stop"), ("resume",)


class KeyBar(Static):
    """One line; `? help` and `q leave` are always there."""

    DEFAULT_CSS = """
    KeyBar {
        height: 1; background: $panel; text-wrap: nowrap;
        link-style: none; link-style-hover: underline; link-background-hover: $panel;
        link-color: $foreground; link-color-hover: $text-accent;
    }
    """

    def __init__(self, ids: tuple[str, ...] = (), id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.keys = [BY_ID[i] for i in ids] if ids else [k for k in KEYS if k.label]
        self._pane = ""
        self._goes_on = True

    def show_search(self, goes_on: bool) -> None:
        """One that goes on cannot be resumed; one that does not can neither be paused nor stopped."""
        if goes_on != self._goes_on:
            self._goes_on = goes_on
            self.refresh()

    def show_pane(self, pane: str) -> None:
        """Put the keys of the pane that has the focus first."""
        if pane != self._pane:
            self._pane = pane
            self.refresh()

    def render(self) -> Content:
        return Content("  ").join(self._fitting()).pad_left(1)

    def _fitting(self) -> list[Content]:
        """The keys that fit in the width, in the table's order; help, leave and what takes a run up always."""
        first = PANE_KEYS.get(self._pane, ())
        chosen: set[str] = set()
        room = self.size.width
        idle = _OF_WHAT_GOES_ON if not self._goes_on else _OF_WHAT_STANDS
        keys = [k for k in self.keys if k.id not in idle]
        for key in sorted(keys, key=lambda k: (k.id not in (*_ALWAYS, *_OF_WHAT_STANDS), k.id not in first, k.bar)):
            needed = len(self._shown(key)) + len(self._label(key)) + 3
            if needed > room:
                break
            chosen.add(key.id)
            room -= needed
        return [self._key(k) for k in self.keys if k.id in chosen]

    def _shown(self, key: Key) -> str:
        return shown_key(key, viewer(self.screen).options.keymap)

    def _label(self, key: Key) -> str:
        goes_on = self._goes_on and key.id == "leave" and self.size.width >= 130
        return "leave (search goes on)" if goes_on else key.label

    def _key(self, key: Key) -> Content:
        label = Content.from_markup(f"[@click={key.action}]$label[/]", label=self._label(key))
        return Content.assemble((self._shown(key), "bold $text-accent"), " ", label)
