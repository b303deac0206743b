"""What Triton's compiler writes where it fails without an exception that says why. Pure.

It goes to the child's log, where a candidate may write too: it tells of a candidate that is rejected either way.
"""

import re

_PASS = re.compile(r"Pipeline failed while executing \[`(\w+)`")
_ASSERTION = re.compile(r"Assertion `(.*)' failed\.")
_FATAL = re.compile(r"LLVM ERROR: (.*)")
_UNREACHABLE = "UNREACHABLE executed"


def failed_pass(log_tail: str) -> str | None:
    """The pass of the compiler that failed, e.g. ``TritonGPUOptimizeThreadLocality``."""
    found = _PASS.findall(log_tail)
    return found[-1] if found else None


def last_words(log_tail: str) -> str | None:
    """What the compiler said as it ended its own process; None where it said nothing of the kind."""
    lines = [line.strip() for line in log_tail.splitlines() if line.strip()]
    for i in reversed(range(len(lines))):
        if found := _ASSERTION.search(lines[i]) or _FATAL.search(lines[i]):
            return found[1]
        if _UNREACHABLE in lines[i]:
            return lines[i - 1] if i else lines[i]
    return None
