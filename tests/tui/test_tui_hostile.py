"""What a model, a compiler or a person wrote as a command to the terminal: it never gets there."""

import dataclasses
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest
from fake_source import FakeRun, FakeSource
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from textual import events
from textual.color import Color
from user import User

from kbtui.domain.event import CommandAccepted, CommandKind
from kbtui.errors import UsageError
from kbtui.tui.app import Viewer
from kbtui.tui.safe import NothingButText, shown

MakeViewer = Callable[..., Viewer]
#: Clears the screen, writes the clipboard, sets the title, in seven and eight bits; turns text round; ends lines.
COMMANDS = (
    "\x1b[2J\x1b]52;c;AAAA\x07\x9b31m\x85\u202etxet\u2066\r\n\x0b\x0c\x00\x7f\t\u2028"
    "中文 e\u0301 👩\u200d💻 [bold]x[/bold] [@click=app.leave]q[/]"
)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
#: What names something else in the record, and must keep its name.
_NAMES = {
    "candidate",
    "id",
    "run",
    "commit",
    "sha256",
    "source_sha",
    "parent",
    "parents",
    "against",
    "hint",
    "generator",
}


def spoiled(value: Any, name: str = "") -> Any:
    """A record in which every text that names nothing else ends with commands to the terminal."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value, **{f.name: spoiled(getattr(value, f.name), f.name) for f in dataclasses.fields(value) if f.init}
        )
    if isinstance(value, tuple):
        return tuple(spoiled(item, name) for item in value)
    if isinstance(value, str) and not isinstance(value, StrEnum) and name not in _NAMES:
        return f"{value}{COMMANDS}"
    return value


@pytest.fixture
def hostile(source: FakeSource) -> FakeSource:
    """The recorded run as a hostile model would have it: records, kernels, prompts, hints, what is asked."""
    source.tell(CommandAccepted(1, CommandKind.HINT, "use \x1b[31mred"))
    source.recorder.envelopes = [dataclasses.replace(e, event=spoiled(e.event)) for e in source.recorder.envelopes]
    source.recorder.sources = {sha: f"{text}\n# {COMMANDS}\nx = 1\n" for sha, text in source.recorder.sources.items()}
    source.rows = [FakeRun(problem=f"p{COMMANDS}", device=f"d{COMMANDS}")]
    artifact = source.artifact
    source.artifact = lambda sha: artifact(sha) + f"\n{COMMANDS}".encode()  # type: ignore[method-assign]
    return source


def painted(viewer: Viewer) -> str:
    return "\n".join(strip.text for strip in viewer.screen._compositor.render_strips())


PLACES = [*"12345678", *(f"enter {n}" for n in "123456"), "x", "h", "b", "?", "r", "ctrl+p"]


@pytest.mark.parametrize(
    ("size", "ascii_only"), [((140, 40), False), pytest.param((60, 16), True, marks=pytest.mark.slow)]
)
async def test_no_screen_sends_a_control_character_that_was_written_elsewhere(
    make_viewer: MakeViewer, hostile: FakeSource, size: tuple[int, int], ascii_only: bool
) -> None:
    viewer = make_viewer(ascii_only=ascii_only)
    async with viewer.run_test(size=size) as pilot:
        user = User(viewer, pilot, hostile)
        await user.settle()
        for place in PLACES:
            await user.press(*place.split())
            text = painted(viewer)
            assert not _CONTROL.search(text.replace("\n", "")), place
            assert not ascii_only or text.isascii(), place
            widths = {strip.cell_length for strip in viewer.screen._compositor.render_strips()}
            assert widths == {size[0]}, place
            if place == "r":
                await user.press("enter")
            else:
                await user.press("escape", "escape")
        viewer.say(f"said {COMMANDS}")
        await user.settle()
        assert not _CONTROL.search(painted(viewer).replace("\n", ""))


async def test_an_error_and_a_paste_are_as_harmless(make_viewer: MakeViewer, source: FakeSource) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=(100, 30)) as pilot:
        user = User(viewer, pilot, source)
        await user.settle()
        for key in ("h", "b", "slash"):
            await user.press(key)
            viewer.post_message(events.Paste(f"9{COMMANDS}" * 4000))
            await user.settle()
            await user.press("enter")
            assert not _CONTROL.search(painted(viewer).replace("\n", "")), key
            await user.press("escape", "escape")
        source.failing, source.version = UsageError(f"cannot {COMMANDS}", "do"), 7
        await user.look_again()
        assert "cannot" in user.said
        assert not _CONTROL.search(painted(viewer).replace("\n", ""))


async def test_a_control_character_in_a_kernel_is_seen_and_copied_as_it_is(
    make_viewer: MakeViewer, hostile: FakeSource
) -> None:
    viewer = make_viewer()
    async with viewer.run_test(size=(140, 40)) as pilot:
        user = User(viewer, pilot, hostile)
        await user.settle()
        await user.press("enter", "end")
        assert "␛[2J␛]52" in user.text("#document")
        await user.press("y")
        assert COMMANDS.encode() in (viewer.options.copy_folder / "c0040.py").read_bytes()


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_what_is_shown_holds_nothing_to_obey_and_as_many_lines(text: str) -> None:
    assert not _CONTROL.search(shown(text).replace("\n", ""))
    assert shown(text).count("\n") == text.count("\n")


@given(st.text(st.characters(codec="utf-8"), max_size=60), st.booleans())
def test_a_part_of_a_line_keeps_its_cells_when_it_is_cleaned(text: str, ascii_only: bool) -> None:
    before = Segment(text)
    (after,) = NothingButText(ascii_only).apply([before], Color(0, 0, 0))
    assert not _CONTROL.search(after.text)
    assert not ascii_only or after.text.isascii()
    assert after.cell_length == before.cell_length
