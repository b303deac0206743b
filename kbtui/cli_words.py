"""The words that commands share: options and arguments with their help, and what turns them into values."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbtui.cli_completion import complete_candidate, complete_device, complete_problem, complete_run
from kbtui.errors import UsageError

if TYPE_CHECKING:
    from kbtui.commands.view import Look
    from kbtui.config import Settings
    from kbtui.domain.event import Budget

Workspace = Annotated[Path | None, typer.Option("--workspace", "-w", help="Folder of runs; default ./.kbtui")]
RunName = Annotated[
    str | None,
    typer.Argument(metavar="RUN", help="A run's name; default the latest", autocompletion=complete_run),
]
RunOption = Annotated[
    str | None, typer.Option("--run", help="A run's name; default the latest", autocompletion=complete_run)
]
ProblemName = Annotated[
    str,
    typer.Argument(help="A folder, a sample's name, or a KernelBench file", autocompletion=complete_problem),
]
CandidateName = Annotated[
    str,
    typer.Argument(help="An id as c0031, or best, champion, first", autocompletion=complete_candidate),
]
AsJson = Annotated[bool, typer.Option("--json", help="Data on stdout and nothing else")]
Ascii = Annotated[bool | None, typer.Option("--ascii", help="Draw with ASCII characters only", show_default=False)]
Refresh = Annotated[float | None, typer.Option("--refresh", help="Most redraws a second; lower it on a slow line")]
Readonly = Annotated[
    bool | None, typer.Option("--readonly", help="Only look: no key asks anything of a search", show_default=False)
]
Theme = Annotated[str | None, typer.Option("--theme", help="kbtui-dark, kbtui-light, or a Textual theme's name")]
Once = Annotated[bool, typer.Option("--once", help="Print the screen once as plain text, COLUMNS wide, and leave")]
DeviceKey = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        help="auto, cuda:N, model:a100, model:h100, model:h200, replay:POOL",
        autocompletion=complete_device,
    ),
]
ProblemPath = Annotated[str | None, typer.Option("--problem", help="The run's problem, where it is elsewhere now")]
Headless = Annotated[bool, typer.Option("--headless", help="No viewer: the engine in the foreground")]
Detach = Annotated[bool, typer.Option("--detach", help="Start the engine and return at once")]
BudgetText = Annotated[str | None, typer.Option("--budget", "-b", help="Wall time to spend, as 90s, 10m or 1h30m")]
Candidates = Annotated[int | None, typer.Option("--candidates", min=1, help="Most candidates to try")]
GpuBudget = Annotated[str | None, typer.Option("--gpu-budget", help="GPU time to spend, as 90s or 10m")]
LlmTokens = Annotated[
    int | None, typer.Option("--llm-tokens", min=1, help="Tokens a language model may read and write")
]
LlmUrl = Annotated[
    str | None, typer.Option("--llm-url", help="A server of OpenAI's form instead of Ollama: http://HOST:PORT/v1")
]


def finish(code: int) -> None:
    """End the command with an exit code."""
    raise typer.Exit(int(code))


def settings_of(**flags: object) -> "Settings":
    """Settings with the flags that were given on top."""
    from kbtui.config import load_settings

    return load_settings(**{key: value for key, value in flags.items() if value is not None})


def workspace_of(flag: Path | None) -> Path:
    from kbtui.paths import resolve_workspace

    return resolve_workspace(flag)


def passed_on(command: object, given: Mapping[str, object]) -> dict[str, object]:
    """What was said before a command's name as defaults of every command that knows such a word."""
    within: Mapping[str, object] = getattr(command, "commands", {})
    return {**given, **{name: passed_on(inner, given) for name, inner in within.items()}}


def seconds_of(text: str) -> float:
    from kbtui.budget import parse_duration_s

    return parse_duration_s(text)


def budget_of(wall: str | None, candidates: int | None, gpu: str | None, llm_tokens: int | None) -> "Budget":
    """The limits that were given; durations as people write them."""
    from kbtui.domain.event import Budget

    wall_s, gpu_s = (None if told is None else seconds_of(told) for told in (wall, gpu))
    return Budget(wall_s, candidates, gpu_s, llm_tokens)


def look_of(settings: "Settings") -> "Look":
    """Raises UsageError on a theme or a key that is not there."""
    from kbtui.commands.view import Look, check_look

    look = Look.of(settings)
    check_look(look)
    return look


def has_terminal() -> bool:
    """A person is there to look: both ends are a terminal, or a server hands the screen to a browser."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return True
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def need_terminal() -> None:
    """Raises UsageError where there is nobody to look."""
    if not has_terminal():
        raise UsageError("the viewer needs a terminal", "use --once, kbtui status or kbtui log where there is none")
