"""Numbers as a person reads them: times, ratios with their interval, shares."""

from kbtui.domain.event import Budget
from kbtui.tui.glyphs import Glyphs


def clock(seconds: float) -> str:
    """Seconds as ``4:02`` or ``1:02:03``."""
    whole = max(int(seconds), 0)
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def ago(seconds: float) -> str:
    """An age in one unit: ``41 s``, ``12 min``, ``5 h``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def time_us(microseconds: float, g: Glyphs) -> str:
    """A kernel's time with three or four digits: ``7.41 µs``, ``134.6 µs``, ``1.051 ms``."""
    if microseconds >= 1000:
        return f"{microseconds / 1000:.3f} ms"
    return f"{microseconds:.2f} {g.micro}" if microseconds < 10 else f"{microseconds:.1f} {g.micro}"


def time_span(low_us: float, high_us: float, g: Glyphs) -> str:
    """An interval of times with its unit once: ``129.7–129.8 µs``."""
    low, high = time_us(low_us, g), time_us(high_us, g)
    number, _, unit = low.partition(" ")
    return f"{number}{g.dash}{high}" if high.endswith(unit) else f"{low}{g.dash}{high}"


def ratio(value: float, g: Glyphs) -> str:
    """``1.41×``; three decimals near one, where they matter."""
    return f"{value:.3f}{g.times}" if 0.9 < value < 1.1 else f"{value:.2f}{g.times}"


def interval(value: float, low: float, high: float, g: Glyphs) -> str:
    """``1.41× (1.39–1.43)``; the bare ratio where there is no interval."""
    if low == high:
        return ratio(value, g)
    digits = 3 if 0.9 < value < 1.1 or high - low < 0.02 else 2
    return f"{value:.{digits}f}{g.times} ({low:.{digits}f}{g.dash}{high:.{digits}f})"


def share(part: float, whole: float) -> str:
    """Part of a whole in per cent; empty where there is no whole yet."""
    if whole <= 0:
        return ""
    percent = 100 * part / whole
    return "<1 %" if 0 < percent < 1 else f"{percent:.0f} %"


def spent(wall_s: float, gpu_s: float, n_candidates: int, budget: Budget) -> tuple[str, str, str]:
    """Wall time, GPU time and candidates, each beside its limit where it has one."""
    wall = clock(wall_s) + (f" of {clock(budget.wall_s)}" if budget.wall_s is not None else "")
    gpu = f"GPU {clock(gpu_s)}" + (f" of {clock(budget.gpu_s)}" if budget.gpu_s is not None else "")
    count = f"{n_candidates} of {budget.candidates}" if budget.candidates is not None else f"{n_candidates}"
    return wall, gpu, f"{count} candidates"


def bytes_text(count: int) -> str:
    """``48 KB``, ``512 B``."""
    return f"{count / 1024:.0f} KB" if count >= 1024 else f"{count} B"
