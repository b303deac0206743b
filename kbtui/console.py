"""What is said to a person beside the data. Effects: writes to stdout and stderr, and outlives their readers."""

import io
import os
import sys
from typing import TextIO


def tell(line: str) -> None:
    """A line on stderr, at once. Where nobody can read it any more (a closed pipe, a line that dropped), nothing."""
    if sys.stderr is None:
        return
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        hush()


def hush() -> None:
    """What is still buffered for readers that are gone goes nowhere, and nothing complains when the process ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not _takes_more(stream):
            os.dup2(null, stream.fileno())
    os.close(null)


def _takes_more(stream: TextIO) -> bool:
    try:
        stream.flush()
    except OSError:
        return False
    return True


def write_any_character() -> None:
    """In a locale without Unicode a sign it lacks is written as an escape, instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
