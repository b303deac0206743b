"""What a shell offers after kbtui's commands. Effects: reads the store and folders; never fails and never speaks."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

SHELLS = ("bash", "zsh", "fish")
DEVICES = ("auto", "cuda:0", "model:a100", "model:h100", "model:h200", "replay:")
NAMED = ("best", "champion", "first")


def script(shell: str) -> str:
    """What the shell is to source."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    return get_completion_script(prog_name="kbtui", complete_var="_KBTUI_COMPLETE", shell=shell) + "\n"


def complete_run(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the workspace's runs, the latest first."""
    return [name for name in _runs(ctx) if name.startswith(incomplete)]


def complete_candidate(ctx: typer.Context, incomplete: str) -> list[str]:
    """best, champion, first, and the newest candidates of the run that is named, or of the latest."""
    found = [name for name in NAMED if name.startswith(incomplete)]
    with contextlib.suppress(Exception), _reader(ctx) as reader:
        run = ctx.params.get("run") or next(row.run for row in reader.runs())
        found += [name for name in reader.candidates(run, 200) if name.startswith(incomplete)]
    return found


def complete_problem(incomplete: str) -> list[str]:
    """The samples, and folders and Python files at the place that is being typed."""
    return [*_samples(incomplete), *_paths(incomplete)]


def complete_device(incomplete: str) -> list[str]:
    return [device for device in DEVICES if device.startswith(incomplete)]


def _runs(ctx: typer.Context) -> list[str]:
    with contextlib.suppress(Exception), _reader(ctx) as reader:
        return [row.run for row in reader.runs()]
    return []


def _reader(ctx: typer.Context) -> Any:
    from kbtui.commands.where import open_reader
    from kbtui.paths import resolve_workspace

    flag = ctx.params.get("workspace")
    return open_reader(resolve_workspace(Path(flag) if flag else None))


def _samples(incomplete: str) -> list[str]:
    from kbtui.problems import sample_names

    with contextlib.suppress(Exception):
        return [name for name in sample_names() if name.startswith(incomplete)]
    return []


def _paths(incomplete: str) -> Iterator[str]:
    typed = Path(incomplete)
    folder, start = (typed, "") if incomplete.endswith("/") else (typed.parent, typed.name)
    with contextlib.suppress(OSError):
        for path in sorted(folder.iterdir()):
            if path.name.startswith(start) and not path.name.startswith("."):
                if path.is_dir():
                    yield f"{path}/"
                elif path.suffix == ".py":
                    yield str(path)
