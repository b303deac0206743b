"""submit: put a kernel in a run's queue. Effects: one row in the command table."""

from pathlib import Path

from kbtui.commands.where import open_reader, pick_candidate, pick_run
from kbtui.console import tell
from kbtui.domain.candidate import source_sha
from kbtui.domain.event import CommandKind
from kbtui.errors import ExitCode
from kbtui.kernel_file import read_kernel


def submit(workspace: Path, run: str | None, file: Path, parent: str | None, note: str) -> ExitCode:
    """Queue a kernel; the engine takes it at its next step, or when the run is resumed."""
    reader = open_reader(workspace)
    name = pick_run(reader, run)
    source = read_kernel(file)
    state = reader.state(name)
    above = pick_candidate(state, parent).candidate.id if parent else None
    if (known := state.seen.get(source_sha(source))) is not None:
        tell(f"run {name} has this kernel already, as {known}")
        return ExitCode.DONE
    asked = (c for c in reader.commands(name) if c.kind is CommandKind.SUBMIT and c.argument == source)
    if (queued := next(asked, None)) is not None:
        tell(f"this kernel is queued in run {name} already, as command {queued.id}")
        return ExitCode.DONE
    number = reader.insert_command(name, CommandKind.SUBMIT, source, note or f"submitted: {file.name}", above)
    engine = reader.engine()
    running = engine is not None and engine.alive and engine.run == name
    later = "" if running else f"; it is tried when the run goes on: kbtui resume {name}"
    tell(f"queued as command {number} of run {name}{later}")
    return ExitCode.DONE
