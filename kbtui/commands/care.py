"""doctor, config, reindex. Effects: probes the machine, reads settings, rebuilds the index."""

import json
import sys
from pathlib import Path

from kbtui.domain.codec import to_plain
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


def config(as_json: bool) -> ExitCode:
    from kbtui.config import effective_settings

    rows = effective_settings()
    if as_json:
        print(json.dumps([to_plain(row) for row in rows], indent=2))
        return ExitCode.DONE
    for row in rows:
        print(f"{row.key:14} {row.value!s:30} {row.origin}")
    return ExitCode.DONE


def reindex(workspace: Path) -> ExitCode:
    """Exit 4 where the ledger itself is damaged (raised); missing artifacts are listed and are no failure."""
    from store.reindex import reindex as rebuild
    from store.workspace import open_workspace

    report = rebuild(open_workspace(workspace))
    print(f"{report.n_runs} runs, {report.n_events} events", file=sys.stderr)
    for missing in report.missing_artifacts:
        print(f"missing artifact: {missing}")
    return ExitCode.DONE
