"""The viewer as a person uses it: keys pressed on a running screen, over a recorded run."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fake_source import FakeRun, FakeSource, InlineExecutor
from recorded_run import RUN, plans, recorded
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Input

from kbtui.domain.event import Budget, CommandKind, EndReason, RunResumed
from kbtui.tui.app import Viewer, ViewerOptions
from kbtui.tui.keys import KEYS
from kbtui.tui.leaving import ViewerExit
from kbtui.tui.screens.ask import AskLine, Confirm
from kbtui.tui.screens.dashboard import Dashboard
from kbtui.tui.screens.detail import Detail
from kbtui.tui.screens.help import Help
from kbtui.tui.screens.runs import Runs
from kbtui.tui.widgets.board import Board
from kbtui.tui.widgets.diff import DiffPane
from kbtui.tui.widgets.line_list import LineList

MakeViewer = Callable[..., Viewer]
WIDE = (140, 40)


async def settle(pilot: Pilot[ViewerExit]) -> None:
    """Let messages and the redraws they ask for be handled."""
    for _ in range(3):
        await pilot.pause()


async def press(pilot: Pilot[ViewerExit], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
    await settle(pilot)


def dashboard(viewer: Viewer) -> Dashboard:
    screen = viewer.screen
    assert isinstance(screen, Dashboard)
    return screen


def text_of(viewer: Viewer, selector: str) -> str:
    """What a pane shows now, as plain text."""
    widget = viewer.screen.query_one(selector, LineList)
    return "\n".join("".join(s.text for s in widget.render_line(y)).rstrip() for y in range(widget.size.height))


def shown(viewer: Viewer) -> list[str]:
    return [p.id or "" for p in viewer.screen.query(".pane") if p.display]


async def test_four_panes_at_120_columns_and_more(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert shown(viewer) == ["rungs", "live", "bottleneck", "diff"]
        assert "searching" in text_of(viewer, "#header")
        assert "c0040" in text_of(viewer, "#cards")
        assert "pair 14" in text_of(viewer, "#live")
        assert "Memory bound" in text_of(viewer, "#bottleneck")
        assert "tl.program_id(0) * ROWS" in text_of(viewer, "#diff")


async def test_at_80_by_24_the_number_keys_show_one_pane_at_a_time(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for number, pane in enumerate(
            ("rungs", "live", "bottleneck", "diff", "history", "lineage", "compare", "log"), start=1
        ):
            await press(pilot, str(number))
            assert shown(viewer) == [pane]
            assert viewer.screen.query_one("#tabs").display


async def test_tab_goes_round_the_panes_and_the_focus_goes_with_it(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        seen = []
        for _ in range(4):
            assert viewer.focused is not None
            seen.append(viewer.focused.id)
            await press(pilot, "tab")
        assert seen == ["cards", "live", "bottleneck", "diff"]
        assert viewer.focused is not None
        assert viewer.focused.id == "cards"


async def test_below_60_by_16_it_says_so_and_recovers(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=(59, 16)) as pilot:
        await settle(pilot)
        assert viewer.screen.query_one("#small").display
        assert not viewer.screen.query_one("#panes").display
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert not viewer.screen.query_one("#small").display
        assert shown(viewer) == ["rungs", "live", "bottleneck", "diff"]


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


async def test_p_pauses_and_is_pending_until_the_engine_has_it_then_resumes(
    make_viewer: MakeViewer, source: FakeSource
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "p")
        assert [c.kind for c in source.asked] == [CommandKind.PAUSE]
        assert "» asked: pause" in text_of(viewer, "#status")
        source.accept()
        viewer.tick()
        await settle(pilot)
        assert "» asked" not in text_of(viewer, "#status")
        assert "paused, p resumes" in text_of(viewer, "#header")
        await press(pilot, "p")
        assert source.asked[-1].kind is CommandKind.RESUME


async def test_pin_and_promote_name_the_candidate_under_the_cursor(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "P")
        await press(pilot, "down", "down", "+")
        assert [(c.kind, c.argument) for c in source.asked] == [
            (CommandKind.PIN, "c0038"),
            (CommandKind.PROMOTE, "c0037"),
        ]
        assert "»pin" in text_of(viewer, "#cards")


async def test_prune_asks_first_and_no_means_no(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "x")
        assert isinstance(viewer.screen, Confirm)
        await press(pilot, "n")
        assert source.asked == []
        await press(pilot, "x", "y")
        assert [(c.kind, c.argument) for c in source.asked] == [(CommandKind.PRUNE, "c0040")]


async def test_stop_asks_first(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "S", "escape")
        assert source.asked == []
        await press(pilot, "S", "y")
        assert [c.kind for c in source.asked] == [CommandKind.STOP]


async def test_a_hint_is_typed_and_sent(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "h")
        assert isinstance(viewer.screen, AskLine)
        await press(pilot, *"use exp2", "enter")
        assert [(c.kind, c.argument) for c in source.asked] == [(CommandKind.HINT, "use exp2")]


async def test_a_budget_that_is_none_is_refused_in_place(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "b", *"lots", "enter")
        assert isinstance(viewer.screen, AskLine)
        assert source.asked == []
        viewer.screen.query_one(Input).value = "+10m"
        await press(pilot, "enter")
        assert json.loads(source.asked[0].argument)["wall_s"] == 2400.0


async def test_e_submits_what_the_editor_made_of_the_source(make_viewer: MakeViewer, source: FakeSource) -> None:
    given: list[str] = []

    def editor(text: str, name: str) -> str:
        given.append(name)
        return text + "\n# mine\n"

    viewer = make_viewer(editor=editor)
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "e")
        assert given == ["c0040.py"]
        (command,) = source.asked
        assert command.kind is CommandKind.SUBMIT
        assert command.parent == "c0040"
        assert command.argument.endswith("# mine\n")


async def test_an_editor_that_changes_nothing_submits_nothing(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer(editor=lambda _text, _name: None)
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "e")
        assert source.asked == []
        assert "nothing submitted" in text_of(viewer, "#status")


async def test_a_key_that_does_nothing_now_says_why(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "R")
        assert "engine is alive" in text_of(viewer, "#status")
        await press(pilot, "down", "down", "down", "x")
        assert "pruned already" in text_of(viewer, "#status")
        await press(pilot, "o")
        assert "5 shows it" in text_of(viewer, "#status")
        assert source.asked == []


async def test_readonly_inserts_nothing(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer(readonly=True)
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "p", "P", "h")
        assert source.asked == []
        assert "only looks" in text_of(viewer, "#status")


async def test_a_lost_engine_is_resumed_with_r(make_viewer: MakeViewer, source: FakeSource) -> None:
    resumed: list[str] = []

    def resume(run: str) -> str:
        resumed.append(run)
        return f"engine started on {run}"

    viewer = make_viewer(resume=resume)
    source.lose_engine(41)
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "engine lost 41 s ago, R to resume" in text_of(viewer, "#header")
        await press(pilot, "R")
        assert resumed == [RUN]
        assert "engine started on softmax-7" in text_of(viewer, "#status")


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


async def test_steering_letters_typed_into_the_filter_do_nothing_else(
    make_viewer: MakeViewer, source: FakeSource
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "slash", *"pxSq")
        assert source.asked == []
        assert viewer.is_running
        assert viewer.screen.query_one("#filter", Input).value == "pxSq"


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


async def test_full_screen_and_back(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "4", "f")
        assert shown(viewer) == ["diff"]
        await press(pilot, "escape")
        assert shown(viewer) == ["rungs", "live", "bottleneck", "diff"]


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


async def test_help_is_about_the_focused_pane(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "3", "question_mark")
        assert isinstance(viewer.screen, Help)
        assert text_of(viewer, "#help-lines").startswith("Bottleneck")
        await press(pilot, "escape")
        assert isinstance(viewer.screen, Dashboard)


async def test_without_a_run_the_list_is_shown_and_enter_opens_one(make_viewer: MakeViewer) -> None:
    viewer = make_viewer(None)
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert isinstance(viewer.screen, Runs)
        assert "softmax-7" in text_of(viewer, "#runs-list")
        await press(pilot, "enter")
        assert "c0040" in text_of(viewer, "#cards")
        await press(pilot, "r")
        assert isinstance(viewer.screen, Runs)
        await press(pilot, "enter")
        assert "c0040" in text_of(viewer, "#cards")


async def test_an_empty_workspace_says_how_to_start(make_viewer: MakeViewer, source: FakeSource) -> None:
    source.rows = []
    viewer = make_viewer(None)
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "kbtui run PROBLEM" in text_of(viewer, "#no-runs")


async def test_modelled_runs_are_loud_in_the_list(make_viewer: MakeViewer, source: FakeSource) -> None:
    source.rows = [FakeRun(clock="modelled", device="A100-SXM4-80GB")]
    viewer = make_viewer(None)
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "MODELLED" in text_of(viewer, "#runs-list")


async def test_q_leaves_and_says_how_to_come_back(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "q")
    left = viewer.return_value
    assert left is not None
    assert left.engine_alive
    assert "kbtui attach softmax-7" in left.lines[1]
    assert "1.310× (1.306–1.314) over PyTorch, c0015" in left.lines[0]


async def test_leaving_an_ended_run_says_so(make_viewer: MakeViewer, source: FakeSource) -> None:
    source.recorder = recorded(ended=EndReason.BUDGET)
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "q")
    assert viewer.return_value is not None
    assert viewer.return_value.ended
    assert "ended (budget)" in viewer.return_value.lines[1]


async def test_a_store_that_cannot_be_read_is_said_and_tried_again(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=(180, 40)) as pilot:
        await settle(pilot)
        source.failing = OSError("disk I/O error")
        viewer.tick()
        await settle(pilot)
        assert "could not be read" in text_of(viewer, "#status")
        source.failing = None
        source.propose(41, plans()[1])
        viewer.tick()
        await settle(pilot)
        assert dashboard(viewer).query_one(Board).cards.n_rows == 41


async def test_keys_can_be_remapped_by_id(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer(keymap=(("pause", "w"),))
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        assert [c.kind for c in source.asked] == [CommandKind.PAUSE]


@pytest.mark.parametrize("changed", [0, 1], ids=["heartbeat", "a write that changes nothing shown"])
async def test_nothing_is_repainted_when_nothing_has_changed(
    make_viewer: MakeViewer, source: FakeSource, monkeypatch: pytest.MonkeyPatch, changed: int
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        painted: list[object] = []
        monkeypatch.setattr(Widget, "refresh", lambda self, *a, **k: painted.append(self))
        source.version += changed
        viewer.tick()
        await settle(pilot)
        assert painted == []


async def test_news_that_arrive_while_a_screen_is_taken_down_are_ignored(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await viewer.screen.query("*").remove()
        viewer.tick()
        await settle(pilot)
        viewer.say("still here")
        await settle(pilot)
        assert viewer.is_running


async def test_the_head_of_the_history_stands_over_its_columns(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "5")
        head, first = text_of(viewer, "#history-head"), text_of(viewer, "#history-list").splitlines()[0]
        assert head.index("operator") == first.index("several_rows")
        assert head.index("state") == first.index("running")


def test_no_default_key_is_one_a_multiplexer_takes() -> None:
    taken = {f"ctrl+{letter}" for letter in "abjosqz"}
    assert not taken & {k for key in KEYS for k in key.key.split(",")}
    assert len({key.id for key in KEYS}) == len(KEYS)
    used = [k for key in KEYS for k in key.key.split(",")]
    assert len(set(used)) == len(used)


async def test_ascii_screen_is_all_ascii(make_viewer: MakeViewer) -> None:
    viewer = make_viewer(ascii_only=True)
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        for number in "12345678":
            await press(pilot, number)
            lines = ["".join(s.text for s in strip) for strip in viewer.screen._compositor.render_strips()]
            assert all(row.isascii() for row in lines), number
