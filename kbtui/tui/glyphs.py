"""The characters the viewer draws with: one set for terminals with Unicode, one that is plain ASCII."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """``bar`` runs from the smallest part of a cell to the whole; ``spark`` from low to high.

    ``dots`` are one sample in a cell, and several. ``kernel``, ``parent`` and ``bound`` are the roofline's points.
    """

    ascii_only: bool
    times: str
    dash: str
    arrow: str
    micro: str
    ellipsis: str
    at_most: str
    dot: str
    cursor: str
    running: str
    waiting: str
    promoted: str
    pruned: str
    rejected: str
    unverified: str
    champion: str
    incumbent: str
    was_best: str
    pinned: str
    marked: str
    alive: str
    paused: str
    ended: str
    lost: str
    pending: str
    step_done: str
    step_here: str
    step_todo: str
    bar: str
    bar_empty: str
    spark: str
    axis: str
    axis_zero: str
    rule: str
    curve_flat: str
    curve_rise: str
    curve_top: str
    curve_bottom: str
    level: str
    point: str
    span: str
    wrap: str
    fold: str
    divider: str
    branch: str
    last_branch: str
    trunk: str
    differs: str
    slope: str
    roof_2: str
    kernel: str
    parent: str
    bound: str
    dots: str


UNICODE = Glyphs(
    ascii_only=False, times="×", dash="–", arrow="→", micro="µs", ellipsis="…", at_most="≤ ", dot="·",
    cursor="▸", running="▶", waiting="○", promoted="↑", pruned="↓", rejected="✗", unverified="?",
    champion="★", incumbent="◆", was_best="☆", pinned="⚑", marked="●", alive="●", paused="‖", ended="■", lost="✗",
    pending="»",
    step_done="■", step_here="▶", step_todo="·", bar="▏▎▍▌▋▊▉█", bar_empty="·", spark="▁▂▃▄▅▆▇█",
    axis="┤", axis_zero="┼", rule="─", curve_flat="─", curve_rise="│", curve_top="╭",
    curve_bottom="╯", level="╌", point="●", span="━", wrap="↪", fold="⋯", divider="│",
    branch="├╴", last_branch="└╴", trunk="│ ", differs="≠", slope="╱", roof_2="╌", kernel="●", parent="○", bound="◆",
    dots="•●",
)  # fmt: skip

ASCII = Glyphs(
    ascii_only=True, times="x", dash="-", arrow="->", micro="us", ellipsis="..", at_most="<= ", dot="-",
    cursor=">", running=">", waiting="o", promoted="^", pruned="v", rejected="x", unverified="?",
    champion="*", incumbent="+", was_best="%", pinned="!", marked="@", alive="*", paused="=", ended="#", lost="X",
    pending="~",
    step_done="#", step_here=">", step_todo=".", bar="#", bar_empty=".", spark="_.-=+*%@",
    axis="|", axis_zero="+", rule="-", curve_flat="-", curve_rise="|", curve_top="+",
    curve_bottom="+", level=".", point="*", span="=", wrap="\\", fold="...", divider="|",
    branch="|-", last_branch="`-", trunk="| ", differs="#", slope="/", roof_2=".", kernel="K", parent="P", bound="B",
    dots=".o",
)  # fmt: skip
