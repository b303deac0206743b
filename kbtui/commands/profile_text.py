"""What ``profile`` found, as text for a person. Pure."""

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kbtui.domain.profile import Diagnosis, KernelResources, Profile
from kbtui.domain.proposal import Hint
from kbtui.evaluation.profiling.metrics import STALL_WORDS

if TYPE_CHECKING:
    from kbtui.commands.profile import Profiled

_WIDTH, _NARROWEST = 100, 60
_BAR, _LABEL, _FINDING = 30, 19, 20
_STALLS_SHOWN = 7
#: Launches of one call that are described.
_KERNELS_SHOWN = 4
_SOURCES = {
    "counters": "from hardware counters",
    "compiled": "without counters: from the compiled kernel and the measured time",
    "model": "modelled, not measured: no GPU",
}
#: Counters worth a line, with a person's word for each.
_SHOWN = (
    ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "busiest unit of SMs"),
    ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "busiest of memory"),
    ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "device memory"),
    ("lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2"),
    ("l1tex__throughput.avg.pct_of_peak_sustained_active", "L1"),
    ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "tensor cores"),
    ("sm__warps_active.avg.pct_of_peak_sustained_active", "warps at work"),
    ("smsp__issue_active.avg.pct_of_peak_sustained_active", "issue slots"),
    ("lts__t_sector_hit_rate.pct", "hits in L2"),
    ("l1tex__t_sector_hit_rate.pct", "hits in L1"),
)


def render(found: "Profiled", width: int = _WIDTH) -> str:
    """Several lines of at most ``width``: the sentence first, then what is behind it, then what to do."""
    return "\n".join(_lines(found, max(width, _NARROWEST)))


def _lines(found: "Profiled", width: int) -> Iterator[str]:
    outcome = found.outcome
    which = f"{found.kernel} for {found.problem}" if found.kernel else f"{found.problem}'s first kernel"
    yield from textwrap.wrap(f"{which}, {found.shape} on {found.device} ({found.clock} times)", width)
    verdict = outcome.verdict
    if not verdict.ok or outcome.diagnosis is None:
        yield f"{verdict.kind} by {verdict.proof}: {verdict.reason}: {verdict.detail}"
        return
    yield ""
    yield from _diagnosis(outcome.diagnosis, width)
    if outcome.profile is not None:
        yield from _profile(outcome.profile, width)
    yield from _resources(outcome.resources, width)
    yield from _hints(found.hints, width)
    if found.report:
        yield ""
        yield f"report: {found.report} (open it with ncu-ui)"


def _diagnosis(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    yield from textwrap.wrap(diagnosis.sentence, width)
    over = f" ({diagnosis.headroom:.2f} times it)" if diagnosis.bound_us > 0 else ""
    yield f"{diagnosis.time_us:.1f} us; the problem's bound is {diagnosis.bound_us:.1f} us{over}"
    yield from ("", "what bounds it (part of the time that a cure could save)")
    for finding in diagnosis.findings:
        told = ", ".join(e.told for e in finding.evidence)
        head = f"  {finding.weight:4.2f}  {finding.bottleneck.value.replace('_', ' '):{_FINDING}} "
        yield from textwrap.wrap(f"{head}{told}", width, subsequent_indent=" " * len(head))
    yield f"  ({_SOURCES.get(diagnosis.source, diagnosis.source)})"


def _profile(profile: Profile, width: int) -> Iterator[str]:
    yield ""
    if profile.not_profiled is not None:
        yield from textwrap.wrap(f"not profiled: {profile.not_profiled}", width, subsequent_indent="  ")
        return
    yield "how busy it keeps the chip, of each unit's peak"
    yield from _units(profile)
    if profile.stalls:
        yield ""
        yield "why warps wait"
    waits = [(reason, percent) for reason, percent in profile.stalls if reason != "selected" and percent >= 0.5]
    for reason, percent in waits[:_STALLS_SHOWN]:
        words = STALL_WORDS.get(reason, "")
        shown = f"  {reason.replace('_', ' '):{_LABEL}} {_bar(percent)} {percent:5.1f} %"
        yield f"{shown}  {words}" if words and len(shown) + 2 + len(words) <= width else shown
    for note in profile.notes:
        yield from textwrap.wrap(f"  does not fit: {note}", width, subsequent_indent="    ")


def _units(profile: Profile) -> Iterator[str]:
    for name, word in _SHOWN:
        value = profile.metric(name)
        if value is not None:
            yield f"  {word:{_LABEL}} {_bar(value)} {value:5.1f} %"


def _bar(percent: float) -> str:
    filled = round(_BAR * min(max(percent, 0.0), 100.0) / 100.0)
    return "#" * filled + "." * (_BAR - filled)


def _resources(resources: tuple[KernelResources, ...], width: int) -> Iterator[str]:
    if resources:
        yield ""
        yield "as compiled"
    for r in resources[:_KERNELS_SHOWN]:
        yield from textwrap.wrap(f"  {r.kernel}: {_compiled(r)}", width, subsequent_indent="    ")
    if len(resources) > _KERNELS_SHOWN:
        yield f"  and {len(resources) - _KERNELS_SHOWN} more"


def _compiled(r: KernelResources) -> str:
    grid = "x".join(map(str, r.grid)) if any(n > 1 for n in r.grid[1:]) else f"{r.grid[0]}"
    programs = f"{grid} program{'' if r.grid == (1, 1, 1) else 's'}"
    warps = f"{r.num_warps} warp{'' if r.num_warps == 1 else 's'}"
    spills = f", {r.spill_bytes:,} bytes spilled" if r.spill_bytes else ""
    threads = f"{r.registers} registers a thread{spills}, {r.shared_bytes:,} bytes of shared memory a program"
    return f"{programs} of {warps}, {threads}; occupancy {r.occupancy:.0%}, limited by {r.limiter}"


def _hints(hints: tuple[Hint, ...], width: int) -> Iterator[str]:
    if hints:
        yield ""
        yield "what to do, the likeliest first"
    for hint in hints:
        yield from _wrapped(f"{hint.id} ({hint.space.replace('_', ' ')}): {hint.advice}", width, "  ", "    ")
        if hint.why:
            yield from _wrapped(f"why: {hint.why}", width, "    ", "    ")
        if hint.operators:
            yield from _wrapped(f"a search does it by: {', '.join(hint.operators)}", width, "    ", "      ")


def _wrapped(text: str, width: int, first: str, then: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=then)
