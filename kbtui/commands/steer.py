"""submit: put a kernel in a run's queue. Effects: one row in the command table."""

import sys
from pathlib import Path

from kbtui.commands.where import open_reader, pick_candidate, pick_run
from kbtui.domain.event import CommandKind
from kbtui.errors import ExitCode
from kbtui.kernel_file import read_kernel


def submit(workspace: Path, run: str | None, file: Path, parent: str | None, note: str) -> ExitCode:
    """Queue a kernel; the engine takes it at its next step, or when the run is resumed."""
    reader = open_reader(workspace)
    name = pick_run(reader, run)
    source = read_kernel(file)
    above = pick_candidate(reader.state(name), parent).candidate.id if parent else None
    number = reader.insert_command(name, CommandKind.SUBMIT, source, note or f"submitted: {file.name}", above)
    print(f"queued as command {number} of run {name}", file=sys.stderr)
    return ExitCode.DONE
