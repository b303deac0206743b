"""Any keys in any order and haste, windows of any size, a search that goes on: the viewer stays, and says what it does.

A seeded sample of walks in CI; many more in ``make test-full``.
"""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from fake_source import FakeRun, FakeSource
from recorded_plans import plans
from recorded_run import RUN, recorded, recorded_earlier
from textual import events
from textual.widgets import Input
from user import User

from kbtui.domain.event import EndReason
from kbtui.errors import UsageError
from kbtui.tui.app import Viewer
from kbtui.tui.keys import KEYS

MakeViewer = Callable[..., Viewer]
N_STEPS, MOST_AT_ONCE = 40, 5
SIZES = [(140, 40), (80, 24), (60, 16), (59, 15), (200, 60), (116, 28), (20, 5), (300, 100)]
LISTS = ["up", "down", "left", "right", "pageup", "pagedown", "home", "end", "g", "shift+g", "j", "k", "tab"]
#: Leaving ends a walk; the picture that the palette can take writes a file.
PRESSED = [
    *(key for k in KEYS if k.id not in ("leave", "palette") for key in k.key.split(",")), *LISTS, *LISTS, "y", "n",
    "escape", "enter", "c", "0", "z", "backspace", "delete", "ctrl+w",
]  # fmt: skip


def no_candidate(source: FakeSource) -> None:
    source.recorder.envelopes, source.live = source.recorder.envelopes[:2], []


def no_event(source: FakeSource) -> None:
    source.recorder.envelopes, source.live, source.engine_status = [], [], None


def one_candidate(source: FakeSource) -> None:
    source.recorder.envelopes, source.live = source.recorder.envelopes[:3], []


def ended(source: FakeSource) -> None:
    source.recorder, source.live = recorded(ended=EndReason.BUDGET), []


def as_recorded(source: FakeSource) -> None:
    """The run goes on."""


STATES = [as_recorded, no_candidate, no_event, one_candidate, ended]


def happens(source: FakeSource, chance: random.Random) -> None:
    """Something that the viewer does not ask for."""
    match chance.choice(["accept", "lose", "back", "idle", "fail", "mend", "propose"]):
        case "accept":
            source.accept()
        case "lose" if source.engine_status is not None:
            source.lose_engine()
        case "back" if source.engine_status is not None:
            source.engine_status = replace(source.engine_status, alive=True, beat_age_s=0.1)
        case "idle" if source.engine_status is not None:
            source.engine_status = replace(source.engine_status, candidate=None, rung=None)
        case "fail":
            source.failing = UsageError("the index cannot be read", "mend it")
        case "mend":
            source.failing = None
        case "propose" if len(source.recorder.envelopes) > 3:
            source.propose(chance.randrange(100, 900), chance.choice(plans()))
    source.version += 1


SEEDS = [pytest.param(n, marks=[] if n < 1 else [pytest.mark.slow]) for n in range(60)]


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_walk_over_the_keys_ends_the_viewer(make_viewer: MakeViewer, source: FakeSource, seed: int) -> None:
    chance = random.Random(seed)
    STATES[seed % len(STATES)](source)
    source.rows, source.others = [FakeRun(), FakeRun(run="softmax-6")], {"softmax-6": recorded_earlier()}
    viewer = make_viewer(
        chance.choice([RUN, RUN, None]), editor=lambda text, _name: chance.choice([None, text + "\n# mine\n"]),
        ascii_only=chance.random() < 0.2, resume=lambda run: f"{run} taken up again",
    )  # fmt: skip
    walk: list[object] = []
    async with viewer.run_test(size=chance.choice(SIZES)) as pilot:
        user = User(viewer, pilot, source)
        for _ in range(N_STEPS):
            match chance.random():
                case luck if luck < 0.1:
                    walk.append(size := chance.choice(SIZES))
                    await pilot.resize_terminal(*size)
                case luck if luck < 0.25:
                    happens(source, chance)
                    viewer.tick()
                case luck if luck < 0.3:
                    viewer.post_message(events.Paste("pasted\nwords"))
                case _:
                    for key in chance.choices(PRESSED, k=chance.randint(1, MOST_AT_ONCE)):
                        walk.append(key)
                        viewer.post_message(events.Key(key, key if len(key) == 1 else None))
            if chance.random() < 0.4:
                await user.settle()
        await user.settle()
        assert viewer.is_running, walk
        for _ in range(4):
            await user.press("escape")
        assert not isinstance(viewer.focused, Input), walk
        await user.press("question_mark")
        assert viewer.screen.query("#help-lines"), walk
