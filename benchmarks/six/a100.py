"""Does a champion compile for sm_80, and if not, who of its search does? Needs no GPU. Effects: compile children."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.six.contest import Entrant
from benchmarks.six.record import OnA100
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import Problem
from kbtui.domain.profile import KernelResources
from kbtui.evaluation.compile.compiler import Compiler, describe_inputs
from kbtui.evaluation.compile.report import CompileReport
from kbtui.evaluation.process import Zygote

CHIP = DATA_SHEETS["a100"]
SHARED_BYTES = CHIP.shared_per_block
#: Candidates that are compiled in search of a substitute.
MOST_TRIED = 12
_WORKERS = 2


def on_a100(problem: Problem, ranked: Sequence[Entrant], folder: Path) -> OnA100:
    """``ranked``: the champion first. ``folder``: for logs and what is compiled."""
    folder.mkdir(parents=True, exist_ok=True)
    with Zygote(folder / "zygote.log", interpret=False) as zygote:
        inputs = describe_inputs(zygote, problem)
        with Compiler(zygote, CHIP, problem, inputs, folder / "compiled", _WORKERS) as compiler:
            reports = (compiler.submit(entrant.source).result() for entrant in ranked[:MOST_TRIED])
            champion = next(reports)
            fault = fault_of(champion)
            if fault is None:
                return OnA100(True, None, champion.resources)
            for number, report in enumerate(reports, start=1):
                if fault_of(report) is None:
                    other = ranked[number]
                    candidate = other.tried.candidate
                    return OnA100(
                        False, fault, report.resources, candidate.id, candidate.summary, other.source, number + 1
                    )
    return OnA100(False, fault, champion.resources, tried=min(len(ranked), MOST_TRIED))


def fault_of(report: CompileReport) -> str | None:
    """Why it will not do there, in one line."""
    if not report.verdict.ok:
        return f"{report.verdict.reason}: {report.verdict.detail}"
    return next((told for r in report.resources if (told := too_much(r))), None)


def too_much(resources: KernelResources) -> str | None:
    """Spills, or more shared memory than a block may have."""
    if resources.spill_bytes:
        return f"{resources.kernel} spills {resources.spill_bytes} bytes a thread"
    if resources.shared_bytes > SHARED_BYTES:
        return f"{resources.kernel} needs {resources.shared_bytes / 1024:.1f} KiB of shared memory"
    return None
