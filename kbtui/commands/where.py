"""Finding what a command is about: the workspace, a run, a candidate. Effects: reads the store."""

import difflib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.domain.rung import COMPILE
from kbtui.errors import UsageError
from kbtui.result import RunResult, run_result
from kbtui.scheduler.best import best_so_far
from kbtui.scheduler.state import RunState, Tried

if TYPE_CHECKING:
    from store.reader import Reader


def open_reader(workspace: Path) -> "Reader":
    """Raises UsageError where there is no workspace."""
    from store.reader import Reader
    from store.workspace import open_workspace

    return Reader(open_workspace(workspace))


def pick_run(reader: "Reader", name: str | None) -> str:
    """The run of that name, or the latest. Raises UsageError naming the nearest, or saying that there is none."""
    names = [row.run for row in reader.runs()]
    if not names:
        raise UsageError("no run in this workspace yet", "start one: kbtui run sample_kernels/softmax")
    if name is None:
        return names[0]
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.3)
    raise UsageError(f"no such run: {name}", f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}")


def brief_result(reader: "Reader", run: str) -> RunResult:
    """A run's result so far, from the events that decide it: however long the run is."""
    state = RunState()
    for envelope in reader.first_window(run, 1).envelopes:
        state.apply(envelope)
    totals = reader.totals(run)
    untried = dict(totals.waiting).get(COMPILE, 0)
    return replace(run_result(state), n_candidates=totals.n_candidates, n_untried=untried)


def pick_candidate(state: RunState, name: str) -> Tried:
    """A candidate by id, or ``best``, ``champion``, ``first``. Raises UsageError naming the nearest."""
    if name in state.tried:
        return state.tried[name]
    named = {"best": best_so_far(state), "champion": state.tried.get(state.champion or "")}
    named["first"] = state.tried.get(state.first or "")
    if (found := named.get(name)) is not None:
        return found
    if name in named:
        raise UsageError(f"this run has no {name} yet", "kbtui log shows what it has")
    near = difflib.get_close_matches(name, [*state.tried, *named], n=1, cutoff=0.7)
    raise UsageError(f"no such candidate: {name}", f"did you mean {near[0]}?" if near else "kbtui log lists them")
