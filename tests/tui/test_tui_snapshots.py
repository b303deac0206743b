"""Pictures of the screens at three sizes, compared with the kept ones (``--snapshot-update`` after looking)."""

from collections.abc import Callable
from typing import Any

import pytest
from fake_source import FakeRun, FakeSource
from recorded_run import recorded, recorded_earlier

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.event import EndReason
from kbtui.tui.app import Viewer

MakeViewer = Callable[..., Viewer]
SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40", "200x60"])
def test_dashboard(make_viewer: MakeViewer, snap_compare: Any, size: tuple[int, int]) -> None:
    assert snap_compare(make_viewer(), terminal_size=size)


@pytest.mark.parametrize(
    "key", list("2345678"), ids=["live", "bottleneck", "diff", "history", "lineage", "compare", "log"]
)
def test_each_pane_at_80x24(make_viewer: MakeViewer, snap_compare: Any, key: str) -> None:
    assert snap_compare(make_viewer(), terminal_size=(80, 24), press=[key])


def test_light_theme(make_viewer: MakeViewer, snap_compare: Any) -> None:
    assert snap_compare(make_viewer(theme="kbtui-light"), terminal_size=(120, 40))


def test_sixteen_colours(make_viewer: MakeViewer, snap_compare: Any) -> None:
    assert snap_compare(make_viewer(theme="ansi-dark"), terminal_size=(120, 40))


def test_ascii(make_viewer: MakeViewer, snap_compare: Any) -> None:
    assert snap_compare(make_viewer(ascii_only=True), terminal_size=(120, 40))


@pytest.mark.parametrize("page", list("1234"), ids=["source", "gate", "samples", "profile"])
def test_candidate(make_viewer: MakeViewer, snap_compare: Any, page: str) -> None:
    assert snap_compare(make_viewer(), terminal_size=(120, 40), press=["5", "o", "enter", page])


def test_diff_on_the_whole_screen(make_viewer: MakeViewer, snap_compare: Any) -> None:
    assert snap_compare(make_viewer(), terminal_size=(200, 60), press=["4", "f", "d", "d", "right_square_bracket"])


def test_two_runs(make_viewer: MakeViewer, source: FakeSource, snap_compare: Any) -> None:
    source.rows, source.others = [FakeRun(), FakeRun(run="softmax-6")], {"softmax-6": recorded_earlier()}
    assert snap_compare(make_viewer(None), terminal_size=(200, 60), press=["down", "m", "up", "c"])


def test_an_ended_run_opens_on_its_champion(make_viewer: MakeViewer, source: FakeSource, snap_compare: Any) -> None:
    source.recorder, source.live = recorded(ended=EndReason.BUDGET), []
    assert snap_compare(make_viewer(), terminal_size=(120, 40))


def test_modelled(make_viewer: MakeViewer, source: FakeSource, snap_compare: Any) -> None:
    source.recorder, source.live = recorded(DATA_SHEETS["a100"]), []
    assert snap_compare(make_viewer(), terminal_size=(120, 40))


def test_before_the_first_candidate(make_viewer: MakeViewer, source: FakeSource, snap_compare: Any) -> None:
    source.recorder.envelopes, source.live = source.recorder.envelopes[:2], []
    assert snap_compare(make_viewer(), terminal_size=(120, 40))
