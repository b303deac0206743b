"""Effects: finds the programs that compile children start: ptxas, and nothing else."""

import functools
import importlib.util
import os
from pathlib import Path

_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
_SETTINGS = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")


@functools.cache
def assembler_programs() -> tuple[Path, ...]:
    """ptxas as Triton ships it (or as its settings name it), and the dynamic loader it needs."""
    found = importlib.util.find_spec("triton")
    where = next(iter(found.submodule_search_locations or ()), None) if found else None
    shipped = sorted(Path(where, "backends", "nvidia", "bin").glob("ptxas*")) if where else []
    named = [Path(os.environ[name]) for name in _SETTINGS if name in os.environ]
    candidates = (*shipped, *named, *map(Path, _LOADERS))
    return tuple(dict.fromkeys(path.resolve() for path in candidates if path.exists()))
