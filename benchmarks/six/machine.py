"""What the machine is, beside what the tool itself records. Effects: NVML, nvidia-smi."""

import contextlib
import os
import subprocess
from collections.abc import Iterator

from kbtui.domain.device import DeviceSpec
from kbtui.evaluation.devices.cuda_chip import visible_device


def machine_facts(spec: DeviceSpec) -> Iterator[tuple[str, str]]:
    yield "cores", str(os.cpu_count())
    if not spec.key.startswith("cuda"):
        return
    query = "name,driver_version,power.limit,clocks.max.sm,clocks.max.mem,persistence_mode"
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader", *(["-i", spec.uuid] if spec.uuid else [])]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
        yield f"nvidia-smi {query}", told


def uuid_of(device: str) -> str | None:
    """Of the GPU that is meant; None where there is none to be watched."""
    if not device.startswith("cuda"):
        return None
    with contextlib.suppress(Exception):  # NVML's boundary: without it the idle share is not known
        import pynvml

        pynvml.nvmlInit()
        visible = visible_device(int(device.partition(":")[2] or 0), os.environ)
        if visible.startswith("GPU-"):
            return visible
        uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(int(visible)))
        return uuid.decode() if isinstance(uuid, bytes) else str(uuid)
    return None
