"""What ``profile`` found, as text for a person. Pure."""

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kbtui.domain.profile import Diagnosis, Evidence, KernelResources, Profile
from kbtui.domain.proposal import Hint

if TYPE_CHECKING:
    from kbtui.commands.profile import Profiled

_WIDTH = 100
_BAR = 30
_STALLS_SHOWN = 7
_SOURCES = {
    "counters": "from hardware counters",
    "compiled": "without counters: from the compiled kernel and the measured time",
    "model": "modelled, not measured: no GPU",
}
#: Counters worth a line, with a person's word for each.
_SHOWN = (
    ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "compute units"),
    ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "memory units"),
    ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "device memory"),
    ("lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2"),
    ("l1tex__throughput.avg.pct_of_peak_sustained_active", "L1"),
    ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "tensor cores"),
    ("sm__warps_active.avg.pct_of_peak_sustained_active", "warps at work"),
    ("smsp__issue_active.avg.pct_of_peak_sustained_active", "issue slots"),
    ("lts__t_sector_hit_rate.pct", "hits in L2"),
    ("l1tex__t_sector_hit_rate.pct", "hits in L1"),
)


def render(found: "Profiled") -> str:
    """Several lines: the sentence first, then what is behind it, then what to do."""
    return "\n".join(_lines(found))


def _lines(found: "Profiled") -> Iterator[str]:
    outcome = found.outcome
    yield f"{found.problem} on {found.shape}, {found.device} ({found.clock} times)"
    verdict = outcome.verdict
    if not verdict.ok or outcome.diagnosis is None:
        yield f"{verdict.kind} by {verdict.proof}: {verdict.reason}: {verdict.detail}"
        return
    yield ""
    yield from _diagnosis(outcome.diagnosis)
    if outcome.profile is not None:
        yield from _profile(outcome.profile)
    yield from _resources(outcome.resources)
    yield from _hints(found.hints)
    if found.report:
        yield ""
        yield f"report: {found.report} (open it with ncu-ui)"


def _diagnosis(diagnosis: Diagnosis) -> Iterator[str]:
    yield from textwrap.wrap(diagnosis.sentence, _WIDTH)
    over = f" ({diagnosis.headroom:.2f} times it)" if diagnosis.bound_us > 0 else ""
    yield f"{diagnosis.time_us:.1f} us; the problem's bound is {diagnosis.bound_us:.1f} us{over}"
    yield _SOURCES.get(diagnosis.source, diagnosis.source)
    yield ""
    for finding in diagnosis.findings:
        told = ", ".join(_evidence(e) for e in finding.evidence)
        yield f"  {finding.weight:4.2f}  {finding.bottleneck.value.replace('_', ' '):22} {told}"


def _evidence(evidence: Evidence) -> str:
    return f"{evidence.name} {evidence.value:.4g} {evidence.unit}".strip()


def _profile(profile: Profile) -> Iterator[str]:
    yield ""
    if profile.not_profiled is not None:
        yield from textwrap.wrap(f"not profiled: {profile.not_profiled}", _WIDTH, subsequent_indent="  ")
        return
    for name, word in _SHOWN:
        value = profile.metric(name)
        if value is not None:
            yield f"  {word:16} {_bar(value)} {value:5.1f} %"
    if profile.stalls:
        yield ""
        yield "why warps wait"
    for reason, percent in profile.stalls[:_STALLS_SHOWN]:
        yield f"  {reason.replace('_', ' '):16} {_bar(percent)} {percent:5.1f} %"
    for note in profile.notes:
        yield f"  does not fit: {note}"


def _bar(percent: float) -> str:
    filled = round(_BAR * min(max(percent, 0.0), 100.0) / 100.0)
    return "#" * filled + "." * (_BAR - filled)


def _resources(resources: tuple[KernelResources, ...]) -> Iterator[str]:
    if resources:
        yield ""
    for r in resources[:4]:
        spills = f", spills {r.spill_bytes} B" if r.spill_bytes else ""
        grid = "x".join(map(str, r.grid))
        yield f"{r.kernel}: {grid} programs of {r.num_warps} warps, {r.registers} registers{spills},"
        yield f"  {r.shared_bytes} B shared; occupancy {r.occupancy:.0%}, limited by {r.limiter}"


def _hints(hints: tuple[Hint, ...]) -> Iterator[str]:
    if hints:
        yield ""
        yield "what to do"
    for hint in hints:
        by = f" [{', '.join(hint.operators)}]" if hint.operators else ""
        yield from textwrap.wrap(
            f"{hint.id} ({hint.space}): {hint.advice}{by}", _WIDTH, initial_indent="  ", subsequent_indent="    "
        )
        if hint.why:
            yield from textwrap.wrap(f"why: {hint.why}", _WIDTH, initial_indent="    ", subsequent_indent="    ")
