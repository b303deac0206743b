"""The keys that fit, most needed ones first kept; each can be clicked."""

from textual.content import Content
from textual.widgets import Static

from kbtui.tui.keys import BY_ID, KEYS, Key


class KeyBar(Static):
    """One line; `? help` and `q leave` are always there."""

    DEFAULT_CSS = "KeyBar { height: 1; background: $panel; text-wrap: nowrap; }"

    def __init__(self, ids: tuple[str, ...] = (), id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        keys = [BY_ID[i] for i in ids] if ids else [k for k in KEYS if k.label]
        self.keys = sorted(keys, key=lambda k: k.bar)

    def render(self) -> Content:
        return Content(" ").join(self._fitting()).pad_left(1)

    def _fitting(self) -> list[Content]:
        """The keys that fit in the width, in the table's order but for the last two."""
        chosen: list[Key] = []
        room = self.size.width - 2
        for key in self.keys:
            needed = len(key.shown) + len(self._label(key)) + 2
            if needed <= room:
                chosen.append(key)
                room -= needed
        last = [k for k in chosen if k.id in ("help", "leave")]
        order = [k for k in chosen if k not in last] + sorted(last, key=lambda k: -k.bar)
        return [self._key(k) for k in order]

    def _label(self, key: Key) -> str:
        return "leave (search goes on)" if key.id == "leave" and self.size.width >= 130 else key.label

    def _key(self, key: Key) -> Content:
        return Content.from_markup(
            f"[@click={key.action}][bold $text-accent]$shown[/] [$foreground 80%]$label[/][/]",
            shown=key.shown,
            label=self._label(key),
        )
