"""What a command is recorded as, so that acting on it harms no run. Pure."""

import json
from dataclasses import replace

from kbtui.budget import budget_of_json
from kbtui.domain.candidate import source_sha
from kbtui.domain.codec import to_plain
from kbtui.domain.event import CommandAccepted, CommandKind
from kbtui.errors import UsageError
from kbtui.scheduler.state import RunState


def accepted(state: RunState, command: CommandAccepted) -> CommandAccepted:
    """A budget that is none is recorded as the one in force, a kernel that is here already under its name."""
    if command.kind is CommandKind.SUBMIT and (known := _known_as(state, command.argument)):
        return replace(command, note=f"{command.note}; here already, as {known}".removeprefix("; "))
    if command.kind is not CommandKind.BUDGET:
        return command
    try:
        budget_of_json(command.argument)
    except UsageError as error:
        return replace(command, argument=json.dumps(to_plain(state.budget)), note=f"refused: {error.what}")
    return command


def _known_as(state: RunState, source: str) -> str | None:
    """The candidate, or the command not acted on yet, that holds this source; None where it is new."""
    sha = source_sha(source)
    if (found := state.seen.get(sha)) or sha in state.open_batch:
        return found or state.open_batch[sha].candidate.id
    asked = (c for c in state.commands if c.kind is CommandKind.SUBMIT and c.argument == source)
    return next((f"command {c.command_id}" for c in asked), None)
