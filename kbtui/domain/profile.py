"""What a kernel uses of the chip, and which resource bounds it."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class KernelResources:
    """One launch of a candidate as compiled: per-thread registers, per-block bytes, and the occupancy they allow.

    Attributes:
        grid: programs along x, y, z.
        occupancy: resident warps over the SM's maximum, 0 to 1.
        limiter: what caps it: ``registers``, ``shared memory``, ``warps`` or ``blocks``.
        spill_bytes: local-memory bytes a thread spills (stores + loads).
        mma: whether tensor-core instructions were emitted.
        load_bytes_max: bytes a thread moves in its widest global load.
        mix: (kind, instructions in the text of the kernel): ``special``, ``integer``, ``wide_division`` (of 64-bit
            integers), ``division`` (of others), ``float_division``, ``float``, ``shared``, ``barrier``,
            ``loop_barrier`` (those of them inside a loop), ``load``, ``async_copy`` (from global to shared memory),
            ``store``; empty where not known.
    """

    kernel: str
    shape: str
    grid: tuple[int, int, int]
    num_warps: int
    num_stages: int
    registers: int
    spill_bytes: int
    shared_bytes: int
    occupancy: float
    limiter: str
    mma: bool = False
    load_bytes_max: int = 0
    mix: tuple[tuple[str, int], ...] = ()

    def count(self, kind: str) -> int:
        """Instructions of one kind in the kernel's text."""
        return next((n for name, n in self.mix if name == kind), 0)


class Bottleneck(StrEnum):
    """The ranked answers of the diagnosis."""

    DRAM = "dram_bandwidth"
    UNCOALESCED = "uncoalesced"
    NARROW = "narrow_access"
    EXTRA_PASSES = "extra_passes"
    CACHE = "cache_thrash"
    LATENCY = "latency"
    OCCUPANCY_REGISTERS = "occupancy_registers"
    OCCUPANCY_SHARED = "occupancy_shared"
    OCCUPANCY_BLOCKS = "occupancy_blocks"
    SPILLS = "spills"
    BANK_CONFLICTS = "bank_conflicts"
    BARRIER = "barrier"
    TOO_FEW_PROGRAMS = "too_few_programs"
    TAIL = "tail"
    NO_TENSOR_CORES = "no_tensor_cores"
    SPECIAL = "special_functions"
    INTEGER = "integer"
    COMPUTE = "compute"
    LAUNCH = "launch"
    AT_BOUND = "at_bound"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number behind a diagnosis, with its unit: ``Evidence("dram", 93.0, "% of peak")``."""

    name: str
    value: float
    unit: str

    @property
    def told(self) -> str:
        """As a person writes it: ``spilled 15,516 bytes a thread``, ``dram 93 % of peak``."""
        size, share = abs(self.value), self.unit.startswith("%")
        small = f"{self.value:.1f}" if share else f"{self.value:.{3 if size >= 1 else 2}g}"
        number = f"{self.value:,.0f}" if size >= 10 else small
        return f"{self.name.replace('_', ' ')} {number} {self.unit}".strip()


@dataclass(frozen=True, slots=True)
class Finding:
    bottleneck: Bottleneck
    weight: float
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Which resource bounds a kernel.

    Attributes:
        sentence: one sentence a person would say.
        findings: ranked, heaviest first; never empty.
        bound_us: the problem's own bound on this device; ``time_us`` is the kernel's.
        source: ``counters``, ``compiled`` (no counters) or ``model``.
    """

    sentence: str
    findings: tuple[Finding, ...]
    shape: str
    time_us: float
    bound_us: float
    source: str

    @property
    def headroom(self) -> float:
        """Time over the problem's bound: 1.0 is as fast as the problem allows."""
        return self.time_us / self.bound_us if self.bound_us > 0 else float("inf")


@dataclass(frozen=True, slots=True)
class Profile:
    """Counters of one candidate, launches weighted by time; ``not_profiled`` says why there are none.

    ``metrics`` are (name, value, unit); names are ncu's where ncu ran. ``stalls`` are (reason, % of samples).
    ``notes`` say where the profile does not fit what is known otherwise (bytes, kernels, time), one line each.
    """

    shape: str
    metrics: tuple[Evidence, ...] = ()
    stalls: tuple[tuple[str, float], ...] = ()
    kernels: tuple[str, ...] = ()
    not_profiled: str | None = None
    notes: tuple[str, ...] = ()

    def metric(self, name: str) -> float | None:
        return next((m.value for m in self.metrics if m.name == name), None)
