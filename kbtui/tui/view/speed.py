"""How near a kernel comes to what the chip can do, and what its warps wait for: shares of a peak as bars."""

from collections.abc import Sequence

from kbtui.domain.profile import Diagnosis, Profile
from kbtui.evaluation.profiling import metrics
from kbtui.tui.draw import bar
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.text import Line, Role, fit, line

#: Units of the chip as a person calls them, and the counters that say how busy each was, first found first used.
_UNITS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("compute", (metrics.SM_PCT,)),
    ("tensor core", (metrics.TENSOR_PCT,)),
    ("dram", (metrics.DRAM_PCT, "dram__throughput.avg.pct_of_peak_sustained_elapsed")),
    ("L2", (metrics.L2_PCT,)),
    ("L1", (metrics.L1_PCT,)),
)
_LABEL, _STALL_LABEL = 12, 19
#: A stall below this would be told as 0 %.
_LEAST_PERCENT = 0.5


def speed_of_light(diagnosis: Diagnosis | None, profile: Profile | None) -> list[tuple[str, float]]:
    """(unit, per cent of its peak): from counters where there are any, else from what the diagnosis reckons."""
    if profile is not None and profile.metrics:
        found = [
            (unit, next((v for n in names if (v := profile.metric(n)) is not None), None)) for unit, names in _UNITS
        ]
        shares = [(unit, value) for unit, value in found if value is not None]
        return [(unit, value) for unit, value in shares if unit != "tensor core" or value > 0]
    evidence = [e for f in diagnosis.findings for e in f.evidence] if diagnosis else []
    names = {"arithmetic": "compute", "compute": "compute", "memory": "memory", "dram": "dram"}
    shares = [(names[e.name], e.value) for e in evidence if e.name in names and e.unit.startswith("% of peak")]
    return list(dict(shares).items())


def speed_lines(shares: Sequence[tuple[str, float]], width: int, g: Glyphs) -> list[Line]:
    """The busiest unit stands out: it is the one that could bound the kernel."""
    top = max((value for _, value in shares), default=0.0)
    room = max(min(width - _LABEL - 14, 24), 6)
    return [
        (
            *_share_line(unit, value, _LABEL, room, Role.ACCENT if value == top > 0 else Role.PLAIN, g),
            (" of peak", Role.DIM),
        )
        for unit, value in shares
    ]


def stall_lines(stalls: Sequence[tuple[str, float]], width: int, most: int, g: Glyphs) -> list[Line]:
    """The heaviest reasons as bars, with what each means where there is room."""
    ranked = sorted((s for s in stalls if s[0] != "selected" and s[1] >= _LEAST_PERCENT), key=lambda s: -s[1])[:most]
    room = max(min(width - _STALL_LABEL - 6, 24 if width < 70 else 12), 6)
    words_room = width - _STALL_LABEL - room - 8
    out = []
    for name, percent in ranked:
        words = metrics.STALL_WORDS.get(name, "") if words_room >= 20 else ""
        shown = _share_line(name.replace("_", " "), percent, _STALL_LABEL, room, Role.PLAIN, g)
        out.append((*shown, (f"  {fit(words, words_room, g.ellipsis).rstrip()}", Role.DIM)) if words else shown)
    return out


def _share_line(name: str, percent: float, label: int, room: int, role: Role, g: Glyphs) -> Line:
    drawn = bar(percent / 100, room, g)
    return line((fit(name, label - 1, g.ellipsis) + " ", Role.DIM), (drawn, role), (f"{percent:>4.0f} %", role))
