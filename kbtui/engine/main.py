"""The detached engine's entry point: ``python -m kbtui.engine.main SPEC_JSON READY_FD``. Effects: signals, one pipe."""

import json
import os
import signal
import sys
from types import FrameType

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
        engine.interrupted = signal.Signals(number).name

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def main(spec_json: str, ready_fd: int) -> ExitCode:
    spec = from_plain(RunSpec, json.loads(spec_json))

    def say(message: dict[str, object]) -> None:
        nonlocal ready_fd
        if ready_fd >= 0:
            os.write(ready_fd, json.dumps(message).encode() + b"\n")
            os.close(ready_fd)
            ready_fd = -1

    def narrate(envelope: Envelope, state: RunState) -> None:
        print(f"{envelope.at} {line_of(envelope.event, state)}", flush=True)

    try:
        run_session(spec, lambda run: say({"run": run}), narrate, stop_on_signals)
    except KbtuiError as error:
        say({"error": str(error), "exit_code": int(error.exit_code)})
        print(f"kbtui: {error}", flush=True)
        return error.exit_code
    return ExitCode.DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
