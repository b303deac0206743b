"""The viewer over a fake source, for a test that gives it a real pseudo-terminal.

``python viewer_in_terminal.py SCENARIO FD``: a byte goes to FD when the screen is up and when the scenario is over.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from fake_source import FakeSource
from recorded_run import RUN, samples

from kbtui.domain.measurement import LiveSample
from kbtui.tui.run import run_viewer

UP_AFTER_POLLS, OVER_AFTER_POLLS = 6, 18


class Counted(FakeSource):
    """Idle: nothing ever changes. Busy: the heartbeat, two samples and the budget move at every poll."""

    def __init__(self, busy: bool, fd: int) -> None:
        super().__init__(n_samples=0 if busy else 14)
        self.busy, self.fd, self.polls = busy, fd, 0
        self.coming = list(enumerate(samples(80), start=1))

    def data_version(self) -> int:
        self.polls += 1
        if self.polls in (UP_AFTER_POLLS, OVER_AFTER_POLLS):
            os.write(self.fd, b"!")
        return self.polls if self.busy else 1

    def engine(self) -> object:
        assert self.engine_status is not None
        return replace(self.engine_status, wall_s=500.0 + self.polls) if self.busy else self.engine_status

    def live_samples(self, run: str, after_id: int) -> Sequence[tuple[int, LiveSample]]:
        return (
            [s for s in self.coming if after_id < s[0] <= 2 * self.polls]
            if self.busy
            else super().live_samples(run, after_id)
        )


if __name__ == "__main__":
    scenario, fd = sys.argv[1], int(sys.argv[2])
    theme = None if scenario == "plain" else "kbtui-dark"
    left = run_viewer(Counted(scenario == "busy", fd), RUN, refresh_hz=4.0, theme=theme)
    print("\n".join(left.lines))
