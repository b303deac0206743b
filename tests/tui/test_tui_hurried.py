"""Keys typed faster than the viewer can follow: as a slow line brings them, several at a time."""

import asyncio
from collections.abc import Callable

import pytest
from fake_source import FakeSource
from recorded_run import RUN
from textual import events
from textual.widgets import Input
from user import User

from kbtui.tui.app import Viewer
from kbtui.tui.screens.ask import AskLine
from kbtui.tui.screens.dashboard import Dashboard
from kbtui.tui.screens.detail import Detail
from kbtui.tui.screens.help import Help
from kbtui.tui.screens.runs import Runs

MakeViewer = Callable[..., Viewer]
SIZE = (140, 40)


def type_at_once(user: User, *keys: str) -> None:
    """All of them lie in the queue before the first is acted on; single characters are themselves, words keys."""
    for key in keys:
        name = {"/": "slash", " ": "space", "?": "question_mark", "+": "plus"}.get(key, key)
        user.viewer.post_message(events.Key(name, key if len(key) == 1 else None))


@pytest.mark.parametrize("size", [(140, 40), (80, 24)])
async def test_words_right_after_slash_are_the_filter_and_not_commands(
    make_viewer: MakeViewer, source: FakeSource, size: tuple[int, int]
) -> None:
    viewer = make_viewer(editor=lambda text, _name: pytest.fail("e opened the editor"))
    async with viewer.run_test(size=size) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        type_at_once(user, *"/tile pPxhSbre+")
        await user.settle()
        assert user.dashboard.query_one("#filter", Input).value == "tile pPxhSbre+"
        assert user.asked == []


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        (("h", *"stop pruning", "enter"), [("hint", "stop pruning")]),
        (("h", *"pPx", "escape", "P"), [("pin", "c0040")]),
        (("x", "y"), [("prune", "c0040")]),
        (("x", "n", "P"), [("pin", "c0040")]),
        (("S", "y"), [("stop", "")]),
        (("down", "x", "y", "down", "P"), [("prune", "c0038"), ("pin", "c0039")]),
        (("/", *"c0038", "enter", "P"), [("pin", "c0038")]),
        (("enter", "P"), [("pin", "c0040")]),
        (("down", "enter", "P", "escape", "down", "P"), [("pin", "c0038"), ("pin", "c0039")]),
        (("?", "P", "escape", "P"), [("pin", "c0040")]),
        (("5", "x", "escape"), []),
    ],
    ids=lambda value: "".join(value) if value and isinstance(value[0], str) else "",
)
async def test_keys_typed_at_once_do_what_they_do_one_by_one(
    make_viewer: MakeViewer, source: FakeSource, keys: tuple[str, ...], asked: list[tuple[str, str]]
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        type_at_once(user, *keys)
        await user.settle()
        assert user.asked == asked
        assert isinstance(viewer.screen, Dashboard | Detail)


async def test_a_paste_right_after_the_key_that_asks_goes_into_the_line(
    make_viewer: MakeViewer, source: FakeSource
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        type_at_once(user, "h")
        viewer.post_message(events.Paste("two rows a program"))
        type_at_once(user, "enter")
        await user.settle()
        assert user.asked == [("hint", "two rows a program")]


async def test_keys_over_a_change_of_screens_go_to_the_screen_they_were_typed_for(
    make_viewer: MakeViewer, source: FakeSource
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        type_at_once(user, "r", "P")
        await user.settle()
        assert isinstance(viewer.screen, Runs)
        assert user.asked == []
        assert "it is for one run" in user.said
        type_at_once(user, "?", "escape", "h")
        await user.settle()
        assert not isinstance(viewer.screen, Help | AskLine)


async def test_a_pane_that_never_answers_does_not_cost_the_keyboard(
    make_viewer: MakeViewer, source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.tui.typed.PATIENCE_S", 0.01)
    viewer = make_viewer(RUN)
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        with monkeypatch.context() as deaf:
            deaf.setattr(viewer.screen, "call_later", lambda *_: True)  # says it will, and never does
            type_at_once(user, "down", "down")
            async with asyncio.timeout(20):
                while user.selected != "c0039":
                    await asyncio.sleep(0.01)


@pytest.mark.parametrize("key", ["h", "b", "slash"])
async def test_a_paste_of_100_kb_is_answered_and_asks_for_nothing(
    make_viewer: MakeViewer, source: FakeSource, key: str
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        type_at_once(user, key)
        viewer.post_message(events.Paste("words \n" * 17_000))
        type_at_once(user, "enter")
        await user.settle()
        assert user.asked == []
        if key == "slash":
            assert "No candidate" in user.text("#no-cards")
            await user.press("escape")
            assert "c0040" in user.text("#cards")
        else:
            assert isinstance(viewer.screen, AskLine)


async def test_lines_pasted_are_one_line(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        type_at_once(user, "h")
        viewer.post_message(events.Paste("two rows\r\n  a program\n\x1b[2J"))
        type_at_once(user, "enter")
        await user.settle()
        assert user.asked == [("hint", "two rows a program ␛[2J")]
