"""Effects: asks the C compiler once where its parts are, so that compile children may start those and nothing else."""

import functools
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_PARTS = ("cc1", "collect2", "as", "ld", "lto-wrapper")
_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-linux-x86-64.so.2")
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Programs a compile child may start, and what they read. ``compiler`` is None where there is no C compiler."""

    compiler: str | None
    programs: tuple[Path, ...]
    read: tuple[Path, ...]


@functools.cache
def toolchain() -> Toolchain:
    """ptxas as Triton ships it, the C compiler and its parts, the dynamic loader they need."""
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    parts = [compiler, *(_part(compiler, name) for name in _PARTS)] if compiler else []
    programs = [Path(p) for p in (*parts, *_LOADERS) if p]
    return Toolchain(
        compiler,
        tuple(dict.fromkeys(p.resolve() for p in (*programs, *_ptxas()) if p.exists())),
        tuple(Path(p) for p in ("/usr/include", "/usr/local/include", "/usr/lib/gcc", "/usr/libexec/gcc")),
    )


def _part(compiler: str, name: str) -> str | None:
    try:
        answer = subprocess.run(
            [compiler, f"-print-prog-name={name}"], capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = answer.stdout.strip()
    return found if os.path.isabs(found) else shutil.which(found)


def _ptxas() -> tuple[Path, ...]:
    import importlib.util

    found = importlib.util.find_spec("triton")
    where = next(iter(found.submodule_search_locations or ()), None) if found else None
    shipped = tuple(Path(where, "backends", "nvidia", "bin").glob("ptxas*")) if where else ()
    named = tuple(Path(os.environ[v]) for v in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH") if v in os.environ)
    return shipped + named
