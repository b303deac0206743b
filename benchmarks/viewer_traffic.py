"""What the viewer sends over the line at 120x40, in bytes a second: on a search that rests, and on one that is busy.

usage: python benchmarks/viewer_traffic.py [--refresh 4 1] [--seconds 20] [--out FILE]

A run of 200 candidates is written through the real store; `kbtui attach` shows it on a pseudo-terminal. At rest nothing
writes; busy, a process that holds the engine's lock appends 20 events, 20 samples and 20 heartbeats a second.
Effects: processes, a store in the temporary folder.
"""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from store_scale import machine, started, write_report
from viewer_scale import CARD, RUN, Screen, append, engine_like

from store.record import create_run
from store.workspace import EngineLock, create_workspace

TARGETS = {"at_rest_bytes_a_second": 200, "busy_bytes_a_second": 60_000}
N_CANDIDATES = 200
#: The first screen, and what is still read after it.
SETTLE_S = 5.0


def make_run(root: Path) -> None:
    """A run with no engine at work on it."""
    workspace = create_workspace(root)
    with EngineLock(workspace.lock).acquire():
        ledger = create_run(workspace, started(""))
        for number in range(1, N_CANDIDATES + 1):
            for step in (1, 2, 3, 4):
                append(ledger, number, step, number * 0.3)
        ledger.close()


def bytes_a_second(root: Path, refresh_hz: float, seconds: float) -> int:
    screen = Screen(["attach", RUN, "--workspace", str(root), "--refresh", f"{refresh_hz:g}"])
    try:
        screen.until(CARD, 0, 60.0)
        screen.drain(SETTLE_S)
        return round(screen.drain(seconds) / seconds)
    finally:
        screen.close()


@contextlib.contextmanager
def at_rest(_root: Path) -> Iterator[None]:
    yield


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--refresh", type=float, nargs="+", default=[4.0, 1.0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    report: dict[str, object] = {
        "command": " ".join(["python", *sys.argv]),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "targets": TARGETS,
    }
    with tempfile.TemporaryDirectory(prefix="kbtui-traffic-") as folder:
        root = Path(folder)
        make_run(root)
        for name, beside in (("at_rest", at_rest), ("busy", engine_like)):
            with beside(root):
                sent = {f"refresh_{hz:g}": bytes_a_second(root, hz, args.seconds) for hz in args.refresh}
            report[f"{name}_bytes_a_second"] = sent
    write_report(report, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
