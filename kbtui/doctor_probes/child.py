"""Effects: asks a short-lived child process, so that a driver that crashes or hangs takes nothing with it."""

import json
import os
import subprocess
import sys
from typing import Any


def ask_python(source: str, timeout_s: float) -> dict[str, Any]:
    """The JSON object that Python source prints last; ``{"error": one line}`` where it fails or hangs."""
    try:
        child = subprocess.run(
            [sys.executable, "-c", source], capture_output=True, text=True, timeout=timeout_s, env=_environment()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        hung = isinstance(error, subprocess.TimeoutExpired)
        return {"error": f"no answer within {timeout_s:g} s" if hung else str(error)}
    if child.returncode != 0:
        said = child.stderr.strip().splitlines()
        return {"error": said[-1] if said else f"exit status {child.returncode}"}
    try:
        answer = json.loads(child.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": "it printed no answer"}
    return answer if isinstance(answer, dict) else {"error": "it printed no answer"}


def output_lines(command: list[str], timeout_s: float = 5.0) -> list[str]:
    """The lines a program prints; none where it is missing, fails or hangs."""
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return child.stdout.strip().splitlines() if child.returncode == 0 else []


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
