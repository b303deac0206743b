"""Looking as a person does it: the cursor, the diff, the filter, the history, a candidate opened, a copy taken."""

from dataclasses import replace
from pathlib import Path

from fake_source import FakeSource, InlineExecutor
from pressing import WIDE, MakeViewer, dashboard, press, settle, text_of
from recorded_plans import plans
from recorded_run import RUN, recorded

from kbtui.domain.event import Budget, EndReason, RunResumed
from kbtui.tui.app import Viewer, ViewerOptions
from kbtui.tui.screens.dashboard import Dashboard
from kbtui.tui.screens.detail import Detail
from kbtui.tui.widgets.board import Board
from kbtui.tui.widgets.diff import DiffPane


async def test_bottleneck_and_diff_follow_the_cursor(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "down", "j")
        assert dashboard(viewer).look.selected == "c0037"
        assert "c0037" in str(viewer.screen.query_one("#diff").border_title)
        assert "parent of c0037" in str(viewer.screen.query_one("#bottleneck").border_title)
        assert "pruned at 1 screen" in text_of(viewer, "#why")


async def test_the_cursor_follows_what_runs_and_stays_between_two_evaluations(
    make_viewer: MakeViewer, source: FakeSource
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        for running, selected in (("c0038", "c0038"), (None, "c0038"), ("c0039", "c0039")):
            assert source.engine_status is not None
            source.engine_status = replace(source.engine_status, candidate=running, rung=1 if running else None)
            source.version += 1
            viewer.tick()
            await settle(pilot)
            assert dashboard(viewer).look.selected == selected
            assert f"▸ {'▶' if running else '○'} {selected}" in text_of(viewer, "#cards")


async def test_a_run_taken_up_again_leaves_its_old_champion_for_what_is_next(
    make_viewer: MakeViewer, source: FakeSource
) -> None:
    source.recorder = recorded(ended=EndReason.BUDGET)
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert dashboard(viewer).look.selected == "c0015"
        source.tell(RunResumed(Budget(), "taken up again"))
        viewer.tick()
        await settle(pilot)
        assert dashboard(viewer).look.selected == "c0040"


async def test_the_cursor_stays_on_its_candidate_when_new_ones_arrive(
    make_viewer: MakeViewer, source: FakeSource
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "down", "down")
        chosen = dashboard(viewer).look.selected
        source.propose(41, plans()[1])
        viewer.tick()
        await settle(pilot)
        assert dashboard(viewer).query_one(Board).cards.n_rows == 41
        assert dashboard(viewer).look.selected == chosen


async def test_the_diff_opens_at_the_first_change_and_the_brackets_move_between_changes(
    make_viewer: MakeViewer,
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        pane = viewer.screen.query_one(DiffPane)
        assert pane.diff is not None
        assert pane.place == "change 1 of 4"
        await press(pilot, "right_square_bracket", "n")
        assert pane.place == "change 3 of 4"
        await press(pilot, "left_square_bracket")
        assert pane.place == "change 2 of 4"
        await press(pilot, "N", "N")
        assert "first change" in text_of(viewer, "#status")


async def test_d_compares_with_the_champion_the_first_kernel_and_the_mark(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "m", "up")
        titles = []
        for _ in range(4):
            await press(pilot, "d")
            titles.append(str(viewer.screen.query_one("#diff").border_title))
        assert "c0015 (champion)" in titles[0]
        assert "c0001 (first kernel)" in titles[1]
        assert "c0038 (marked)" in titles[2]
        assert titles[3].startswith("4 c0015 → c0040")


async def test_u_turns_side_by_side_into_unified(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "│" in text_of(viewer, "#diff")
        await press(pilot, "u")
        assert "│" not in text_of(viewer, "#diff")


async def test_the_diff_is_unified_where_it_is_narrow(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "4")
        said = text_of(viewer, "#diff")
        assert "10-" in said
        assert "10+" in said
        assert "change 1 of 4" in str(viewer.screen.query_one("#diff").border_title)


async def test_slash_filters_as_it_is_typed_and_escape_shows_all(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "slash", *"wrong")
        assert dashboard(viewer).query_one(Board).cards.n_rows == 4
        await press(pilot, "enter")
        assert viewer.focused is not None
        assert viewer.focused.id == "cards"
        assert "/wrong: 4 shown" in str(viewer.screen.query_one("#rungs").border_subtitle)
        await press(pilot, "escape")
        assert dashboard(viewer).query_one(Board).cards.n_rows == 40


async def test_space_holds_the_screen_still_until_space_again(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "space")
        assert "FROZEN" in text_of(viewer, "#header")
        source.propose(41, plans()[1])
        viewer.tick()
        await settle(pilot)
        assert dashboard(viewer).query_one(Board).cards.n_rows == 40
        await press(pilot, "space")
        assert dashboard(viewer).query_one(Board).cards.n_rows == 41


async def test_history_orders_and_shares_the_cursor_with_the_board(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "5", "o")
        assert "fastest first" in str(viewer.screen.query_one("#history").border_title)
        await press(pilot, "down")
        assert dashboard(viewer).look.selected == "c0036"
        await press(pilot, "1")
        assert dashboard(viewer).query_one(Board).cards.key == "c0036"


async def test_the_head_of_the_history_stands_over_its_columns(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "5")
        head, first = text_of(viewer, "#history-head"), text_of(viewer, "#history-list").splitlines()[0]
        assert head.index("operator") == first.index("several_rows")
        assert head.index("state") == first.index("running")


async def test_enter_opens_a_candidate_with_code_prompt_and_reply(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "slash", *"c0020", "enter", "enter")
        assert isinstance(viewer.screen, Detail)
        assert "qwen2.5-coder:7b" in text_of(viewer, "#facts")
        assert "@triton.jit" in text_of(viewer, "#document")
        await press(pilot, *["right_square_bracket"] * 4)
        assert "Make this softmax faster" in text_of(viewer, "#document")
        await press(pilot, "escape")
        assert isinstance(viewer.screen, Dashboard)


async def test_y_writes_a_file_and_says_where(make_viewer: MakeViewer, tmp_path: Path) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "y")
        assert "ROWS" in (tmp_path / "c0040.py").read_text()
        assert "ROWS" in viewer.clipboard
        assert "c0040.py" in text_of(viewer, "#status")


async def test_where_y_wrote_is_said_to_the_end_of_a_path_longer_than_the_screen(
    source: FakeSource, tmp_path: Path
) -> None:
    folder = tmp_path / "deep" / ("folder" * 20)
    viewer = Viewer(source, RUN, ViewerOptions(refresh_hz=0.01, copy_folder=folder), executor=InlineExecutor())
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "y")
        assert text_of(viewer, "#status").rstrip().endswith("folder/c0040.py")
