"""The lines of keys and tabs: what a search as it stands can be asked, in whatever width there is."""

from collections.abc import Callable

import pytest
from fake_source import FakeEngine, FakeSource
from recorded_run import RUN, recorded

from kbtui.domain.event import EndReason
from kbtui.tui.app import Viewer
from kbtui.tui.run import render_text
from kbtui.tui.widgets.tabs import TabLine

MakeViewer = Callable[..., Viewer]

GOES_ON = FakeSource()
LOST = FakeSource(engine=FakeEngine(alive=False, beat_age_s=9.0))
ENDED = FakeSource(recorded(ended=EndReason.BUDGET), FakeEngine(alive=False))


def keys_of(source: FakeSource, width: int) -> str:
    return render_text(source, RUN, (width, 44)).splitlines()[-1]


def test_a_search_that_goes_on_can_be_paused_and_left() -> None:
    bar = keys_of(GOES_ON, 150)
    assert "p pause" in bar
    assert bar.endswith("q leave (search goes on)")
    assert "R resume" not in keys_of(GOES_ON, 220)


@pytest.mark.parametrize("source", [LOST, ENDED], ids=["lost", "ended"])
@pytest.mark.parametrize("width", [60, 80, 150, 220])
def test_one_that_does_not_go_on_can_be_taken_up_again(source: FakeSource, width: int) -> None:
    bar = keys_of(source, width)
    assert "R resume" in bar
    assert "p pause" not in bar
    assert "S stop" not in bar
    assert bar.endswith("q leave")


@pytest.mark.parametrize("width", [60, 65, 66, 79, 80, 119])
def test_every_tab_is_whole_in_every_width(width: int) -> None:
    tabs = render_text(GOES_ON, RUN, (width, 20)).splitlines()[1]
    assert tabs.startswith("[1 Rungs]")
    assert tabs.rstrip().endswith("8 Log")


@pytest.mark.parametrize("width", [60, 66])
async def test_the_chosen_tab_stands_apart(make_viewer: MakeViewer, width: int) -> None:
    async with make_viewer().run_test(size=(width, 20)) as pilot:
        for key in "2345678":
            await pilot.press(key)
            await pilot.pause()
            tabs = pilot.app.screen.query_one(TabLine).render().plain
            assert f" [{key} " in tabs.replace("  ", " ")
            assert len(tabs) <= width
