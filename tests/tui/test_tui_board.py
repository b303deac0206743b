"""Arrows and the mouse on the board and in the lineage."""

from collections.abc import Callable

import pytest
from fake_source import FakeSource
from user import User

from kbtui.tui.app import Viewer
from kbtui.tui.screens.detail import Detail
from kbtui.tui.widgets.board import Board
from kbtui.tui.widgets.kanban import Kanban
from kbtui.tui.widgets.line_list import LineList

MakeViewer = Callable[..., Viewer]


async def test_arrows_move_between_the_columns_of_the_board_and_the_other_panes_follow(
    make_viewer: MakeViewer, source: FakeSource
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=(200, 60)) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        assert isinstance(viewer.focused, Kanban)
        assert user.selected == "c0040"
        await user.press("right")  # over the profile rung, where no card is, to the champion's
        assert user.selected == "c0015"
        assert "c0015" in user.title("#diff")
        await user.press("left", "left", "down")
        assert user.selected == "c0037"
        assert "pruned at 1 screen" in user.text("#why")
        await user.press("G", "g")
        assert user.selected == "c0038"
        await pilot.click(Kanban, offset=(5, 0))
        await user.settle()
        assert user.selected == "c0039"
        await pilot.click(Kanban, offset=(5, 0), times=2)
        await user.settle()
        assert isinstance(viewer.screen, Detail)


@pytest.mark.parametrize(("size", "cards"), [((120, 40), LineList), ((200, 60), Kanban)], ids=["list", "board"])
async def test_the_sentence_about_a_candidate_is_painted_with_the_cursor_on_it(
    make_viewer: MakeViewer, source: FakeSource, size: tuple[int, int], cards: type[LineList]
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=size) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        shown = user.dashboard.query_one(Board).cards
        assert type(shown) is cards
        before = shown.key
        shown.action_step(1)  # and nothing that it posted has been heard yet
        assert shown.key != before
        assert user.text("#why").startswith(f"{shown.key} ")


@pytest.mark.parametrize("pane", ["1", "5", "6"], ids=["rungs", "history", "lineage"])
async def test_a_key_right_after_a_step_is_about_the_candidate_stepped_to(
    make_viewer: MakeViewer, source: FakeSource, pane: str
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=(120, 40)) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        await user.press(pane)
        lines = viewer.focused
        assert isinstance(lines, LineList)
        before = user.selected
        lines.action_step(1)
        user.dashboard.action_look("mark")  # typed before anything that the step posted was heard
        assert user.dashboard.look.marked == user.selected == lines.key != before


async def test_left_and_right_go_to_the_parent_and_the_first_child_in_the_lineage(
    make_viewer: MakeViewer, source: FakeSource
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=(120, 40)) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        await user.press("6", "left")
        assert user.selected == "c0015"
        await user.press("left", "left")
        assert user.selected == "c0002"
        await user.press("right", "right")
        assert user.selected == "c0015"
        await user.press("1")
        assert user.selected == "c0015"
