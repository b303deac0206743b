"""A role whose warming up takes as long as a driver's start."""

import time

WARMED = []


def warm(fds):
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        pass
    WARMED.append(True)


def make(fds):
    return {"warmed": lambda: len(WARMED)}
