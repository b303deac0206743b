"""Every key of the table, pressed as a user would press it: one story a key, told for each way to type it."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from fake_source import FakeSource
from recorded_run import RUN
from textual.command import CommandPalette
from user import User

from kbtui.domain.event import CommandKind
from kbtui.tui.app import Viewer
from kbtui.tui.keys import KEYS
from kbtui.tui.screens.ask import AskLine, Confirm
from kbtui.tui.screens.dashboard import PANES, Dashboard
from kbtui.tui.screens.detail import Detail
from kbtui.tui.screens.help import Help
from kbtui.tui.screens.runs import Runs
from kbtui.tui.widgets.board import Board
from kbtui.tui.widgets.diff import DiffPane

MakeViewer = Callable[..., Viewer]
Story = Callable[[User, str], Awaitable[None]]
SIZE = (120, 40)
STORIES: dict[str, Story] = {}
RESUMED: list[str] = []


def story(key_id: str) -> Callable[[Story], Story]:
    def keep(told: Story) -> Story:
        STORIES[key_id] = told
        return told

    return keep


def test_every_key_of_the_table_has_a_story_and_every_story_a_key() -> None:
    assert set(STORIES) == {key.id for key in KEYS}


def resume(run: str) -> str:
    RESUMED.append(run)
    return f"run {run} taken up again"


#: What other terminals call a key is told to the end in `make test-full`.
SPELLINGS = [
    pytest.param(key.id, pressed, marks=[pytest.mark.slow] if n else [])
    for key in KEYS
    for n, pressed in enumerate(key.key.split(","))
]


@pytest.mark.parametrize(("key_id", "pressed"), SPELLINGS, ids=str)
async def test_a_key_does_what_the_table_says(
    make_viewer: MakeViewer, source: FakeSource, key_id: str, pressed: str
) -> None:
    RESUMED.clear()
    viewer = make_viewer(editor=lambda text, _name: text + "\n# mine\n", resume=resume)
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        await STORIES[key_id](user, pressed)


# Steering: asked, shown as pending until the engine has it, then done


@story("pause")
async def pauses_and_resumes(user: User, key: str) -> None:
    await user.press(key)
    assert user.asked == [("pause", "")]
    assert "» asked: pause" in user.text("#status")
    user.source.accept()
    await user.look_again()
    assert "» asked" not in user.text("#status")
    assert "paused, p resumes" in user.text("#header")
    await user.press(key)
    assert user.asked[-1] == ("resume", "")
    await user.press(key)
    assert user.asked[-1] == ("pause", "")  # of what is asked and not done yet, the last counts


@story("pin")
async def pins_the_waiting_candidate_under_the_cursor(user: User, key: str) -> None:
    await user.press("down", key)
    assert user.asked == [("pin", "c0038")]
    assert "»pin" in user.text("#cards")
    user.source.accept()
    await user.look_again()
    assert "⚑" in user.text("#cards")
    await user.press("down", "down", key)
    assert "waits for nothing" in user.said


@story("prune")
async def prunes_after_asking(user: User, key: str) -> None:
    await user.press(key)
    assert isinstance(user.viewer.screen, Confirm)
    await user.press("escape")
    assert user.asked == []
    await user.press(key, "y")
    assert user.asked == [("prune", "c0040")]


@story("promote")
async def promotes_a_finished_candidate(user: User, key: str) -> None:
    await user.press(key)
    assert "c0040 is running" in user.said
    await user.press("down", "down", "down", key)
    assert user.asked == [("promote", "c0037")]


@story("hint")
async def sends_a_hint_in_the_users_words(user: User, key: str) -> None:
    await user.press(key)
    assert isinstance(user.viewer.screen, AskLine)
    await user.press("enter")
    assert isinstance(user.viewer.screen, AskLine)
    await user.press(*"exp2", "enter")
    assert user.asked == [("hint", "exp2")]


@story("budget")
async def changes_the_budget_and_asks_before_one_that_is_spent(user: User, key: str) -> None:
    await user.press(key, *"60m", "enter")
    (command,) = user.source.asked
    assert command.kind is CommandKind.BUDGET
    assert json.loads(command.argument)["wall_s"] == 3600.0
    await user.press(key, *"1m", "enter")
    assert isinstance(user.viewer.screen, Confirm)
    await user.press("n")
    assert len(user.asked) == 1


@story("submit")
async def submits_what_the_editor_made_of_the_source(user: User, key: str) -> None:
    await user.press(key)
    (command,) = user.source.asked
    assert (command.kind.value, command.parent) == ("submit", "c0040")
    assert command.argument.endswith("# mine\n")


@story("stop")
async def stops_after_asking(user: User, key: str) -> None:
    await user.press(key)
    assert isinstance(user.viewer.screen, Confirm)
    await user.press("y")
    assert user.asked == [("stop", "")]
    await user.look_again()
    await user.press(key)
    assert "asked already" in user.said
    user.source.accept()
    await user.look_again()
    assert "stopping" in user.text("#header")
    await user.press(key)
    assert "stopping already" in user.said


@story("resume")
async def starts_a_lost_engine_again(user: User, key: str) -> None:
    await user.press(key)
    assert "the engine is alive" in user.said
    user.source.lose_engine()
    await user.look_again()
    await user.press(key)
    assert RESUMED == [RUN]


# Looking


@story("open")
async def opens_the_candidate(user: User, key: str) -> None:
    await user.press("down", key)
    screen = user.viewer.screen
    assert isinstance(screen, Detail)
    assert screen.candidate == "c0038"


@story("diff_base")
async def compares_with_another_each_time(user: User, key: str) -> None:
    titles = [user.title("#diff")]
    for _ in range(2):
        await user.press(key)
        titles.append(user.title("#diff"))
    assert ["parent" in t or "c0015 →" in t for t in titles] == [True, False, False]
    assert "(champion)" in titles[1]
    assert "(first kernel)" in titles[2]


@story("mark")
async def marks_and_unmarks(user: User, key: str) -> None:
    await user.press("down", key)
    assert user.dashboard.look.marked == "c0038"
    assert "● two rows" in user.text("#cards")
    await user.press(key)
    assert user.dashboard.look.marked is None


@story("next_change")
async def goes_to_the_next_change(user: User, key: str) -> None:
    await user.press(key)
    assert user.viewer.screen.query_one(DiffPane).place == "change 2 of 4"
    await user.press(key, key, key)
    assert "last change" in user.said


@story("previous_change")
async def goes_to_the_previous_change(user: User, key: str) -> None:
    await user.press(key)
    assert "first change" in user.said
    await user.press("right_square_bracket", "right_square_bracket", key)
    assert user.viewer.screen.query_one(DiffPane).place == "change 2 of 4"


@story("unified")
async def shows_the_diff_the_other_way(user: User, key: str) -> None:
    await user.press("4", "f")
    assert "│" in user.text("#diff")
    await user.press(key)
    assert "│" not in user.text("#diff")


@story("axis")
async def shows_the_curve_over_gpu_time(user: User, key: str) -> None:
    assert "0 wall time" in user.text("#live")
    await user.press(key)
    assert "0 GPU time" in user.text("#live")


@story("compare")
async def compares_the_mark_with_the_cursor(user: User, key: str) -> None:
    await user.press("down", "m", "up", key)
    assert user.panes == ["compare"]
    assert "c0038 and c0040" in user.title("#compare")


@story("board")
async def turns_the_list_into_a_board(user: User, key: str) -> None:
    await user.press(key)
    assert "too narrow" in user.said
    await user.press("f", key)
    board = user.viewer.screen.query_one(Board)
    assert not board.has_class("board")
    await user.press(key)
    assert board.has_class("board")
    assert user.viewer.focused is board.cards
    assert "c0015 champion" in user.text("#kanban")


@story("bests")
async def leaves_what_led_to_a_best(user: User, key: str) -> None:
    await user.press(key)
    assert "history (5)" in user.said
    await user.press("6", key)
    shown = user.text("#lineage")
    assert [name in shown for name in ("c0001", "c0009", "c0015", "c0037")] == [True, True, True, False]
    await user.press(key)
    assert "c0020" in user.text("#lineage")


@story("order")
async def orders_the_history(user: User, key: str) -> None:
    await user.press(key)
    assert "5 shows it" in user.said
    await user.press("5", key)
    assert "fastest first" in user.title("#history")
    assert user.text("#history-list").splitlines()[0].split()[2] == "c0015"


@story("filter")
async def filters_as_it_is_typed(user: User, key: str) -> None:
    await user.press(key, *"wrong")
    assert user.viewer.screen.query_one(Board).cards.n_rows == 4
    await user.press("escape")
    assert user.viewer.screen.query_one(Board).cards.n_rows == 40


@story("freeze")
async def holds_the_screen_still(user: User, key: str) -> None:
    await user.press(key)
    assert "FROZEN" in user.text("#header")
    await user.press(key)
    assert "FROZEN" not in user.text("#header")


@story("copy")
async def copies_the_source_and_says_where(user: User, key: str) -> None:
    await user.press(key)
    path = Path(user.viewer.said.path)
    assert path.name == "c0040.py"
    assert "ROWS" in path.read_text()


# Moving


@story("zoom")
async def gives_the_pane_the_whole_screen(user: User, key: str) -> None:
    await user.press("4", key)
    assert user.panes == ["diff"]
    await user.press(key)
    assert user.panes == ["rungs", "live", "bottleneck", "diff"]


def pane_story(number: int) -> Story:
    async def shows_the_pane(user: User, key: str) -> None:
        await user.press("2", key)
        assert user.dashboard.active == number
        assert PANES[number - 1] in user.panes
        focused = user.viewer.focused
        assert focused is not None
        assert any(w.id == PANES[number - 1] for w in focused.ancestors_with_self)

    return shows_the_pane


for _number in range(1, len(PANES) + 1):
    story(f"pane_{_number}")(pane_story(_number))


@story("next_pane")
async def goes_to_the_next_pane(user: User, key: str) -> None:
    await user.press(key)
    assert user.dashboard.active == 2
    await user.press(key, key, key)
    assert user.dashboard.active == 1


@story("previous_pane")
async def goes_to_the_previous_pane(user: User, key: str) -> None:
    await user.press(key)
    assert user.dashboard.active == 4


@story("back")
async def goes_back_one_step_at_a_time(user: User, key: str) -> None:
    await user.press("slash", *"r2", "enter", "5", key)
    assert user.dashboard.look.query == ""
    assert user.panes == ["history"]
    await user.press(key)
    assert user.panes == ["rungs", "live", "bottleneck", "diff"]
    await user.press(key)
    assert "nothing to go back from" in user.said


@story("runs")
async def lists_the_runs(user: User, key: str) -> None:
    await user.press(key)
    assert isinstance(user.viewer.screen, Runs)
    assert RUN in user.text("#runs-list")


# The program


@story("help")
async def helps_with_the_focused_pane(user: User, key: str) -> None:
    await user.press("6", key)
    assert isinstance(user.viewer.screen, Help)
    assert user.text("#help-lines").startswith("Lineage")
    await user.press("escape")
    assert isinstance(user.viewer.screen, Dashboard)


@story("palette")
async def offers_every_key_by_name(user: User, key: str) -> None:
    await user.press(key)
    assert isinstance(user.viewer.screen, CommandPalette)
    await user.press(*"pause")
    await user.viewer.workers.wait_for_complete()
    await user.settle()
    await user.press("enter")
    await user.settle()
    await user.settle()
    assert user.asked == [("pause", "")]


@story("leave")
async def leaves_and_the_search_goes_on(user: User, key: str) -> None:
    await user.press(key)
    assert user.viewer.return_value is not None
    assert user.viewer.return_value.engine_alive
    assert user.asked == []
