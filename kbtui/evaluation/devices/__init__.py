"""The devices a problem can be evaluated on, by the key a user names."""

import re
from pathlib import Path

from kbtui.domain.device import DATA_SHEETS
from kbtui.engine.ports import Device
from kbtui.errors import DeviceError, UsageError
from kbtui.evaluation.baselines import EAGER

DEFAULT_MODEL = "model:a100"
REPLAY = "replay:"
#: What a driver shows of itself: on Linux, in a container, under Windows, on a Jetson.
_DRIVER_SIGNS = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu")


def open_device(key: str, workspace: Path, *, baselines: tuple[str, ...] = (EAGER,)) -> Device:
    """``auto``, ``cuda:N``, ``model:CHIP`` or ``replay:POOL``: ``spec`` is known at once, a problem is opened later.

    ``auto`` is ``cuda:0`` where the NVIDIA driver sees a GPU, else ``model:a100``. Raises UsageError for another key,
    DeviceError where the device is not there. ``baselines``: what candidates are compared with where times are
    measured, by the names in ``evaluation.baselines``; those that compile cost a minute or so a problem.
    """
    if key == "auto":
        key = resolve_auto()
    if re.fullmatch(r"cuda(:\d+)?", key):
        if not any(Path(sign).exists() for sign in _DRIVER_SIGNS):
            raise DeviceError(f"{key} cannot be used: this machine has no NVIDIA driver", "use --device model:a100")
        from kbtui.evaluation.devices.cuda import CudaDevice

        return CudaDevice(key if ":" in key else "cuda:0", workspace, baselines=baselines)
    if key.startswith("model:") and key.removeprefix("model:") in DATA_SHEETS:
        from kbtui.evaluation.devices.model import ModelDevice

        return ModelDevice(DATA_SHEETS[key.removeprefix("model:")], workspace)
    if key.startswith(REPLAY):
        from kbtui.evaluation.devices.replay import ReplayDevice

        return ReplayDevice(Path(key.removeprefix(REPLAY)))
    raise UsageError(f"no device {key!r}", f"name one of {_known()}")


def _known() -> str:
    return ", ".join(("auto", "cuda:N", *(f"model:{chip}" for chip in DATA_SHEETS), "replay:POOL"))


def resolve_auto() -> str:
    """The device key that ``auto`` stands for on this machine."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return "cuda:0" if pynvml.nvmlDeviceGetCount() > 0 else DEFAULT_MODEL
    except Exception:
        return DEFAULT_MODEL
