"""run, resume, stop: engines, and the viewer on them. Effects: processes, the terminal."""

import shlex
import time
from pathlib import Path

from kbtui.commands.view import Look, view
from kbtui.commands.where import open_reader, pick_run
from kbtui.console import tell
from kbtui.domain.event import CommandKind, EndReason, Envelope, RunEnded
from kbtui.engine.spec import RunSpec
from kbtui.errors import EngineError, ExitCode
from kbtui.result import (
    RunResult,
    browse_commands,
    ended_words,
    headline,
    kept_instead,
    run_result,
    times_words,
)
from kbtui.scheduler.shrinkage import shrinkage_words
from kbtui.scheduler.state import RunState

STOP_S = 60.0
#: How long what goes wrong while a problem is opened is waited for, with a viewer to follow and without.
OPENING_WATCHED_S, OPENING_DETACHED_S = 10.0, 300.0


def run_headless(spec: RunSpec, as_json: bool) -> ExitCode:
    """The engine in the foreground, progress on stderr, the result on stdout."""
    from kbtui.engine.engine import Engine
    from kbtui.engine.main import stop_on_signals
    from kbtui.engine.session import run_session
    from kbtui.engine.telling import line_of

    engines: list[Engine] = []

    def narrate(envelope: Envelope, state: RunState) -> None:
        if not (isinstance(envelope.event, RunEnded) and envelope.event.reason is EndReason.FAILED):
            tell(f"{state.wall_s:7.1f}s {line_of(envelope.event, state)}")

    def hook(engine: Engine) -> None:
        engines.append(engine)
        stop_on_signals(engine)

    state = run_session(spec, lambda run: tell(f"run {run} in {spec.workspace}"), narrate, hook)
    result = run_result(state)
    print_result(Path(spec.workspace), result, as_json)
    if engines and engines[0].interrupted:
        tell(f"interrupted; go on with: kbtui resume {result.run} --workspace {shlex.quote(spec.workspace)}")
        return ExitCode.INTERRUPTED
    return ExitCode.DONE if result.better else ExitCode.NOTHING_BETTER


def run_detached(spec: RunSpec, watch: bool, look: Look) -> ExitCode:
    """A detached engine; then the viewer where there is a terminal."""
    from kbtui.launch import start_detached

    opening_s = OPENING_WATCHED_S if watch else OPENING_DETACHED_S

    def begun(run: str) -> None:
        tell(f"run {run}: opening the problem on the device ...")

    def slow(problem: str) -> None:
        if problem and not spec.unvetted:
            tell(f"run of {Path(problem).name}: getting ready; a problem that is new here is vetted first ...")

    run = start_detached(spec, Path(spec.workspace) / "engine.log", opening_s, begun, slow)
    tell(f"run {run} started; its engine goes on without this terminal")
    if not watch:
        tell(f"watch it with: kbtui attach {run} --workspace {shlex.quote(spec.workspace)}")
        return ExitCode.DONE
    return view(Path(spec.workspace), run, look)


def stop(workspace: Path, run: str | None) -> ExitCode:
    """Ask the engine to stop and wait until it has. Raises EngineError where it does not."""
    reader = open_reader(workspace)
    name = pick_run(reader, run)
    engine = reader.engine()
    if engine is None or not engine.alive or engine.run != name:
        tell(f"run {name} is not running")
        return ExitCode.DONE
    reader.insert_command(name, CommandKind.STOP)
    deadline_s = time.monotonic() + STOP_S
    while time.monotonic() < deadline_s:
        if any(row.run == name and row.end_reason is not None for row in reader.runs()):
            tell(f"run {name} stopped; go on with: kbtui resume {name} --workspace {shlex.quote(str(workspace))}")
            return ExitCode.DONE
        time.sleep(0.2)
    raise EngineError(f"run {name} has not stopped in {STOP_S:.0f} s", f"its engine is pid {engine.pid}")


def print_result(workspace: Path, result: RunResult, as_json: bool) -> None:
    """On stdout: the result as JSON, or in a few lines with the repository and three git commands."""
    from store.workspace import open_workspace

    git_dir = str(open_workspace(workspace).git_dir)
    if as_json:
        from kbtui.commands.show import result_json

        print(result_json(result, git_dir))
        return
    print(f"{result.problem}: {headline(result)}")
    if result.champion:
        print(f"champion: {result.champion} {result.summary}")
    for shape in result.shapes:
        print(f"  {times_words(shape, result.clock)}")
    if kept := kept_instead(result):
        print(f"kept: {kept}; the champion is not shown to be faster")
    for shrinkage in result.shrinkage:
        print(f"  screened at {shrinkage_words(shrinkage)}")
    if result.ended and not result.ended.startswith(EndReason.EXHAUSTED):
        print(f"ended: {ended_words(result)}")
    print(f"kernel repository: {git_dir}")
    for command in browse_commands(git_dir, result):
        print(f"  {command}")
