"""The keys that fit, most needed ones first kept; each can be clicked."""

from textual.content import Content
from textual.widgets import Static

from kbtui.tui.keymap import shown_key
from kbtui.tui.keys import BY_ID, KEYS, PANE_KEYS, Key
from kbtui.tui.screens.typing import viewer


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

    def show_pane(self, pane: str) -> None:
        """Put the keys of the pane that has the focus first."""
        if pane != self._pane:
            self._pane = pane
            self.refresh()

    def render(self) -> Content:
        return Content("  ").join(self._fitting()).pad_left(1)

    def _fitting(self) -> list[Content]:
        """The keys that fit in the width, in the table's order; help and leave are always among them."""
        first = PANE_KEYS.get(self._pane, ())
        chosen: set[str] = set()
        room = self.size.width
        for key in sorted(self.keys, key=lambda k: (k.id not in ("help", "leave"), k.id not in first, k.bar)):
            needed = len(self._shown(key)) + len(self._label(key)) + 3
            if needed > room:
                break
            chosen.add(key.id)
            room -= needed
        return [self._key(k) for k in self.keys if k.id in chosen]

    def _shown(self, key: Key) -> str:
        return shown_key(key, viewer(self.screen).options.keymap)

    def _label(self, key: Key) -> str:
        return "leave (search goes on)" if key.id == "leave" and self.size.width >= 130 else key.label

    def _key(self, key: Key) -> Content:
        label = Content.from_markup(f"[@click={key.action}]$label[/]", label=self._label(key))
        return Content.assemble((self._shown(key), "bold $text-accent"), " ", label)
