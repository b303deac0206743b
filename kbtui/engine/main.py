"""The detached engine's entry point: ``python -m kbtui.engine.main SPEC_JSON READY_FD``. Effects: signals, one pipe.

Through the pipe goes one JSON line when the run exists (``run``), one when its problem is open (``opened``), and, where
either fails, one with ``error`` and ``exit_code`` instead.
"""

import contextlib
import json
import os
import signal
import sys
from types import FrameType

from kbtui.console import tell
from kbtui.domain.codec import from_plain
from kbtui.domain.event import Envelope
from kbtui.engine.engine import Engine
from kbtui.engine.session import run_session
from kbtui.engine.spec import RunSpec
from kbtui.engine.telling import line_of
from kbtui.errors import ExitCode, KbtuiError
from kbtui.scheduler.state import RunState


def stop_on_signals(engine: Engine) -> None:
    """SIGTERM and SIGINT end the run after the current evaluation; a second one at once. SIGHUP is ignored."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        if engine.interrupted:
            raise KeyboardInterrupt
        engine.interrupt(signal.Signals(number).name)
        with contextlib.suppress(OSError):  # not print: the signal may have come in the middle of one
            os.write(2, b"stopping after the current evaluation; once more to stop at once\n")

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def main(spec_json: str, ready_fd: int) -> ExitCode:
    spec = from_plain(RunSpec, json.loads(spec_json))

    def say(message: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # the one who started us may not be listening any more
            os.write(ready_fd, json.dumps(message).encode() + b"\n")

    def narrate(envelope: Envelope, state: RunState) -> None:
        tell(f"{envelope.at} {line_of(envelope.event, state)}")

    try:
        run_session(spec, lambda run: say({"run": run}), narrate, stop_on_signals, lambda: say({"opened": True}))
    except KbtuiError as error:
        tell(f"kbtui: {error}")
        say({"error": str(error), "exit_code": int(error.exit_code)})
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return ExitCode.DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
