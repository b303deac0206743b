"""Steering as a person does it: what is asked of the engine, what is asked back first, what is refused and why."""

import json

from fake_source import FakeSource
from pressing import WIDE, MakeViewer, press, settle, text_of
from recorded_run import RUN
from textual.widgets import Input

from kbtui.domain.event import CommandKind
from kbtui.tui.screens.ask import AskLine, Confirm


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


async def test_keys_can_be_remapped_by_id(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer(keymap=(("pause", "w"),))
    async with viewer.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        assert [c.kind for c in source.asked] == [CommandKind.PAUSE]
