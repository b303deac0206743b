"""The viewer as a whole: how it fits a screen, what it shows without a run, how it is left, what it costs."""

import pytest
from fake_source import FakeRun, FakeSource
from pressing import WIDE, MakeViewer, dashboard, press, settle, shown, text_of
from recorded_plans import plans
from recorded_run import recorded
from textual.widget import Widget

from kbtui.domain.event import EndReason
from kbtui.tui.keys import KEYS
from kbtui.tui.screens.dashboard import Dashboard
from kbtui.tui.screens.help import Help
from kbtui.tui.screens.runs import Runs
from kbtui.tui.widgets.board import Board


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


async def test_full_screen_and_back(make_viewer: MakeViewer) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "4", "f")
        assert shown(viewer) == ["diff"]
        await press(pilot, "escape")
        assert shown(viewer) == ["rungs", "live", "bottleneck", "diff"]


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
