"""attach, and the viewer after run: on this terminal, once as text, or for a browser. Effects: the terminal."""

import gc
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kbtui.commands.where import brief_result, open_reader, pick_run
from kbtui.domain.event import Budget
from kbtui.engine.spec import RunSpec
from kbtui.errors import EngineError, ExitCode
from kbtui.terminal_guard import guard_terminal

if TYPE_CHECKING:
    from kbtui.config import Settings

#: A snapshot's size where nothing says another, and the smallest and the largest there is: columns and rows.
SNAPSHOT_SIZE, SMALLEST, LARGEST = (120, 40), (60, 16), (1_000, 500)


@dataclass(frozen=True, slots=True)
class Look:
    """How the viewer is drawn, and what it may do.

    ``refresh_hz``: most redraws a second; ``theme``: None for the terminal's; ``keys``: key ids to other keys.
    """

    refresh_hz: float
    ascii_only: bool
    theme: str | None
    readonly: bool = False
    keys: dict[str, str] = field(default_factory=dict)
    copy_folder: Path | None = None

    @classmethod
    def of(cls, settings: "Settings") -> "Look":
        return cls(
            settings.refresh_hz,
            settings.ascii_only,
            settings.theme,
            settings.readonly,
            settings.keys,
            settings.copy_folder,
        )


def check_look(look: Look) -> None:
    """Raises UsageError on a theme or a key that is not there: before a search begins that nobody could look at."""
    if look.theme is not None:
        from kbtui.tui.theme import check_theme

        check_theme(look.theme)
    if look.keys:
        from kbtui.tui.keymap import keymap_of

        keymap_of(look.keys)


def draws(stream: TextIO | None) -> bool:
    """Whether what the viewer draws with can be written in a stream's encoding: not so in a locale without UTF-8."""
    try:
        "╭▸█×".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def view(workspace: Path, run: str | None, look: Look) -> ExitCode:
    """The viewer until the user leaves it; then where things stand and how to come back."""
    back = " ".join(["kbtui attach", *([run] if run else []), f"--workspace {shlex.quote(str(workspace))}"])
    give_back = guard_terminal(f"kbtui: the viewer was killed; the search was left as it is. Come back with: {back}")
    try:
        return _view(workspace, run, look)
    finally:
        give_back()


def _view(workspace: Path, run: str | None, look: Look) -> ExitCode:
    gc.disable()  # what is imported from here on stays; the viewer collects again once it is on the screen
    from kbtui.tui.run import run_viewer

    reader = open_reader(workspace)
    run = pick_run(reader, run) if run else None
    left = run_viewer(
        reader,
        run,
        refresh_hz=look.refresh_hz,
        ascii_only=look.ascii_only or not draws(sys.__stderr__),  # which is what Textual draws on
        readonly=look.readonly,
        theme=look.theme,
        copy_folder=look.copy_folder or workspace / "copied",
        resume=None if look.readonly else _taker_up(workspace),
        keys=look.keys,
    )
    if left.problem:
        raise EngineError(left.problem)
    shown = left.run or run
    if shown is None:
        return ExitCode.DONE
    from kbtui.commands.run import print_result

    print_result(workspace, brief_result(reader, shown), as_json=False)
    where = shlex.quote(str(workspace))
    if left.engine_alive and not left.ended:
        print(f"the search goes on; come back with: kbtui attach {shown} --workspace {where}")
    elif not left.ended:
        print(f"the engine is not running; go on with: kbtui resume {shown} --workspace {where}")
    return ExitCode.DONE


def _taker_up(workspace: Path) -> Callable[[str], str]:
    """Starts an engine on a run of the workspace and says so."""

    def take_up(name: str) -> str:
        from kbtui.config import load_settings
        from kbtui.launch import start_detached

        set_up = load_settings()
        spec = RunSpec(
            str(workspace), "", run=name, budget=Budget(), budget_given=False, ollama_host=set_up.ollama_host,
            llm_url=set_up.llm_url,
        )  # fmt: skip
        return f"run {start_detached(spec, workspace / 'engine.log')} taken up again"

    return take_up


def snapshot(workspace: Path, run: str | None, look: Look) -> ExitCode:
    """The viewer's screen once, as plain text on stdout; COLUMNS and LINES size it, or the terminal does."""
    from kbtui.tui.run import render_text

    reader = open_reader(workspace)
    name = pick_run(reader, run)
    columns, rows = (
        min(max(asked, least), most)
        for asked, least, most in zip(shutil.get_terminal_size(SNAPSHOT_SIZE), SMALLEST, LARGEST, strict=True)
    )
    sys.stdout.write(render_text(reader, name, (columns, rows), look.ascii_only or not draws(sys.stdout)))
    return ExitCode.DONE
