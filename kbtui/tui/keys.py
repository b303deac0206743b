"""Every key of the viewer in one table: bindings, the key bar and the help are made from it.

None of them is one that tmux, screen or the terminal itself takes (ctrl+a, b, j, o, s, q, z).
"""

from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding


class Group(StrEnum):
    STEER = "Steer the search"
    LOOK = "Look"
    MOVE = "Move"
    PROGRAM = "Program"


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``label`` is for the key bar (empty: only in the help), ``help`` one sentence; ``id`` is for remapping.

    ``bar`` is its place in the key bar; the highest numbers are left out first where there is no room.
    """

    id: str
    key: str
    shown: str
    action: str
    label: str
    help: str
    group: Group
    bar: int = 99


def _steer(kind: str) -> str:
    return f"screen.steer('{kind}')"


def _look(name: str) -> str:
    return f"screen.look('{name}')"


KEYS: tuple[Key, ...] = (
    Key(
        "pause",
        "p",
        "p",
        _steer("pause"),
        "pause",
        "Pause the search after the evaluation in flight; again resumes. Its wall time runs on.",
        Group.STEER,
        3,
    ),
    Key(
        "pin",
        "P,shift+p",
        "P",
        _steer("pin"),
        "pin",
        "Pin the candidate: it goes first on its rung; again unpins.",
        Group.STEER,
        6,
    ),
    Key("prune", "x", "x", _steer("prune"), "prune", "Prune the candidate (asks first).", Group.STEER, 7),
    Key(
        "promote",
        "plus",
        "+",
        _steer("promote"),
        "promote",
        "Send a finished candidate to the next rung all the same.",
        Group.STEER,
        10,
    ),
    Key("hint", "h", "h", _steer("hint"), "hint", "Give the search a hint in your own words.", Group.STEER, 5),
    Key(
        "budget",
        "b",
        "b",
        _steer("budget"),
        "budget",
        "Change the budget: 30m, +10m, gpu 5m, 200 candidates, none.",
        Group.STEER,
        9,
    ),
    Key(
        "submit",
        "e",
        "e",
        _steer("submit"),
        "submit",
        "Edit the candidate's source in $EDITOR and put it in the queue.",
        Group.STEER,
        8,
    ),
    Key(
        "stop",
        "S,shift+s",
        "S",
        _steer("stop"),
        "stop",
        "Stop the search for good (asks first); R can take it up again.",
        Group.STEER,
        14,
    ),
    Key(
        "resume",
        "R,shift+r",
        "R",
        "screen.resume_engine",
        "resume",
        "Start the engine again on a run that lost it or has ended.",
        Group.STEER,
        15,
    ),
    Key(
        "open",
        "enter",
        "enter",
        _look("open"),
        "open",
        "Open the candidate: code, gate report, times, prompt and reply.",
        Group.LOOK,
        11,
    ),
    Key(
        "diff_base",
        "d",
        "d",
        _look("diff_base"),
        "diff base",
        "Compare with the parent, the champion, the first kernel or the mark.",
        Group.LOOK,
        4,
    ),
    Key(
        "mark",
        "m",
        "m",
        _look("mark"),
        "mark",
        "Mark the candidate (or the run), to compare others with it.",
        Group.LOOK,
        12,
    ),
    Key(
        "next_change",
        "right_square_bracket,n",
        "]",
        _look("next_change"),
        "next",
        "Next change in the diff; next page of a candidate.",
        Group.LOOK,
    ),
    Key(
        "previous_change",
        "left_square_bracket,N,shift+n",
        "[",
        _look("previous_change"),
        "previous",
        "Previous change in the diff; previous page of a candidate.",
        Group.LOOK,
    ),
    Key("unified", "u", "u", _look("unified"), "unified", "Diff side by side or unified.", Group.LOOK),
    Key("axis", "t", "t", _look("axis"), "wall/GPU", "Best-so-far curve over wall time or GPU time.", Group.LOOK),
    Key(
        "compare",
        "c",
        "c",
        _look("compare"),
        "compare",
        "Compare the candidate with what d chose; in the list of runs, compare with the marked run.",
        Group.LOOK,
        13,
    ),
    Key(
        "board", "v", "v", _look("board"), "board/list", "Cards as a board, a column a rung, or as a list.", Group.LOOK
    ),
    Key(
        "bests",
        "i",
        "i",
        _look("bests"),
        "bests",
        "History and lineage: only what was a best once, and what led to it; again shows all.",
        Group.LOOK,
    ),
    Key("order", "o", "o", _look("order"), "order", "Order the history: newest, fastest, highest rung.", Group.LOOK),
    Key(
        "filter",
        "slash",
        "/",
        _look("filter"),
        "filter",
        "Show only candidates with these words (id, operator, hint, state, r2).",
        Group.LOOK,
        2,
    ),
    Key(
        "freeze",
        "space",
        "space",
        _look("freeze"),
        "freeze",
        "Hold the screen still; the search goes on.",
        Group.LOOK,
        20,
    ),
    Key(
        "copy",
        "y",
        "y",
        _look("copy"),
        "copy",
        "Copy the candidate's source to the clipboard and to a file.",
        Group.LOOK,
    ),
    Key(
        "zoom",
        "f",
        "f",
        "screen.zoom",
        "full screen",
        "The focused pane on the whole screen; again goes back.",
        Group.MOVE,
        16,
    ),
    Key("pane_1", "1", "1", "screen.pane(1)", "", "Rungs.", Group.MOVE),
    Key("pane_2", "2", "2", "screen.pane(2)", "", "Live benchmarks.", Group.MOVE),
    Key("pane_3", "3", "3", "screen.pane(3)", "", "Bottleneck.", Group.MOVE),
    Key("pane_4", "4", "4", "screen.pane(4)", "", "Diff.", Group.MOVE),
    Key("pane_5", "5", "5", "screen.pane(5)", "history", "History: every candidate as a table.", Group.MOVE, 17),
    Key("pane_6", "6", "6", "screen.pane(6)", "lineage", "Lineage: the tree of candidates.", Group.MOVE, 18),
    Key("pane_7", "7", "7", "screen.pane(7)", "", "Compare: two candidates side by side.", Group.MOVE),
    Key("pane_8", "8", "8", "screen.pane(8)", "log", "Log: every event of the run.", Group.MOVE, 19),
    Key("next_pane", "tab", "tab", "screen.step_pane(1)", "next pane", "Next pane.", Group.MOVE),
    Key("previous_pane", "shift+tab", "shift+tab", "screen.step_pane(-1)", "", "Previous pane.", Group.MOVE),
    Key(
        "back",
        "escape",
        "esc",
        "screen.back",
        "back",
        "Back: leave the filter, the full screen, or this page.",
        Group.MOVE,
    ),
    Key("runs", "r", "r", "screen.runs", "runs", "The list of runs.", Group.MOVE),
    Key("help", "question_mark", "?", "screen.help", "help", "Help for the focused pane.", Group.PROGRAM, 1),
    Key(
        "palette",
        "colon",
        ":",
        "app.command_palette",
        "",
        "Every command by name, themes too (also ctrl+p).",
        Group.PROGRAM,
    ),
    Key("leave", "q", "q", "app.leave", "leave", "Leave; the search goes on without you.", Group.PROGRAM, 0),
)

#: What each pane's own keys are: they come first in the key bar while the pane has the focus.
PANE_KEYS: dict[str, tuple[str, ...]] = {
    "rungs": ("pause", "pin", "prune", "promote", "open", "board"),
    "live": ("pause", "axis", "zoom"),
    "bottleneck": ("hint", "zoom", "open"),
    "diff": ("next_change", "previous_change", "diff_base", "unified", "zoom", "copy"),
    "history": ("order", "bests", "filter", "open", "mark", "compare", "copy"),
    "lineage": ("bests", "filter", "open", "mark", "compare"),
    "compare": ("diff_base", "mark", "open"),
    "log": ("filter", "open"),
}

BY_ID = {key.id: key for key in KEYS}


def bindings(*ids: str) -> list[Binding]:
    """Bindings of the named keys, all of them where none is named. ``id`` is what a keymap remaps."""
    chosen = [BY_ID[i] for i in ids] if ids else list(KEYS)
    return [
        Binding(k.key, k.action, k.label or k.help, show=False, key_display=k.shown, id=k.id, tooltip=k.help)
        for k in chosen
    ]


LIST_KEYS: tuple[tuple[str, str], ...] = (
    ("↑ ↓ or k j", "Move the cursor, or scroll."),
    ("page up, page down", "A page at a time."),
    ("g, G or home, end", "To the top (and follow what runs), to the end."),
    ("← →", "On the board, the column of another rung; in the lineage, the parent or the first child."),
)
