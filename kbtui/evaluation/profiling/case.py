"""One kernel on one shape, as the rules of the diagnosis see it. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kbtui.domain.device import DeviceSpec
from kbtui.domain.profile import Bottleneck, Evidence, Finding
from kbtui.evaluation.profiling.work import Work

#: A kernel this close to the problem's bound has nothing left that tuning finds (copies reach 0.89 of the data sheet).
AT_BOUND_GAP = 0.15
#: Bandwidth that a plain copy reaches of the data sheet's (4.25 of 4.8 TB/s measured on an H200).
COPY_EFFICIENCY = 0.89
#: From this share of the data sheet on, device memory is taken to be at its limit.
DRAM_LIMIT = 0.65
#: What starting a kernel from Python costs the host once its queue is empty, microseconds, and when it is.
_HOST_LAUNCH_US, _QUEUED_LAUNCHES = 8.0, 4
#: A unit this busy or less is idle as often as not, and does not limit; from the second on it does: few get further.
_IDLE_ENOUGH, _SATURATED = 0.5, 0.8
#: Waits for global memory, in its queues too.
_MEMORY_STALLS = ("long_scoreboard", "lg_throttle", "tex_throttle", "drain", "membar")
#: Below this weight a finding is not worth a line.
_LEAST_WEIGHT = 0.02


@dataclass(frozen=True, slots=True)
class Case:
    """What the rules read. ``bytes_needed`` and ``flops`` are the problem's own; times in microseconds."""

    device: DeviceSpec
    dtype: str
    time_us: float
    bound_us: float
    bytes_needed: float
    flops: float
    work: Work

    @property
    def gap(self) -> float:
        """Part of the time above the problem's bound, 0 to 1."""
        return max(0.0, 1.0 - self.bound_us / self.time_us) if self.time_us > 0 else 0.0

    @property
    def dram_use(self) -> float:
        """Part of the data sheet's bandwidth in use while kernels run, 0 to 1; of the problem's bytes if uncounted.

        Time beside the kernels, and time that was measured but not seen under the profiler, is no one's bandwidth.
        """
        n_bytes = self.work.dram_bytes if self.work.dram_bytes is not None else self.bytes_needed
        running_us = min(self.time_us, self.work.kernels_us or self.time_us)
        return min(1.0, n_bytes / (running_us * self.device.dram_gb_s * 1e3)) if running_us > 0 else 0.0

    @property
    def passes(self) -> float:
        """Bytes through device memory over the fewest that must, spilled registers left out."""
        if not self.work.dram_bytes or self.bytes_needed <= 0:
            return 1.0
        return max(1.0, self.work.dram_bytes * (1.0 - (self.work.spill_share or 0.0)) / self.bytes_needed)

    @property
    def asked_passes(self) -> float:
        """Bytes the threads ask for over the fewest that must be moved; 1 where it is not known."""
        if not self.work.asked_bytes or self.bytes_needed <= 0:
            return 1.0
        return self.work.asked_bytes / self.bytes_needed

    @property
    def sector_efficiency(self) -> float | None:
        """Bytes asked for over bytes moved, 0 to 1: at least the problem's own, each of which is asked for once."""
        counted, moved = self.work.sector_efficiency, self.work.moved_bytes
        return None if counted is None or not moved else max(counted, min(1.0, self.bytes_needed / moved))

    @property
    def streaming(self) -> bool:
        """Whether the problem does too little arithmetic for a byte to need anything but bandwidth."""
        return self.bytes_needed > 0 and self.flops / self.bytes_needed < 10

    @property
    def busiest(self) -> float:
        """Use of the busier of device memory and the SMs' units."""
        sm_share = self.work.compute_share if self.work.sm_share is None else self.work.sm_share
        return max(self.dram_use, sm_share or 0.0)

    @property
    def shared_waits(self) -> float:
        """Part of the stalls that is for shared memory and for what other lanes hold.

        One counter has these and the special functions, for both come back by the short scoreboard; each gets its part
        by how busy it is.
        """
        shared, special = self.work.shared_share or 0.0, self.work.special_share or 0.0
        both = self.work.stall("short_scoreboard") + self.work.stall("mio_throttle")
        return both * shared / (shared + special) if shared > 0 else 0.0

    @property
    def calculating(self) -> float:
        """Part of the stalls that is neither for memory nor for other warps; 1 where stalls were not counted.

        A unit that is busy limits a kernel only as far as warps wait for it: one at half its peak, while four in five
        stalls are for memory, is the consequence of what runs, not the cause of its time.
        """
        elsewhere = sum(self.work.stall(reason) for reason in (*_MEMORY_STALLS, "barrier"))
        return max(0.0, 1.0 - elsewhere - self.shared_waits)

    @property
    def launching(self) -> float:
        """Part of the time that goes into launching, 0 to 1.

        A queue that runs dry is filled at the host's pace; where the kernels' own time was counted, what is left of
        several launches' time is that.
        """
        if self.time_us <= 0:
            return 0.0
        n = self.work.n_launches
        paced_us = n * _HOST_LAUNCH_US if n > _QUEUED_LAUNCHES and self.work.source != "model" else 0.0
        idle_us = self.time_us - self.work.kernels_us if self.work.kernels_us is not None and n > 1 else 0.0
        return min(1.0, max(self.work.launch_us, paced_us, idle_us) / self.time_us)

    @property
    def plain_us(self) -> float:
        """The problem's arithmetic on the CUDA cores at their peak."""
        return self.flops / (self.device.peak_tflops(self.dtype, tensor_cores=False) * 1e6)

    @property
    def tensor_us(self) -> float:
        """The same on tensor cores. Only three-pass TF32 is as exact as fp32, at a third of the rate."""
        passes = 3.0 if self.dtype == "float32" else 1.0
        return passes * self.flops / (self.device.peak_tflops(self.dtype, tensor_cores=True) * 1e6)

    @property
    def wants_tensor_cores(self) -> bool:
        """Whether they would do it faster, and do nothing of it now."""
        unused = self.work.tensor_cores is False and not self.streaming
        return unused and self.flops > 0 and self.tensor_us < self.plain_us


def saturation(use: float) -> float:
    """How far a unit in use that part of the time is the limit, 0 to 1."""
    return min(1.0, max(0.0, (use - _IDLE_ENOUGH) / (_SATURATED - _IDLE_ENOUGH)))


Rule = Callable[[Case], Iterator[Finding]]


def found(bottleneck: Bottleneck, weight: float, *evidence: Evidence) -> Iterator[Finding]:
    """One finding, unless it hardly matters."""
    if weight > _LEAST_WEIGHT:
        yield Finding(bottleneck, round(min(1.0, weight), 4), evidence)
