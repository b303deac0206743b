"""Effects: reads the file system to find Nsight Compute and learn, without running it, whether it may read counters."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PARAMS = Path("/proc/driver/nvidia/params")
_CAP_SYS_ADMIN = 1 << 21
_PLACES = ("/opt/nvidia/nsight-compute/*/ncu", "/usr/local/cuda*/bin/ncu", "/usr/local/NVIDIA-Nsight-Compute*/ncu")
_REMEDY = (
    "an administrator writes `options nvidia NVreg_RestrictProfilingToAdminUsers=0` to /etc/modprobe.d/ and reboots, "
    "or starts the container with --cap-add=SYS_ADMIN"
)
#: What ncu says, what it means, and what can be done about it.
_REFUSALS = (
    ("ERR_NVGPUCTRPERM", f"counters need permission here (ERR_NVGPUCTRPERM); {_REMEDY}"),
    (
        "resource was unavailable",
        "another tool holds the counters; stop it, or pause DCGM with `dcgmi profiling --pause`",
    ),
    (
        "MIG",
        "this is a slice of a GPU (MIG), whose counters the driver does not give out; "
        "an administrator gives you a whole GPU",
    ),
    ("InterprocessLockFailed", "another ncu holds its lock file in /tmp; wait for it, or have its owner remove it"),
    ("No kernels were profiled", "ncu saw no kernel in the profiled range"),
    ("not supported", "ncu does not support this GPU or driver; install the nsight-compute of the driver's CUDA"),
)


@dataclass(frozen=True, slots=True)
class Counters:
    """Whether counters can be read. ``why_not`` is one line, None if nothing known stands in the way."""

    ncu: Path | None
    why_not: str | None


def find_ncu(environ: Mapping[str, str] = os.environ) -> Path | None:
    """On PATH, else where its installers put it, newest version first."""
    on_path = shutil.which("ncu", path=environ.get("PATH"))
    if on_path:
        return Path(on_path)
    root = Path("/")
    found = [p for pattern in _PLACES for p in root.glob(pattern.removeprefix("/")) if os.access(p, os.X_OK)]
    return max(found, key=_version, default=None)


def counters(environ: Mapping[str, str] = os.environ, params: Path = _PARAMS) -> Counters:
    """What stands in the way of counters, as far as it can be told without trying; ncu itself has the last word."""
    ncu = find_ncu(environ)
    if not params.parent.exists():
        return Counters(ncu, "no NVIDIA GPU on this machine")
    if ncu is None:
        return Counters(
            None, "ncu is not installed; install nsight-compute (apt install nsight-compute), or put its ncu on PATH"
        )
    if environ.get("CUDA_VISIBLE_DEVICES", "").startswith("MIG-"):
        return Counters(ncu, _REFUSALS[2][1])
    if _admin_only(params) and not _is_admin():
        return Counters(ncu, f"counters are for administrators only (RmProfilingAdminOnly: 1 in {params}); " + _REMEDY)
    return Counters(ncu, None)


def refusal_in(output: str) -> str | None:
    """Why ncu did not profile, from what it wrote; None if it says nothing known."""
    return next((meaning for text, meaning in _REFUSALS if text in output), None)


def _admin_only(params: Path) -> bool:
    try:
        lines = params.read_text().splitlines()
    except OSError:
        return False
    return any(line.split(":")[0].strip() == "RmProfilingAdminOnly" and line.strip().endswith("1") for line in lines)


def _is_admin() -> bool:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return os.geteuid() == 0
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) & _CAP_SYS_ADMIN)


def _version(path: Path) -> tuple[tuple[int, ...], str]:
    numbers = tuple(int(part) for part in "".join(c if c.isdigit() else " " for c in str(path)).split())
    return numbers, str(path)
