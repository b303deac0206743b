"""Keys where they mean nothing: they say so, or are typed. And that each key is found: in the palette, in the bar."""

from collections.abc import Callable

import pytest
from fake_source import FakeRun, FakeSource
from recorded_run import recorded_earlier
from textual.widgets import Input
from user import User

from kbtui.tui.app import Viewer
from kbtui.tui.keys import KEYS, PANE_KEYS
from kbtui.tui.screens.ask import AskLine, Confirm
from kbtui.tui.screens.compare_runs import CompareRuns
from kbtui.tui.screens.dashboard import PANES
from kbtui.tui.screens.detail import Detail
from kbtui.tui.screens.help import Help
from kbtui.tui.screens.runs import Runs
from kbtui.tui.widgets.tabs import NAMES

MakeViewer = Callable[..., Viewer]
SIZE = (120, 40)


def _answers(user: User) -> tuple[object, ...]:
    """What a key can change: the screen, what was said, what was asked, what has the focus, what is shown."""
    viewer = user.viewer
    shown = "".join(s.text for strip in viewer.screen._compositor.render_strips() for s in strip)
    return type(viewer.screen), user.said, len(user.source.asked), viewer.focused, shown


@pytest.mark.parametrize("screen", [Runs, Detail, CompareRuns])
async def test_on_every_screen_each_key_does_something_or_says_why_not(
    make_viewer: MakeViewer, source: FakeSource, screen: type
) -> None:
    source.rows, source.others = [FakeRun(), FakeRun(run="softmax-6")], {"softmax-6": recorded_earlier()}
    opening = {Runs: ("r",), Detail: ("enter",), CompareRuns: ("r", "m", "down", "c")}[screen]
    viewer = make_viewer(editor=lambda _text, _name: None)
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        await user.press(*opening)
        assert isinstance(viewer.screen, screen)
        silent = []
        for key in KEYS:
            if key.id in ("leave", "palette", "runs", "open", "back", "compare", "stop", "prune"):
                continue
            viewer.say("")
            before = _answers(user)
            await user.press(key.key.split(",")[0])
            if _answers(user) == before:
                silent.append(key.id)
            if isinstance(viewer.screen, (Help, AskLine, Confirm)):
                await user.press("escape")
        assert silent == []


async def test_the_palette_has_every_key_of_a_runs_screen(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=SIZE) as pilot:
        await User(viewer, pilot, source).settle()
        helps = [c.help for c in viewer.get_system_commands(viewer.screen)]
        assert all(any(key.help in said for said in helps) for key in KEYS)


async def test_typing_a_filter_steers_nothing(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        await user.press("slash", *"pxPScvi")
        assert user.asked == []
        assert viewer.screen.query_one("#filter", Input).value == "pxPScvi"


def test_each_pane_has_its_tab_and_its_own_keys_in_the_bar() -> None:
    assert len(NAMES) == len(PANES) == len(PANE_KEYS)
    labelled = {key.id for key in KEYS if key.label}
    assert all(set(ids) <= labelled for ids in PANE_KEYS.values())
