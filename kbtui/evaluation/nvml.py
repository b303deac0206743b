"""Effects: reads a GPU's clocks, power, temperature, throttling and tenants through NVML, by UUID."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Reasons that slow the clock because something is wrong; power capping and idling are normal.
_BAD_REASONS = {
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


@dataclass(frozen=True, slots=True)
class GpuState:
    """One reading. ``throttled``: reasons that spoil a timing; ``tenants``: other processes' pids on the GPU."""

    sm_clock_mhz: int
    memory_clock_mhz: int
    power_w: float
    temperature_c: int
    throttled: tuple[str, ...]
    tenants: tuple[int, ...]

    def reading(self) -> dict[str, float]:
        """For the samples' file: what a person would look at who doubts a block."""
        return {
            "sm_mhz": self.sm_clock_mhz,
            "memory_mhz": self.memory_clock_mhz,
            "w": round(self.power_w, 1),
            "c": self.temperature_c,
        }

    def trouble(self) -> str | None:
        """Why a block timed now should be taken again, None if nothing speaks against it."""
        if self.throttled:
            return f"throttled: {', '.join(self.throttled)} at {self.temperature_c} C, {self.sm_clock_mhz} MHz"
        if self.tenants:
            return f"shared with process {', '.join(map(str, self.tenants))}"
        return None


class Nvml:
    """One GPU's sensors. Where NVML is missing every reading is None: timing goes on without it."""

    def __init__(self, uuid: str) -> None:
        self.error: str | None = None
        self._handle: Any = None
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid.encode())
        except Exception as error:
            self.error = f"no NVML readings: {error}"

    def read(self, is_ours: Callable[[int], bool]) -> GpuState | None:
        """The state now; ``is_ours`` says which pids may use the GPU."""
        if self._handle is None:
            return None
        nvml, handle = self._nvml, self._handle
        try:
            return GpuState(
                int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
                int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
                self._optional("nvmlDeviceGetPowerUsage") / 1e3,
                int(self._optional("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU)),
                throttle_reasons(int(self._optional("nvmlDeviceGetCurrentClocksThrottleReasons"))),
                self._tenants(is_ours),
            )
        except nvml.NVMLError as error:
            self.error = f"NVML: {error}"
            return None

    def _tenants(self, is_ours: Callable[[int], bool]) -> tuple[int, ...]:
        """In a container NVML may name pids of the host, none of which are ours: then nothing can be said."""
        try:
            pids = [p.pid for p in self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)]
        except self._nvml.NVMLError:
            return ()
        others = tuple(p for p in pids if not is_ours(p))
        return others if len(others) < len(pids) else ()

    def _optional(self, name: str, *arguments: Any) -> float:
        try:
            return float(getattr(self._nvml, name)(self._handle, *arguments))
        except self._nvml.NVMLError:
            return 0.0


def parent_of(pid: int) -> int | None:
    """The parent's pid, None where there is no such process here."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """NVML's bit mask as the names of the reasons that matter."""
    return tuple(name for bit, name in _BAD_REASONS.items() if bits & bit)
