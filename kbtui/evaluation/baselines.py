"""Names of what a candidate can be compared with beside candidates. Pure; ``roles.baseline_calls`` has the calls."""

from collections.abc import Mapping

EAGER = "eager"
#: torch.compile's mode by name; None is its default.
COMPILED: Mapping[str, str | None] = {
    "compile": None,
    "max-autotune": "max-autotune",
    "max-autotune-no-cudagraphs": "max-autotune-no-cudagraphs",
}
#: The module of each public library.
LIBRARIES: Mapping[str, str] = {"liger": "liger_kernel", "flaggems": "flag_gems"}
#: Those that choose among kernels by times of their own, so that nothing else may run while they do.
TUNED = ("max-autotune", "max-autotune-no-cudagraphs", "flaggems")
#: No operation: memory at its best, in the same turns.
CEILINGS = ("copy", "read")
#: Bytes that ``copy`` reads and writes together, and that ``read`` reads: twenty times an H200's L2.
CEILING_BYTES = 1 << 30

NAMES = (EAGER, *COMPILED, *LIBRARIES, *CEILINGS)
