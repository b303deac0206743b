"""Records of the six benchmarks as tests need them: every number made up here."""

from dataclasses import replace

from benchmarks.six.cases import Case, load_cases
from benchmarks.six.record import (
    CHAMPION,
    DRAFT,
    FIRST,
    MEASURED,
    Against,
    CaseRecord,
    Contest,
    KernelKept,
    OnA100,
    Reading,
    RungSpent,
    Step,
    Story,
)  # fmt: skip
from kbtui.domain.device import DATA_SHEETS, DeviceSpec
from kbtui.domain.measurement import Clock, Outcome
from kbtui.domain.profile import KernelResources

H200: DeviceSpec = replace(DATA_SHEETS["h200"], key="cuda:0", name="NVIDIA H200", clock=Clock.MEASURED)
RESOURCES = KernelResources("softmax_row", "4096x16384", (4096, 1, 1), 16, 1, 64, 0, 4096, 1.0, "warps")


def case(name: str = "softmax-4096x16384-fp32") -> Case:
    return next(c for c in load_cases() if c.name == name)


def against(name: str, ratio: float, us: float = 100.0, outcome: Outcome | None = None) -> Against:
    """As a comparison would decide it, unless told otherwise."""
    found = outcome or (Outcome.FASTER if ratio > 1.01 else Outcome.SLOWER if ratio < 0.99 else Outcome.TIE)
    return Against(name, us * ratio, ratio, ratio - 0.005, ratio + 0.005, found.value, 36, 3)


def contest(*others: Against, us: float = 100.0) -> Contest:
    return Contest(
        date="2026-12-01T10:00:00Z", command="python benchmarks/bench_six.py --cases softmax", seed=0, champion="c0007",
        verdict="verified by gpu: all shapes", us=us, low_us=us - 0.1, high_us=us + 0.1, n_samples=864,
        end_to_end_us=us + 20, against=others, readings=(Reading("sm_mhz", 1965.0, 1980.0, 1980.0),),
    )  # fmt: skip


def story(**changes: object) -> Story:
    made = Story(
        run="softmax-1", ended="budget: spent", wall_s=45.0, gpu_s=38.0, open_s=5.0, n_candidates=30, n_evaluations=70,
        within_wall_s=18.0, within_gpu_s=14.0, rejected=(("wrong_values", 2),), unverified=(),
        pruned=(("screen", 20),), n_set_aside=0,
        spent=(RungSpent("screen", 15.0, 14.0), RungSpent("confirm", 20.0, 19.0)), asked_s=1.0,
        steps=(Step(6.0, 4.0, 1.0, "c0001"), Step(18.0, 14.0, 1.9, "c0007")), n_drafts=6, idle_share=0.61,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def record(of: Case, held: Contest, kind: str = MEASURED, device: DeviceSpec = H200) -> CaseRecord:
    kernels = tuple(
        KernelKept(
            role,
            name,
            summary,
            "softmax/online",
            "playbook: softmax_online_tiles",
            score,
            f"# {name}\n",
            "too few programs (compiled)",
        )
        for role, name, summary, score in (
            (CHAMPION, "c0007", "online softmax, tile 32768", 1.9),
            (FIRST, "c0001", "the problem's first kernel", 1.0),
            (DRAFT, "c0003", "online softmax, tile 16384", 1.7),
        )
    )
    return CaseRecord(
        case=of.name, kind=kind, device=device, environment=(("driver", "580.1"), ("torch", "2.11.0")), seconds=45.0,
        seed=0, bytes_moved=536_870_912.0, flops=3.4e8, problem_toml="name = 'softmax'\n", story=story(),
        kernels=kernels, contest=held, a100=OnA100(True, None, (RESOURCES,)),
    )  # fmt: skip
