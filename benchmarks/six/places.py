"""Where one case's files are, and how far it is by them. Effects: reads them."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.six.cases import Case
from benchmarks.six.record import read_record
from benchmarks.six.search import is_over, state_of
from kbtui.errors import EngineError


@dataclass(frozen=True, slots=True)
class Places:
    """Where one case's files are. ``work`` holds what is under way: the problem, the workspace, logs, the contest."""

    out: Path
    work: Path
    case: Case

    @property
    def record(self) -> Path:
        return self.out / f"{self.case.name}.json"

    @property
    def bundle(self) -> Path:
        return self.out / f"{self.case.name}.bundle"

    @property
    def folder(self) -> Path:
        return self.work / self.case.name

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def held(self) -> Path:
        return self.folder / "contest.json"

    @property
    def idle(self) -> Path:
        return self.folder / "idle.json"

    @property
    def phases(self) -> Path:
        """Of the search."""
        return self.folder / "phases.json"

    @property
    def contest_log(self) -> Path:
        return self.folder / "contest.log"

    @property
    def hall(self) -> Path:
        """Of all cases: the device's workspace and log of the process that holds contests."""
        return self.work / "contests"


def status(where: Places) -> str:
    """``finished``, or how far it is."""
    if where.record.is_file():
        try:
            done = read_record(where.record)
        except EngineError as error:
            return str(error)
        return f"finished, {done.kind} on {done.device.name}" + ("" if done.a100 else ", not compiled for sm_80")
    if where.held.is_file():
        return "measured"
    state = state_of(where.workspace)
    if state is None:
        return "to do"
    return "searched" if is_over(state) else f"search interrupted after {state.wall_s:.0f} s"
