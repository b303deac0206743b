"""Effects: what a device's numbers depend on beside the chip: versions here, and how candidates are confined.

Read when a run begins and when it is taken up again, without torch: package metadata, NVML, ``ncu --version`` and the
sandbox's probe, which confines a process and asks it.
"""

import os
import platform
import re
import subprocess
from importlib import metadata

from kbtui.domain.device import DeviceSpec
from kbtui.evaluation.devices import REPLAY
from kbtui.evaluation.process import probe
from kbtui.evaluation.process.sandbox import Protection
from kbtui.evaluation.profiling.permission import find_ncu

#: In the order in which they are told.
Facts = tuple[tuple[str, str], ...]
_PACKAGES = ("torch", "triton", "numpy")
_NCU_TIMEOUT_S = 20.0


def environment_of(spec: DeviceSpec) -> Facts:
    """(name, value) pairs: ``("torch", "2.11.0")``. A replay runs no kernel, so it tells only who replays."""
    ours = (("kbtui", _version("kbtui")), ("python", platform.python_version()))
    if spec.key.startswith(REPLAY):
        return ours
    packages = tuple((name, _version(name)) for name in _PACKAGES)
    system = (("system", f"{platform.system()} {platform.release()} {platform.machine()}"),)
    return (*ours, *packages, *system, *(_of_gpu() if spec.key.startswith("cuda") else ()), *sandbox_facts(probe()))


def sandbox_facts(protections: tuple[Protection, ...]) -> Facts:
    """``sandbox landlock``: what the kernel at hand enforces, or ``not enforced`` and why."""
    said = {True: "", False: "not enforced: "}
    return tuple((f"sandbox {p.name}", f"{said[p.enforced]}{p.detail}") for p in protections)


def ncu_version(said: str) -> str:
    """``2025.3.1.0`` out of what ``ncu --version`` writes; its whole first line where it names none."""
    found = re.search(r"Version (\d[\w.]*)", said)
    return found[1] if found else (said.strip().splitlines() or ["unknown"])[0]


def _of_gpu() -> Facts:
    return (*_driver(), ("ncu", _ncu()))


def _driver() -> Facts:
    try:
        import pynvml

        pynvml.nvmlInit()
        cuda = int(pynvml.nvmlSystemGetCudaDriverVersion())
        driver = pynvml.nvmlSystemGetDriverVersion()
    except Exception as error:  # the library's boundary: whatever NVML lacks, the search can do without
        return (("driver", f"unknown: {error}"),)
    return (
        ("driver", driver.decode() if isinstance(driver, bytes) else str(driver)),
        ("CUDA of the driver", f"{cuda // 1000}.{cuda % 1000 // 10}"),
    )


def _ncu() -> str:
    path = find_ncu(os.environ)
    if path is None:
        return "not installed"
    try:
        command = [str(path), "--version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_NCU_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unknown: {error}"
    return ncu_version(done.stdout)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
