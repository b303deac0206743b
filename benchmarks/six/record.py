"""What is kept of one case, as values that are written as JSON and read back. Effects: reads and writes that file."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.six.marks import Phases
from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.profile import KernelResources
from kbtui.errors import EngineError
from kbtui.evaluation.baselines import EAGER
from kbtui.evaluation.devices import REPLAY

Counts = tuple[tuple[str, int], ...]
MEASURED, MODELLED, REPLAYED = "measured", "modelled", "replayed"
CHAMPION, FIRST, DRAFT = "champion", "first", "draft"


@dataclass(frozen=True, slots=True)
class RungSpent:
    """Seconds of wall and of GPU time that one rung took."""

    rung: str
    wall_s: float
    gpu_s: float


@dataclass(frozen=True, slots=True)
class Step:
    """The best so far rose: seconds of wall and GPU time by then, speedup over the first kernel, whose."""

    wall_s: float
    gpu_s: float
    score: float
    candidate: str


@dataclass(frozen=True, slots=True)
class Story:
    """What one search did.

    Attributes:
        open_s: wall seconds until the problem was open on the device.
        within_wall_s, within_gpu_s: when a candidate first scored within 2 % of the final best; None if none was found.
        rejected, unverified: candidates by the gate's reason; ``pruned`` by rung; ``set_aside`` neither.
        asked_s: wall seconds of waiting for generators.
        idle_share: of the search's wall time, by NVML's samples; None where nobody looked. Of its last part if resumed.
    """

    run: str
    ended: str
    wall_s: float
    gpu_s: float
    open_s: float
    n_candidates: int
    n_evaluations: int
    within_wall_s: float | None
    within_gpu_s: float | None
    rejected: Counts
    unverified: Counts
    pruned: Counts
    n_set_aside: int
    spent: tuple[RungSpent, ...]
    asked_s: float
    steps: tuple[Step, ...]
    n_drafts: int
    idle_share: float | None = None

    @property
    def held_share(self) -> float:
        """Part of the wall time for which evaluations held the GPU, 0 to 1."""
        return self.gpu_s / self.wall_s if self.wall_s else 0.0


@dataclass(frozen=True, slots=True)
class KernelKept:
    """One kernel of the contest. ``role``: champion, first or draft; ``operator`` made it.

    ``diagnosis``: what bounds it, as its search last said, and from what (``counters``, ``compiled``, ``model``).
    """

    role: str
    candidate: str
    summary: str
    structure: str
    operator: str
    score: float | None
    source: str
    diagnosis: str | None = None


@dataclass(frozen=True, slots=True)
class Against:
    """The champion beside another in the same turns. ``ratio``: the other's time over the champion's, 95 % interval.

    ``us`` is the other's median; ``error`` says why there is nothing else.
    """

    name: str
    us: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    outcome: str | None = None
    n_pairs: int = 0
    n_processes: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A sensor over the contest: least, median and largest value."""

    name: str
    least: float
    middle: float
    most: float


@dataclass(frozen=True, slots=True)
class PairsKept:
    """Medians of every pair with one opponent in one process pair, microseconds: (champion, other)."""

    name: str
    process: int
    us: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Contest:
    """All times of a case, from one call: the champion's own, and everything beside it in turns.

    ``verdict``: the whole gate on the champion, in one line. ``refused``: candidates that stood higher in the search
    and failed that gate, each with the reason.
    """

    date: str
    command: str
    seed: int
    champion: str
    verdict: str
    us: float
    low_us: float
    high_us: float
    n_samples: int
    end_to_end_us: float | None
    against: tuple[Against, ...]
    refused: tuple[tuple[str, str], ...] = ()
    unstable: str | None = None
    readings: tuple[Reading, ...] = ()
    pairs: tuple[PairsKept, ...] = ()
    wall_s: float = 0.0

    def beside(self, name: str) -> Against | None:
        """The comparison with that opponent, where there was one."""
        return next((a for a in self.against if a.name == name and a.ratio is not None), None)


@dataclass(frozen=True, slots=True)
class Earlier:
    """A contest that another replaced: its champion, the card, the champion's time and speedup over eager (95 %)."""

    champion: str
    card: str
    date: str
    command: str
    us: float
    ratio: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class OnA100:
    """Whether the champion compiles for sm_80 within 163 KiB of shared memory and without spills; else who does.

    ``fault`` is the champion's; ``substitute`` the best other candidate that fits, ``tried`` how many were compiled.
    """

    fits: bool
    fault: str | None
    resources: tuple[KernelResources, ...]
    substitute: str | None = None
    substitute_summary: str | None = None
    substitute_source: str | None = None
    tried: int = 1


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One case, complete. ``kind``: measured, modelled or replayed; ``environment``: versions, driver, sandbox.

    ``phases``: what its time went into, in order, by name in seconds. ``earlier``: the contests that this one replaced.
    """

    case: str
    kind: str
    device: DeviceSpec
    environment: tuple[tuple[str, str], ...]
    seconds: float
    seed: int
    bytes_moved: float
    flops: float
    problem_toml: str
    story: Story
    kernels: tuple[KernelKept, ...]
    contest: Contest
    a100: OnA100 | None = None
    phases: Phases = ()
    earlier: tuple[Earlier, ...] = ()

    def kernel(self, role: str) -> KernelKept | None:
        return next((k for k in self.kernels if k.role == role), None)


def kind_of(device: DeviceSpec) -> str:
    return kind_named(device.key)


def kind_named(key: str) -> str:
    """By a device's key alone. A replay's numbers were measured once, elsewhere: they are no measurement here."""
    if key.startswith(REPLAY):
        return REPLAYED
    return MEASURED if key.startswith("cuda") else MODELLED


def earlier_of(record: CaseRecord) -> Earlier:
    contest, card = record.contest, record.device.uuid or record.device.name
    found = contest.beside(EAGER) or Against(EAGER)
    times = (contest.us, found.ratio, found.low, found.high)
    return Earlier(contest.champion, card, contest.date, contest.command, *times)


def write_record(path: Path, record: object) -> None:
    """As JSON, whole or not at all."""
    waiting = path.with_name(path.name + ".part")
    waiting.write_text(json.dumps(to_plain(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    waiting.replace(path)


def read_record(path: Path) -> CaseRecord:
    """Raises EngineError where the file holds none."""
    try:
        record: CaseRecord = from_plain(CaseRecord, json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        told = f"{path} is no record of a case: {' '.join(str(error).split())[:120]}"
        raise EngineError(told, "put it back, or remove it to search anew") from error
    return record


def read_records(folder: Path) -> dict[str, CaseRecord]:
    """Every case's record in a folder, by the case's name."""
    found: Iterable[CaseRecord] = (read_record(p) for p in sorted(folder.glob("*.json")))
    return {record.case: record for record in found}
