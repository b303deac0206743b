"""A bench as tables and histograms for a terminal, a pipe or a log. Pure: makes rich renderables, and text of them.

No number is ever cut: a table that does not fit is stacked, a block of lines a shape.
"""

import io
from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement as Extent
from rich.table import Table
from rich.text import Text

from kbtui.benching.result import Benched, BenchReport, histogram
from kbtui.domain.measurement import Clock, Comparison, ShapeRatio, ShapeTiming

OTHERS = ("eager", "compile", "first")
N_BINS = 32
#: Wider than any table of a bench.
_UNBOUNDED = 10_000
_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.:-=+*#"


def render(report: BenchReport, width: int | None = None, ascii_only: bool = False) -> RenderableType:
    """One table a kernel, PyTorch's alone-times last, then a histogram a shape.

    Args:
        width: columns there are; a table that needs more is stacked. None: as many as it needs.
    """
    parts: list[RenderableType] = [Text(_heading(report))]
    for kernel in report.kernels:
        parts += [Text(""), Text(_kernel_line(kernel))]
        if kernel.measurement:
            parts += _kernel_parts(report, kernel, width, ascii_only)
    parts += [Text(""), *(Text(line) for line in _baseline_lines(report))]
    return Group(*parts)


def plain(report: BenchReport, ascii_only: bool = False) -> str:
    """What a pipe or a file gets: as wide as it needs, nothing folded, no spaces at the ends of lines."""
    out = io.StringIO()
    Console(file=out, width=_UNBOUNDED, color_system=None, legacy_windows=False).print(render(report, None, ascii_only))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _kernel_parts(report: BenchReport, kernel: Benched, width: int | None, ascii_only: bool) -> list[RenderableType]:
    table, histograms = _kernel_table(report, kernel, ascii_only), list(_histograms(kernel, ascii_only))
    needed = max((_width_of(table), *map(len, histograms)))
    if width is None or needed <= width:
        return [table, *(Text(line) for line in histograms)]
    return [Text(line) for line in _stacked(report, kernel, ascii_only)]


def _width_of(table: Table) -> int:
    console = Console(width=_UNBOUNDED, file=io.StringIO())
    return Extent.get(console, console.options, table).maximum


def _heading(report: BenchReport) -> str:
    how = {
        Clock.MEASURED: "measured: device time of one call, cold L2, medians with 95 % intervals; ratios from "
        "interleaved pairs in fresh processes",
        Clock.MODELLED: "modelled, not measured: nothing ran on this chip",
    }[report.device.clock]
    return f"{report.problem.name} on {report.device.name} ({how})"


def _kernel_line(kernel: Benched) -> str:
    verdict = kernel.verdict
    if not verdict.ok:
        return f"{kernel.name}: {verdict.kind} ({verdict.reason}): {verdict.detail}"
    doubt = f"; unstable: {kernel.measurement.unstable}" if kernel.measurement and kernel.measurement.unstable else ""
    return f"{kernel.name}: verified by {verdict.proof}, {verdict.detail}{doubt}"


def _kernel_table(report: BenchReport, kernel: Benched, ascii_only: bool) -> Table:
    measurement = kernel.measurement
    assert measurement is not None
    found = _comparisons(kernel)
    table = Table(box=box.ASCII if ascii_only else box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("shape", "time us", "95 %", "of bound", *(f"over {c.against}" for c in found)):
        table.add_column(heading, justify="left" if heading == "shape" else "right", no_wrap=True)
    sign = "x" if ascii_only else "×"
    for timing in measurement.timings:
        table.add_row(*_row(report, timing, found, sign))
    if found:
        table.add_row("all", "", "", "", *(_whole(c, sign) for c in found))
    return table


def _comparisons(kernel: Benched) -> list[Comparison]:
    return [c for name in OTHERS if (c := kernel.against(name)) is not None]


def _stacked(report: BenchReport, kernel: Benched, ascii_only: bool) -> Iterator[str]:
    """A block a shape, one figure a line; histograms on a line of their own."""
    measurement = kernel.measurement
    assert measurement is not None
    found, sign = _comparisons(kernel), "x" if ascii_only else "×"
    label = max(len("of bound"), *(len(f"over {c.against}") for c in found)) if found else len("of bound")
    for timing in measurement.timings:
        _, time, interval, share, *ratios = _row(report, timing, found, sign)
        yield ""
        yield timing.shape
        yield f"  {'time':{label}}  {time} us ({interval})"
        yield f"  {'of bound':{label}}  {share}"
        yield from (f"  {f'over {c.against}':{label}}  {r}" for c, r in zip(found, ratios, strict=True) if r)
        yield from _small_histogram(kernel.samples_us.get(timing.shape, ()), label, ascii_only)
    if found:
        yield ""
        yield "all"
        yield from (f"  {f'over {c.against}':{label}}  {_whole(c, sign)}" for c in found)


def _small_histogram(samples: tuple[float, ...], label: int, ascii_only: bool) -> Iterator[str]:
    if samples:
        drawn, low, high = _drawn(samples, ascii_only)
        yield f"  {'samples':{label}}  |{drawn}|"
        yield f"  {'':{label}}  {low:.2f} to {high:.2f} us and more, {len(samples)} samples"


def _row(report: BenchReport, timing: ShapeTiming, found: list[Comparison], sign: str) -> Iterator[str]:
    yield timing.shape
    yield f"{timing.device_us:.2f}"
    yield f"{timing.low_us:.2f}-{timing.high_us:.2f}"
    yield f"{100 * report.share_of_bound(timing):.0f} %"
    for comparison in found:
        mine = next((s for s in comparison.shapes if s.shape == timing.shape), None)
        yield _ratio(mine, sign) if mine else ""


def _ratio(found: ShapeRatio | Comparison, sign: str) -> str:
    return f"{found.ratio:.3f}{sign} ({found.low:.3f}-{found.high:.3f})"


def _whole(found: Comparison, sign: str) -> str:
    """A ratio nobody decided about is not called a win."""
    return f"{_ratio(found, sign)} {found.outcome}"


def _histograms(kernel: Benched, ascii_only: bool) -> Iterator[str]:
    widest = max((len(s) for s in kernel.samples_us), default=0)
    for shape, samples in kernel.samples_us.items():
        drawn, low, high = _drawn(samples, ascii_only)
        yield f"{shape:<{widest}}  {low:9.2f} us |{drawn}| {high:.2f} us and more, {len(samples)} samples"


def _drawn(samples: tuple[float, ...], ascii_only: bool) -> tuple[str, float, float]:
    """Bars, the time where they begin, and from which on all is in the last."""
    bars = _ASCII_BARS if ascii_only else _BARS
    counts, low, high = histogram(samples, N_BINS)
    top = max(counts)
    return "".join(" " if n == 0 else bars[min(len(bars) - 1, n * len(bars) // (top + 1))] for n in counts), low, high


def _baseline_lines(report: BenchReport) -> Iterator[str]:
    if report.device.clock is Clock.MODELLED:
        yield "PyTorch is absent: its kernels cannot be modelled; ratios are over the problem's first kernel"
    for baseline in report.baselines:
        if baseline.measurement is None:
            yield f"{baseline.name}: not timed: {baseline.error}"
        else:
            times = ", ".join(f"{t.shape} {t.device_us:.2f} us" for t in baseline.measurement.timings)
            yield f"{baseline.name}, timed alone: {times}"
