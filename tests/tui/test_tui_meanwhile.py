"""What happens between a key and its answer: the search goes on, texts are still being read, the store fails."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_source import FakeRun, FakeSource, moment_of
from recorded_run import RUN, recorded_earlier
from user import User

from kbtui.domain.event import Budget, CommandAccepted, CommandKind, Decision, RungCompleted
from kbtui.errors import UsageError
from kbtui.tui.app import Viewer, ViewerOptions
from kbtui.tui.editor import edit
from kbtui.tui.moment import Delta, Moment, Older
from kbtui.tui.screens.ask import Confirm
from kbtui.tui.screens.dashboard import Dashboard
from kbtui.tui.screens.detail import Detail
from kbtui.tui.screens.runs import Runs
from kbtui.tui.view.log import command_words
from kbtui.tui.view.steer import budget_argument, parse_budget
from kbtui.tui.widgets.line_list import LineList

MakeViewer = Callable[..., Viewer]
SIZE = (140, 40)


class SlowExecutor(Executor):
    """Runs each job at once until ``slow`` is set, from then on when the test lets the store answer."""

    def __init__(self) -> None:
        self.slow = False
        self.jobs: deque[Callable[[], None]] = deque()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.jobs.append(lambda: future.set_result(fn(*args, **kwargs)))
        if not self.slow:
            self.answer()
        return future

    def answer(self) -> None:
        while self.jobs:
            self.jobs.popleft()()


def slow_viewer(source: FakeSource, folder: Path, editor: Callable[[str, str], str | None]) -> Viewer:
    options = ViewerOptions(refresh_hz=0.01, copy_folder=folder)
    return Viewer(source, RUN, options, executor=SlowExecutor(), editor=editor)


def executor_of(viewer: Viewer) -> SlowExecutor:
    executor = viewer.feed._executor
    assert isinstance(executor, SlowExecutor)
    return executor


def finish(source: FakeSource, candidate: str) -> None:
    """The engine prunes a candidate while someone looks."""
    done = next(
        e.event for e in reversed(source.recorder.envelopes)
        if isinstance(e.event, RungCompleted) and e.event.candidate == candidate
    )  # fmt: skip
    source.tell(replace(done, rung=done.rung + 1, decision=Decision.PRUNE, new_incumbent=False))
    assert source.engine_status is not None
    source.engine_status = replace(source.engine_status, candidate=None, rung=None)


async def test_what_was_confirmed_is_not_asked_where_the_search_has_done_it_meanwhile(
    make_viewer: MakeViewer, source: FakeSource
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        await user.press("x")
        assert isinstance(viewer.screen, Confirm)
        finish(source, "c0040")
        await user.look_again()
        await user.press("y")
        assert user.asked == []
        assert "already; nothing to prune" in user.said


async def test_the_second_of_two_viewers_that_stop_a_search_is_told_so(
    make_viewer: MakeViewer, source: FakeSource
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        await user.press("S")
        source.insert_command(RUN, CommandKind.STOP, "", "", None)  # the other viewer
        await user.look_again()
        await user.press("y")
        assert user.asked == [("stop", "")]
        assert "asked already" in user.said


@pytest.mark.parametrize(
    ("keys", "asked", "frozen"),
    [
        ("ppp", [("pause", ""), ("resume", ""), ("pause", "")], False),
        ("ppp", [("pause", ""), ("resume", ""), ("pause", "")], True),
        ("PP", [("pin", "c0040")], False),
        ("xyxy", [("prune", "c0040")], True),
        ("SySy", [("stop", "")], False),
    ],
)
async def test_a_second_key_knows_of_the_first_before_the_store_does(
    source: FakeSource, tmp_path: Path, keys: str, asked: list[tuple[str, str]], frozen: bool
) -> None:
    viewer = slow_viewer(source, tmp_path, lambda text, _name: None)
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        await user.press(*(["space"] if frozen else []))
        executor_of(viewer).slow = not frozen
        await user.press(*keys)
        assert frozen or "y" in keys or "» asked:" in user.text("#status")
        executor_of(viewer).answer()
        await user.settle()
        assert user.asked == asked


async def test_two_budgets_on_top_of_each_other_add_up(source: FakeSource, tmp_path: Path) -> None:
    viewer = slow_viewer(source, tmp_path, lambda text, _name: None)
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        executor_of(viewer).slow = True
        for _ in range(2):
            await user.press("b", *"+10m", "enter")
        executor_of(viewer).answer()
        await user.settle()
        assert [argument for _, argument in user.asked] == [
            budget_argument(Budget(wall_s=seconds)) for seconds in (2400.0, 3000.0)
        ]


async def test_what_could_not_be_asked_is_not_pending(source: FakeSource, make_viewer: MakeViewer) -> None:
    def full(*_: object) -> int:
        raise UsageError("the disk is full", "make room")

    viewer = make_viewer()
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        source.insert_command = full  # type: ignore[method-assign]
        await user.press("P")
        assert "the disk is full" in user.said
        assert "asked" not in user.text("#status")
        await user.press("P")
        assert "the disk is full" in user.said


@pytest.mark.parametrize("hint", ["coalesce", "c9999"])
async def test_a_hint_that_looks_like_a_candidate_is_none(
    make_viewer: MakeViewer, source: FakeSource, hint: str
) -> None:
    source.tell(CommandAccepted(1, CommandKind.HINT, hint))
    viewer = make_viewer()
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        await user.press("8", "enter", "escape", "P", "x", "escape", "y", "m", "c")
        assert user.selected != hint
        assert viewer.return_code in (None, 0)


@pytest.mark.parametrize("pane", ["5", "6", "8"])
@pytest.mark.parametrize("size", [(140, 40), (80, 24)])
async def test_a_key_is_about_the_row_with_the_cursor_whichever_pane_one_comes_from(
    make_viewer: MakeViewer, source: FakeSource, pane: str, size: tuple[int, int]
) -> None:
    def under_cursor() -> str | None:
        lines = viewer.screen.query_one({"5": "#history-list", "6": "#lineage", "8": "#log"}[pane], LineList)
        key = lines.key
        return user.dashboard.selecting.candidate_of_event(key) if pane == "8" else key

    viewer = make_viewer()
    async with viewer.run_test(size=size) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        await user.press(pane, "down", "down", "down")
        assert user.selected == under_cursor()
        await user.press("1")
        assert user.selected == user.dashboard.query_one("#rungs").cards.key  # type: ignore[attr-defined]
        await user.press("down", "down", pane)
        assert user.selected == under_cursor()
        await user.press("7", "1", "home", pane)
        assert user.selected == under_cursor()
        await user.press("escape")
        assert user.selected == user.dashboard.query_one("#rungs").cards.key  # type: ignore[attr-defined]


async def test_a_copy_waits_for_the_source_and_writes_no_empty_file(source: FakeSource, tmp_path: Path) -> None:
    viewer = slow_viewer(source, tmp_path, lambda text, _name: None)
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        viewer.feed._texts.clear()
        executor_of(viewer).slow = True
        await user.press("enter", "y")
        assert not list(tmp_path.iterdir())
        executor_of(viewer).answer()
        await user.settle()
        commit = next(t.commit for t in moment_of(source).state.tried.values() if t.candidate.id == "c0040")
        assert (tmp_path / "c0040.py").read_text() == source.source(commit)


async def test_a_source_that_cannot_be_read_opens_no_editor_and_writes_no_file_later(
    source: FakeSource, tmp_path: Path
) -> None:
    opened: list[str] = []
    viewer = slow_viewer(source, tmp_path, lambda text, name: opened.append(name))
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        viewer.feed._texts.clear()
        sources, source.recorder.sources = source.recorder.sources, {}
        await user.press("e", "y")
        assert "could not be read" in user.said
        source.recorder.sources = sources
        await user.press("down", "up")
        assert opened == []
        assert not list(tmp_path.iterdir())
        await user.press("e")
        assert opened == ["c0040.py"]


async def test_an_editor_does_not_open_over_a_question_that_was_asked_since(source: FakeSource, tmp_path: Path) -> None:
    opened: list[str] = []
    viewer = slow_viewer(source, tmp_path, lambda text, name: opened.append(name))
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        viewer.feed._texts.clear()
        executor_of(viewer).slow = True
        await user.press("e", "S")
        executor_of(viewer).answer()
        await user.settle()
        assert opened == []
        assert isinstance(viewer.screen, Confirm)
        await user.press("n", "e")
        executor_of(viewer).answer()
        await user.settle()
        assert opened == ["c0040.py"]


async def test_a_run_opened_again_while_it_is_being_read_is_whole(source: FakeSource, tmp_path: Path) -> None:
    viewer = slow_viewer(source, tmp_path, lambda text, _name: None)
    source.others["softmax-6"] = recorded_earlier()
    source.rows = [FakeRun()]
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        n_known = len(viewer.moment.state.tried) if viewer.moment else 0
        finish(source, "c0040")
        late = list(viewer.feed._reading.poll()) if viewer.feed._reading else []  # read, and told too late
        await user.press("r", "enter")
        assert isinstance(viewer.screen, Dashboard)
        viewer.open_run(RUN)
        for news in late:
            viewer._tell(news)
        await user.look_again()
        await user.look_again()
        assert viewer.moment is not None
        assert viewer.moment.known
        assert len(viewer.moment.state.tried) == n_known


@pytest.mark.parametrize("turns", [0, 1, 3, 8, 20])
async def test_a_run_may_be_left_while_its_screen_is_being_made(
    make_viewer: MakeViewer, source: FakeSource, turns: int
) -> None:
    source.rows = [FakeRun()]
    viewer = make_viewer(run=None)
    async with viewer.run_test(size=SIZE) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        for _ in range(3):
            viewer.open_run(RUN)
            for _ in range(turns):
                await asyncio.sleep(0)
            viewer.list_runs()
            for _ in range(turns):
                await asyncio.sleep(0)
        await user.settle()
        assert isinstance(viewer.screen, Runs)


def test_a_moment_leaves_out_what_goes_on_from_what_it_does_not_know(source: FakeSource) -> None:
    envelopes = tuple(source.envelopes(RUN, -1))
    moment = Moment(RUN)
    moment.apply(Delta(RUN, envelopes[50:], None, (), 0, (), 1, after_seq=49))
    moment.add(Older(RUN, envelopes[20:40]))
    assert not moment.journal
    moment.apply(Delta(RUN, envelopes, None, (), 0, (), 2))
    assert moment.n_events == len(envelopes)


@pytest.mark.parametrize("place", ["enter", "r"])
async def test_every_screen_says_that_the_window_is_too_small_for_it(
    make_viewer: MakeViewer, source: FakeSource, place: str
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=(59, 15)) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        await user.press(place)
        assert isinstance(viewer.screen, Detail) is (place == "enter")
        assert viewer.screen.query_one("#small").display
        await pilot.resize_terminal(80, 24)
        await user.settle()
        assert not viewer.screen.query_one("#small").display


@pytest.mark.parametrize(
    "said",
    [
        "9" * 400 + "h",
        "1e9h",
        "-5m",
        "nan",
        "inf",
        "0x10m",
        "99999999d",
        "+" + "9" * 30 + "s",
        "9" * 5000 + " candidates",
    ],
)
async def test_a_budget_that_is_none_is_refused_in_a_line(
    make_viewer: MakeViewer, source: FakeSource, said: str
) -> None:
    with pytest.raises(ValueError, match="say") as refused:
        parse_budget(said, Budget(wall_s=60.0))
    assert len(str(refused.value)) < 80


@pytest.mark.parametrize("said", ["30m", "+10m", "8784h", "gpu 5m", "gpu +5m", "200 candidates", "999999999 c", "none"])
def test_a_budget_that_is_one_can_be_said(said: str) -> None:
    assert command_words(CommandKind.BUDGET, budget_argument(parse_budget(said, Budget(wall_s=60.0))))


@pytest.mark.parametrize(
    ("editor", "why"),
    [
        ("'", "no command"),
        ("/no/such/editor", "cannot be started"),
        ("rm", "cannot be given"),
        ('sh -c \'printf "\\377" > "$0"\'', "not UTF-8"),
    ],
)
def test_an_editor_that_fails_is_a_line_and_not_the_end(monkeypatch: pytest.MonkeyPatch, editor: str, why: str) -> None:
    monkeypatch.setenv("VISUAL", editor)
    with pytest.raises(UsageError, match=why):
        edit("x = 1\n", "c0001.py")


def test_no_room_for_the_editors_file_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "true")
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    with pytest.raises(UsageError, match="cannot be given"):
        edit("x = 1\n", "c0001.py")


def test_an_editor_of_blanks_is_vi_and_a_source_is_utf8_in_any_locale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "vi"
    script.write_text('#!/bin/sh\nprintf "# µ\\n" >> "$1"\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("VISUAL", "   ")
    monkeypatch.setattr("locale.getpreferredencoding", lambda *_: "ascii")
    assert edit("# é\n", "c0001.py") == "# é\n# µ\n"
