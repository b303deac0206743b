"""Read ``ncu --page raw --csv``: whatever stands before the header, any locale, missing metrics. Pure.

The page is one row a launch under a header row of column names and a row of units. Lines of the profiler (``==PROF==``)
and of the profiled program may stand before and between them.
"""

import csv
import re
from dataclasses import dataclass

from kbtui.domain.profile import Evidence, Profile
from kbtui.evaluation.profiling import metrics

_NAME = "Kernel Name"
_IDENTITY = ("ID", _NAME)
_ABSENT = {"", "n/a", "nan", "-nan", "inf", "-inf", "(!) n/a", "no data", "<not available>"}

#: To bytes, nanoseconds, hertz and plain counts.
_UNITS: dict[str, tuple[float, str]] = {
    "byte": (1.0, "byte"), "kbyte": (1e3, "byte"), "mbyte": (1e6, "byte"), "gbyte": (1e9, "byte"),
    "ns": (1.0, "ns"), "nsecond": (1.0, "ns"), "us": (1e3, "ns"), "usecond": (1e3, "ns"), "ms": (1e6, "ns"),
    "msecond": (1e6, "ns"), "s": (1e9, "ns"), "second": (1e9, "ns"),
    "byte/block": (1.0, "byte/block"), "kbyte/block": (1e3, "byte/block"),
    "sector": (1.0, "sector"), "ksector": (1e3, "sector"), "msector": (1e6, "sector"),
    "inst": (1.0, "inst"), "kinst": (1e3, "inst"), "minst": (1e6, "inst"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LaunchCounters:
    """One launch's row: the kernel's name and the metrics that have a number, in base units."""

    kernel: str
    values: tuple[Evidence, ...]

    def value(self, name: str) -> float | None:
        return next((v.value for v in self.values if v.name == name), None)


def parse_raw_page(text: str) -> tuple[LaunchCounters, ...]:
    """The launches of a raw page, in order. Raises ValueError where no header row is found."""
    rows = _rows(text)
    start = next((i for i, row in enumerate(rows) if all(name in row for name in _IDENTITY)), None)
    if start is None:
        last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "nothing")
        raise ValueError(f"ncu wrote no table; its last line is: {last[:200]}")
    header = rows[start]
    units: list[str] | None = None
    launches = []
    for row in rows[start + 1 :]:
        if len(row) < len(header) // 2 or row == header:
            continue
        cells = dict(zip(header, row, strict=False))
        if not cells["ID"].strip():
            units = row if units is None else units
        elif cells["ID"].strip().isdigit():
            launches.append(_launch(cells, dict(zip(header, units or [], strict=False))))
    return tuple(launches)


def _rows(text: str) -> list[list[str]]:
    try:
        return list(csv.reader(text.replace("\ufeff", "").replace("\0", "").splitlines()))
    except csv.Error as error:
        raise ValueError(f"ncu's table is broken: {error}") from error


def _launch(cells: dict[str, str], units: dict[str, str]) -> LaunchCounters:
    values = []
    for name, text in cells.items():
        number = parse_number(text) if "__" in name else None
        if number is not None:
            scale, unit = _UNITS.get(units.get(name, "").lower(), (1.0, units.get(name, "")))
            values.append(Evidence(name.strip(), number * scale, unit))
    return LaunchCounters(cells[_NAME].strip(), tuple(values))


def parse_number(text: str) -> float | None:
    """A number in any locale: ``1,234.5``, ``1.234,5``, ``1 234,5``; None for ``n/a`` and the like.

    With one kind of separator, groups of exactly three digits after commas are thousands (``1,234``), and a single dot
    is decimal (``1.234``); ncu is run in the C locale, so the ambiguous cases do not arise from our own runs.
    """
    cleaned = re.sub(r"[\s\u00a0\u202f'’_]", "", text).rstrip("%")
    if cleaned.lower() in _ABSENT:
        return None
    comma, dot = cleaned.rfind(","), cleaned.rfind(".")
    if comma >= 0 and dot >= 0:
        thousands, decimal = (",", ".") if dot > comma else (".", ",")
        cleaned = cleaned.replace(thousands, "").replace(decimal, ".")
    elif re.fullmatch(r"-?\d{1,3}(,\d{3})+", cleaned) or re.fullmatch(r"-?\d{1,3}(\.\d{3}){2,}", cleaned):
        cleaned = cleaned.replace(",", "").replace(".", "")
    else:
        cleaned = cleaned.replace(",", ".")
    try:
        return float(cleaned)
    except ValueError:
        return None


def profile_of(shape: str, launches: tuple[LaunchCounters, ...]) -> Profile:
    """All launches of one call as one profile: counts added up, rates averaged over time."""
    times = [launch.value(metrics.DURATION) or 0.0 for launch in launches]
    total = sum(times)
    weights = [t / total if total > 0 else 1.0 / len(launches) for t in times]
    # A page also tells of the device and gives each metric's minimum and maximum over the units.
    names = list(dict.fromkeys(v.name for launch in launches for v in launch.values if v.name in metrics.KNOWN))
    merged = tuple(_merge(name, launches, weights) for name in names)
    stalls = _stalls({m.name: m.value for m in merged})
    shown = tuple(m for m in merged if "issue_stalled" not in m.name)
    return Profile(shape, shown, stalls, tuple(launch.kernel for launch in launches))


def _merge(name: str, launches: tuple[LaunchCounters, ...], weights: list[float]) -> Evidence:
    found = [(v, w) for launch, w in zip(launches, weights, strict=True) for v in launch.values if v.name == name]
    if name in metrics.SUMMED:
        return Evidence(name, sum(v.value for v, _ in found), found[0][0].unit)
    weight = sum(w for _, w in found)
    mean = sum(v.value * w for v, w in found) / weight if weight else found[0][0].value
    return Evidence(name, mean, found[0][0].unit)


def _stalls(values: dict[str, float]) -> tuple[tuple[str, float], ...]:
    """Each reason's part of the cycles between two instructions of a warp, in per cent, largest first."""
    cycles = {reason: values.get(metrics.stall_metric(reason), 0.0) for reason in metrics.STALLS}
    total = sum(cycles.values())
    if total <= 0:
        return ()
    ranked = sorted(cycles.items(), key=lambda item: -item[1])
    return tuple((reason, 100.0 * value / total) for reason, value in ranked if value > 0)
