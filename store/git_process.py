"""Effects: git processes that read nothing of the user's: no configuration, no hooks, no ``GIT_*`` variables."""

import os
import subprocess
from pathlib import Path

from kbtui.errors import DeviceError, EngineError

_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsync": "all",
    "gc.auto": "0",
    "safe.directory": "*",
    "i18n.logOutputEncoding": "UTF-8",
}


def isolated_environment() -> dict[str, str]:
    """This process's environment without its ``GIT_*``, and with the user's and the system's configuration shut out."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    }
    for number, (key, value) in enumerate(_SETTINGS.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def run_git(*args: str, git_dir: Path | None = None, cwd: Path | None = None, nice: bool = False) -> str:
    """Output of one git command, isolated; ``nice``: at the lowest priority.

    Raises EngineError with git's own first line, DeviceError where git is not installed.
    """
    where = [f"--git-dir={git_dir}"] if git_dir else []
    try:
        done = subprocess.run(
            [*(["nice", "-n", "19"] if nice else []), "git", *where, *args],
            env=isolated_environment(),
            cwd=cwd,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise DeviceError("git is not installed", "install git 2.31 or later") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise EngineError(f"git {args[0]} failed: {said[0]}", f"look at {git_dir or cwd or Path.cwd()}")
    return done.stdout.decode(errors="replace")
