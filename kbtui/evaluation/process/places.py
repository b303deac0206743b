"""Where an exception was raised while a candidate was called: in Triton's compiler, in what that needs, or elsewhere.

Read off the files of its frames, never off its name or its words, which a candidate chooses. Pure.
"""

import os
import subprocess
import traceback
from enum import StrEnum

#: Candidates' modules live in files of this name, so that a traceback can name the line that failed.
CANDIDATE_FILE_PREFIX = "kernel_"
_COMPILER = ("triton/compiler/compiler.py", "triton/backends/nvidia/compiler.py")
#: Triton's C compiler, its cache, and where it looks for programs.
_TOOLS = ("triton/runtime/build.py", "triton/runtime/cache.py", "triton/knobs.py")
#: These load and launch what was compiled, and are in the compiler's file: there a fault of the GPU shows, too.
_LOADS = frozenset({"_init_handles", "run", "runner", "launch_metadata", "__getitem__"})


class Place(StrEnum):
    """COMPILER refused a kernel, or broke over it. TOOLS: what the compiler needs could not be had."""

    COMPILER = "compiler"
    TOOLS = "tools"
    ELSEWHERE = "elsewhere"


def place_of(error: BaseException) -> Place:
    """By the frames behind the last one of the candidate's: what its own code raises is raised elsewhere."""
    frames = [(f.f_code.co_filename, f.f_code.co_name) for f, _ in traceback.walk_tb(error.__traceback__)]
    own = max((i for i, (file, _) in enumerate(frames) if is_candidate(file)), default=-1)
    behind = [file for file, name in frames[own + 1 :] if name not in _LOADS]
    if any(file.endswith(_TOOLS) for file in behind):
        return Place.TOOLS
    if any(file.endswith(_COMPILER) for file in behind):
        return Place.TOOLS if issubclass(type(error), OSError | subprocess.SubprocessError) else Place.COMPILER
    return Place.ELSEWHERE


def candidate_line(error: BaseException) -> int | None:
    """The last line of a candidate's source that it passed through; 1-based."""
    if isinstance(error, SyntaxError) and is_candidate(error.filename or ""):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno for f in reversed(frames) if is_candidate(f.filename)), None)


def is_candidate(filename: str) -> bool:
    return os.path.basename(filename).startswith(CANDIDATE_FILE_PREFIX)
