"""What this machine can do, and what to do about what it cannot. Effects: children, files, one HTTP request."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kbtui.config import load_settings
from kbtui.doctor_probes import confinement, gpu, llm, python, storage, terminal
from kbtui.doctor_probes.check import Check, State

__all__ = ["Check", "State", "as_table", "diagnose_machine", "render"]

_SIGN = {State.OK: "ok", State.WARN: "! warn", State.FAIL: "x FAIL", State.ABSENT: "- absent"}
_STYLE = {State.OK: "green", State.WARN: "yellow", State.FAIL: "bold red", State.ABSENT: "dim"}


def diagnose_machine(workspace: Path) -> tuple[Check, ...]:
    """Every check, in reading order; they run side by side. A probe that raises is a failed check, not an error."""
    nvml = gpu.ask_nvml()
    has_gpu = bool(nvml.get("gpus"))
    host = load_settings().ollama_host
    probes: list[tuple[str, Callable[[], Check]]] = [
        ("python", python.python_check),
        ("packages", python.packages_check),
        ("cores", python.cores_check),
        ("memory", python.memory_check),
        ("gpu", lambda: gpu.judge_gpu(nvml)),
        ("cuda", lambda: gpu.cuda_check(has_gpu)),
        ("nsight compute", lambda: gpu.ncu_check(has_gpu)),
        ("counters", lambda: gpu.counters_check(has_gpu)),
        ("c compiler", lambda: python.compiler_check(has_gpu)),
        ("sandbox", confinement.sandbox_check),
        ("git", storage.git_check),
        ("sqlite", storage.sqlite_check),
        ("workspace", lambda: storage.workspace_check(workspace)),
        ("terminal", terminal.terminal_check),
        ("copying", terminal.clipboard_check),
        ("ollama", lambda: llm.ollama_check(host)),
    ]
    with ThreadPoolExecutor(max_workers=8) as pool:
        return tuple(pool.map(lambda named: _guarded(*named), probes))


def _guarded(name: str, probe: Callable[[], Check]) -> Check:
    try:
        return probe()
    except Exception as error:  # a probe is a boundary: one that breaks must not hide the others
        return Check(name, State.FAIL, f"its probe failed: {error}", "report this with the output of kbtui version")


def as_table(checks: tuple[Check, ...]) -> Table:
    """The checks for a person: state in words as well as colour, advice under what it is about."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        style = _STYLE[check.state]
        table.add_row(f"[{style}]{_SIGN[check.state]}[/]", check.name, _plain(check.found))
        if check.advice:
            table.add_row("", "", f"[italic]-> {_plain(check.advice)}[/]")
    return table


def render(checks: tuple[Check, ...], console: Console | None = None) -> None:
    """Print the table on stdout."""
    (console or Console()).print(as_table(checks))


def _plain(text: str) -> str:
    return text.replace("[", "\\[")
