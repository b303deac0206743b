"""What a traced call did, as plain values: the hand-over from the tracing child to the time model."""

from dataclasses import dataclass

#: Device memory and caches move 32-byte sectors (CUDA C++ Programming Guide, compute capability 6.0 and up).
SECTOR_BYTES = 32


@dataclass(frozen=True, slots=True)
class TensorTraffic:
    """What one program of a launch does to one tensor, on average over the programs sampled.

    Attributes:
        tensor: number of the tensor within the call, the same in every launch.
        size_bytes: bytes of the tensor's storage.
        load_bytes, store_bytes: bytes the program asked for.
        load_sectors, store_sectors: 32-byte sectors those requests move, each warp-wide request on its own.
        unique_load_sectors, unique_store_sectors: the same without what the program had touched before.
        near_load_sectors: load sectors that the program's last load of this tensor touched too.
        neighbour_share: part of a program's sectors that the next program touches too, 0 to 1.
        atomics: atomic operations of one program, lane by lane.
    """

    tensor: int
    size_bytes: float
    load_bytes: float = 0.0
    load_sectors: float = 0.0
    unique_load_sectors: float = 0.0
    near_load_sectors: float = 0.0
    store_bytes: float = 0.0
    store_sectors: float = 0.0
    unique_store_sectors: float = 0.0
    neighbour_share: float = 0.0
    atomics: float = 0.0


@dataclass(frozen=True, slots=True)
class DotTrace:
    """``tl.dot`` of one tile shape: ``count`` of them in one program.

    ``precision`` is Triton's input precision for float32 operands: ``tf32``, ``tf32x3`` or ``ieee``.
    """

    m: int
    n: int
    k: int
    dtype: str
    precision: str
    count: float

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k * self.count


@dataclass(frozen=True, slots=True)
class LaunchTrace:
    """One kernel launch. Counts are for one program, averaged over the programs sampled.

    Attributes:
        count: launches like this one in the call (further ones of the same kernel, grid and sizes are not traced).
        phases: times the program must wait for memory before it can go on.
        phase_bytes: bytes it has in flight in such a phase.
        overlap: phases the compiled loop keeps in flight at once (software pipelining), 1 without.
        requests: warp-wide memory requests.
        vector_bytes: bytes a thread moves in one request, weighted by bytes; 16 is the widest.
        reductions: reductions and scans across the program's threads.
        alu_ops, sfu_ops: element operations on the CUDA cores and the special-function units.
        local_trips: how often the innermost loop body runs, 1 without loops; spilled values move that often.
    """

    kernel: str
    grid: tuple[int, int, int]
    num_warps: int
    num_stages: int
    tensors: tuple[TensorTraffic, ...]
    dots: tuple[DotTrace, ...] = ()
    count: float = 1.0
    phases: float = 1.0
    phase_bytes: float = 0.0
    overlap: float = 1.0
    requests: float = 0.0
    vector_bytes: float = 4.0
    reductions: float = 0.0
    alu_ops: float = 0.0
    sfu_ops: float = 0.0
    local_trips: float = 1.0

    @property
    def programs(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def moved_bytes(self) -> float:
        """Bytes in sectors that all programs ask for, before any cache."""
        per_program = sum(t.load_sectors + t.store_sectors for t in self.tensors)
        return per_program * SECTOR_BYTES * self.programs * self.count

    def asked_bytes(self) -> float:
        """Bytes all programs ask for."""
        return sum(t.load_bytes + t.store_bytes for t in self.tensors) * self.programs * self.count


@dataclass(frozen=True, slots=True)
class TorchOp:
    """An operation of PyTorch's that the call ran beside its kernels: one more launch, and bytes in and out."""

    name: str
    bytes_moved: float


@dataclass(frozen=True, slots=True)
class CallTrace:
    """One call of a candidate on one shape."""

    shape: str
    launches: tuple[LaunchTrace, ...]
    torch_ops: tuple[TorchOp, ...] = ()
