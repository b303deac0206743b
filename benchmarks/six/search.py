"""One case's search, by ``kbtui run`` in a process of its own, and what it left. Effects: processes, a workspace."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kbtui.console import tell
from kbtui.domain.event import EndReason
from kbtui.errors import EngineError, KbtuiError
from kbtui.scheduler.state import RunState
from store.lock import lock_holder
from store.reader import Reader
from store.workspace import open_workspace

ROOT = Path(__file__).parents[2]
GENERATORS = "playbook,rewrites"
#: What a search may take beside its budget: opening, vetting, the confirmation that was begun before the end.
BESIDE_S = 120.0
_STOP_S = 20.0
_LINES_TOLD = 16
#: A git bundle larger than this is worth a word.
LARGE_BUNDLE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """``folder``: the case as a problem; ``unvetted``: do not vet it before the search."""

    folder: Path
    workspace: Path
    device: str
    seconds: float
    seed: int
    unvetted: bool = False


def search(wanted: Wanted, log: Path) -> RunState:
    """Run it, or go on with one that was interrupted; one that ended is left alone. Returns its final state.

    Raises EngineError where it did not come to its own end, for another call to go on with, or timed nothing.
    """
    command = next_command(wanted, state_of(wanted.workspace))
    if command:
        with log.open("ab") as out:
            run_bounded(command, wanted.seconds + BESIDE_S, out.fileno())
    state = state_of(wanted.workspace)
    if state is not None and (holder := lock_holder(open_workspace(wanted.workspace).lock)):
        raise EngineError(f"another engine, pid {holder.pid}, still searches there", "wait for it, or end it")
    if state is None or not is_over(state):
        raise EngineError(f"the search was cut short: {last_words(log)}", f"call again to go on with it, or read {log}")
    if not any(t.score is not None for t in state.tried.values()):
        raise EngineError(f"the search came to nothing: {last_words(log)}", f"read {log}")
    return state


def last_words(log: Path) -> str:
    """A log's last line; the lines before it are told, for the log may stay on a machine that goes."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.is_file() else []
    for line in lines[-_LINES_TOLD:-1]:
        tell(f"    {line[:200]}")
    return lines[-1][:300] if lines else "it said nothing"


def next_command(wanted: Wanted, state: RunState | None) -> list[str]:
    """What to start; empty where the search is over."""
    kbtui = [sys.executable, "-m", "kbtui"]
    where = ["--workspace", str(wanted.workspace), "--headless"]
    if state is not None and state.started is not None:
        return [] if is_over(state) else [*kbtui, "resume", state.started.run, *where]
    return [
        *kbtui, "run", str(wanted.folder), *where, "--device", wanted.device, "--budget", f"{wanted.seconds:g}s",
        "--seed", str(wanted.seed), "--generator", GENERATORS, *(["--unvetted"] if wanted.unvetted else []),
    ]  # fmt: skip


def run_bounded(command: list[str], limit_s: float, out: int) -> int | None:
    """Its exit status; None where it was ended at the limit. It ends with us, whatever ends us but SIGKILL."""
    # A group to be ended as one, but no session of its own: who kills our session kills it too.
    process = subprocess.Popen(command, stdout=out, stderr=out, cwd=ROOT, env=environment(), process_group=0)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end(process)


def environment() -> dict[str, str]:
    """In which a process of ours finds this tree, and what others before it have compiled of torch's 2,000 modules."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(":")
    torch = importlib.util.find_spec("torch")
    return with_bytecode({**os.environ, "PYTHONPATH": path}, Path(torch.origin) if torch and torch.origin else None)


def with_bytecode(environ: dict[str, str], module: Path | None) -> dict[str, str]:
    """The environment of processes that keep bytecode: beside the module, or elsewhere where it may not lie there.

    Without it a process that imports torch compiles it anew, which takes longer than all else it does to start.
    """
    kept = {name: value for name, value in environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if module is None or "PYTHONPYCACHEPREFIX" in kept or os.access(module.parent, os.W_OK):
        return kept
    if Path(importlib.util.cache_from_source(str(module))).is_file():
        return kept
    return {**kept, "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "kbtui-bytecode")}


def end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)


def is_over(state: RunState | None) -> bool:
    reasons = (EndReason.BUDGET, EndReason.EXHAUSTED)
    return state is not None and state.ended is not None and state.ended.reason in reasons


def state_of(workspace: Path) -> RunState | None:
    """The latest run there; None where there is none."""
    with contextlib.suppress(KbtuiError), reader_of(workspace) as reader:
        rows = reader.runs()
        return reader.state(rows[0].run) if rows else None
    return None


@contextlib.contextmanager
def reader_of(workspace: Path) -> Iterator[Reader]:
    with Reader(open_workspace(workspace)) as reader:
        yield reader


def bundle(workspace: Path, path: Path) -> int:
    """The search's kernel repository as one file that git clones; returns its bytes. Raises EngineError."""
    git_dir = open_workspace(workspace).git_dir
    command = ["git", f"--git-dir={git_dir}", "bundle", "create", "-q", str(path.resolve()), "--all"]
    env = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        raise EngineError(f"no bundle of {git_dir}: {done.stderr.strip()[:200]}", "is git installed?")
    return path.stat().st_size
