"""One error tree. Each error says what happened and what to do next, and carries the process's exit code."""

from enum import IntEnum


class ExitCode(IntEnum):
    DONE = 0
    NOTHING_BETTER = 1
    USAGE = 2
    NO_DEVICE = 3
    ENGINE_FAILED = 4
    INTERRUPTED = 130


class KbtuiError(Exception):
    """``str(error)`` is one line: what is wrong, then what to do."""

    exit_code = ExitCode.ENGINE_FAILED

    def __init__(self, what: str, do: str = "") -> None:
        super().__init__(f"{what}; {do}" if do else what)
        self.what = what
        self.do = do


class UsageError(KbtuiError):
    """The user's input or configuration is wrong."""

    exit_code = ExitCode.USAGE


class DeviceError(KbtuiError):
    """No device, or this machine lacks something."""

    exit_code = ExitCode.NO_DEVICE


class EngineError(KbtuiError):
    """The engine cannot go on."""

    exit_code = ExitCode.ENGINE_FAILED


class DiskFullError(EngineError):
    """Nothing was recorded, for want of room; the same can be tried again."""
