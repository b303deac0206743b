"""Python, the packages, cores and memory. Effects: reads the interpreter, package metadata, /proc and /sys."""

import os
import platform
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from shutil import which

from kbtui.cores import usable_cores
from kbtui.doctor_probes.check import Check, State

NEEDED = ("torch", "triton", "numpy", "textual", "sqlmodel", "GitPython", "libcst", "ollama", "nvidia-ml-py")
LEAST_TRITON = (3, 6)
_GIB = 1 << 30


def python_check() -> Check:
    return Check("python", State.OK, f"{platform.python_version()} at {sys.executable}")


def packages_check() -> Check:
    return judge_packages({name: _version(name) for name in NEEDED})


def judge_packages(versions: dict[str, str | None]) -> Check:
    """Missing packages fail; known bad pairs warn."""
    found = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        return Check("packages", State.FAIL, f"missing: {', '.join(missing)}", "run make setup, or reinstall kbtui")
    triton = _numbers(versions["triton"])
    if triton < LEAST_TRITON:
        return Check("packages", State.FAIL, found, "install triton 3.6 or later")
    if triton[:2] == LEAST_TRITON and _numbers(versions["numpy"]) >= (2, 4):
        return Check("packages", State.WARN, found, "triton 3.6's interpreter breaks on numpy 2.4: use numpy<2.4")
    return Check("packages", State.OK, found)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in (version or "").split("+")[0].split(".")[:3] if part.isdigit())


def cores_check() -> Check:
    return judge_cores(usable_cores())


def judge_cores(n_cores: float) -> Check:
    found = f"{n_cores:g} usable"
    if n_cores < 2:
        return Check("cores", State.WARN, found, "compiles and interpreted checks take turns: searches are slow here")
    return Check("cores", State.OK, found)


def memory_check() -> Check:
    try:
        meminfo = Path("/proc/meminfo").read_text()
    except OSError:
        return Check("memory", State.WARN, "unknown: no /proc/meminfo", "kbtui is made for Linux")
    return judge_memory(meminfo)


def judge_memory(meminfo: str) -> Check:
    kib = {line.split(":")[0]: int(line.split()[1]) for line in meminfo.splitlines() if len(line.split()) > 1}
    available = kib.get("MemAvailable", 0) * 1024
    found = f"{available / _GIB:.1f} GiB free of {kib.get('MemTotal', 0) * 1024 / _GIB:.1f}"
    if available < 3 * _GIB:
        return Check("memory", State.WARN, found, "a search needs about 3 GiB: close something")
    return Check("memory", State.OK, found)


def compiler_check(has_gpu: bool) -> Check:
    """Triton builds a small launcher with a C compiler and Python's headers before a kernel's first launch."""
    compiler = os.environ.get("CC") or next((c for c in ("gcc", "clang", "cc") if which(c)), None)
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    return judge_compiler(compiler, headers.is_file(), has_gpu)


def judge_compiler(compiler: str | None, has_headers: bool, has_gpu: bool) -> Check:
    state = State.FAIL if has_gpu else State.ABSENT
    if compiler is None:
        return Check("c compiler", state, "none", "kernels on a GPU need one: apt-get install gcc")
    if not has_headers:
        return Check("c compiler", state, f"{compiler}, but no Python.h", "apt-get install python3-dev")
    return Check("c compiler", State.OK, compiler)
