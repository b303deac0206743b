"""doctor, reindex. Effects: probes the machine, rebuilds the index."""

import json
import sys
from pathlib import Path

from kbtui.domain.codec import to_plain
from kbtui.domain.wording import counted
from kbtui.errors import ExitCode


def doctor(workspace: Path, as_json: bool) -> ExitCode:
    """Every check with its advice; exit 3 where something that a run needs has failed."""
    from kbtui.doctor import State, diagnose_machine, render

    checks = diagnose_machine(workspace)
    if as_json:
        print(json.dumps([to_plain(check) for check in checks], indent=2))
    else:
        render(checks)
    return ExitCode.NO_DEVICE if any(c.state is State.FAIL for c in checks) else ExitCode.DONE


def reindex(workspace: Path) -> ExitCode:
    """Missing artifacts are listed and are no failure; exit 4 where a run holds a commit that is not ours."""
    from store.reindex import reindex as rebuild
    from store.workspace import open_workspace

    report = rebuild(open_workspace(workspace))
    counts = f"{counted(len(report.runs), 'run')}, {counted(report.n_events, 'event')}"
    print(counts, file=sys.stderr)
    if report.set_aside:
        print(f"the damaged index was kept as {report.set_aside}", file=sys.stderr)
    for missing in report.missing:
        print(f"missing artifact: {missing.run} event {missing.seq} {missing.artifact.name} {missing.artifact.sha256}")
    for line in dict.fromkeys(report.refused):
        print(f"kbtui: {line}", file=sys.stderr)
    return ExitCode.ENGINE_FAILED if report.refused else ExitCode.DONE
