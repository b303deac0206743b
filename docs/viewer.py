"""Write docs/viewer.md from the viewer's own tables of panes and keys: python docs/viewer.py. A test compares them."""

from pathlib import Path

from kbtui.tui.glyphs import UNICODE
from kbtui.tui.help_text import PANES, signs
from kbtui.tui.keys import KEYS, LIST_KEYS, Group
from kbtui.tui.text import plain

PAGE = Path(__file__).with_name("viewer.md")

#: Pictures that `make screenshots` draws, by the pane they show.
_PICTURES = {
    "rungs": ("pictures/board.svg", "The board, and the other three panes beside it, at 200x60"),
    "bottleneck": ("pictures/bottleneck.svg", "The bottleneck on the whole screen, with the roofline"),
    "diff": ("pictures/diff.svg", "The champion against the first kernel"),
    "history": ("pictures/history.svg", "The history, fastest first"),
    "lineage": ("pictures/lineage.svg", "The lineage"),
    "compare": ("pictures/compare.svg", "Two candidates compared"),
    "detail": ("pictures/candidate.svg", "One candidate: its profile"),
}


def page() -> str:
    """What each pane shows, every key, every sign, as Markdown."""
    parts = ["# The viewer", "", "Made by `python docs/viewer.py` from the viewer's own tables; `?` says the same.", ""]
    parts += ["![The viewer](viewer.svg)", ""]
    for name, (title, about) in PANES.items():
        parts += [f"## {title}", "", about, ""]
        if name in _PICTURES:
            path, caption = _PICTURES[name]
            parts += [f"![{caption}]({path})", ""]
    parts += ["## Keys", "", *_keys(), "## Signs", ""]
    parts += [f"- {plain(row)}" for row in signs(UNICODE)]
    parts += [
        "",
        "At 80x24 one pane is shown at a time, and the terminal's own colours are used where it has only 16:",
        "",
    ]
    return "\n".join([*parts, "![At 80x24](pictures/small.svg)", "", "![The light theme](pictures/light.svg)", ""])


def _keys() -> list[str]:
    out = []
    for group in Group:
        rows = [(k.shown, k.id, k.help) for k in KEYS if k.group is group]
        rows += [(shown, "", text) for shown, text in LIST_KEYS] if group is Group.MOVE else []
        out += [f"### {group.value}", "", "| key | name to remap it | |", "|---|---|---|"]
        out += [f"| `{shown}` | {f'`{name}`' if name else ''} | {text} |" for shown, name, text in rows]
        out.append("")
    return out


if __name__ == "__main__":
    PAGE.write_text(page())
