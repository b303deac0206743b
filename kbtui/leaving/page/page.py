"""The whole page. Pure; nothing in it refers to anything outside it, and its policy forbids that a browser should."""

import base64
import hashlib

from kbtui.domain.profile import KernelResources
from kbtui.leaving.page.candidates import candidates_section
from kbtui.leaving.page.curve import curve_section
from kbtui.leaving.page.difference import diff_section
from kbtui.leaving.page.environment import environment_section
from kbtui.leaving.page.funnel import funnel_section
from kbtui.leaving.page.headline import headline_section, shapes_table
from kbtui.leaving.page.lineage import lineage_section
from kbtui.leaving.page.roofline import placed_shapes, roofline_section
from kbtui.leaving.page.shown import Shown
from kbtui.leaving.page.style import CSS, SCRIPT
from kbtui.leaving.page.text import esc, tag
from kbtui.leaving.rows import RungRow, rung_rows
from kbtui.result import headline, run_result

__all__ = ["Shown", "report_page"]


def report_page(shown: Shown) -> str:
    """One HTML document: result, curve, ladder, roofline, candidates, lineage, difference, environment."""
    state = shown.state
    started = state.started
    assert started is not None
    result, rows = run_result(state), rung_rows(shown.envelopes, state)
    decided = _deciding(rows, shown.best.candidate.id)
    placed = placed_shapes(shown.spec, started.device, decided, state.first) if shown.spec else []
    roof = roofline_section(placed, started.device, result.clock) if placed else _no_roofline(shown)
    sections = (
        ("Shape by shape", shapes_table(result, placed)),
        ("Best so far", curve_section(rows, (state.wall_s, state.gpu_s))),
        ("The ladder", funnel_section(rows, state)),
        ("Roofline and what bounds it", tag("div", roof + _diagnosis(decided), class_="pair")),
        ("From the first kernel to the best", diff_section(shown)),
        ("Lineage", lineage_section(shown)),
        (f"Candidates ({len(state.tried)})", candidates_section(shown)),
        ("Environment", environment_section(shown)),
    )
    title = tag("h1", esc(f"{started.problem} · run {started.run} · kbtui"))
    body = "".join(tag("section", tag("h2", esc(name)) + inner, id=_slug(name)) for name, inner in sections if inner)
    nav = tag("nav", " ".join(tag("a", esc(name), href=f"#{_slug(name)}") for name, inner in sections if inner))
    return _document(
        f"{started.run}: {headline(result)}", tag("header", title + headline_section(shown, result) + nav) + body
    )


def _deciding(rows: tuple[RungRow, ...], best: str) -> RungRow | None:
    """The best kernel's row at the highest rung that timed it."""
    timed = [r for r in rows if r.tried.candidate.id == best and r.measurement is not None]
    return max(timed, key=lambda r: r.event.rung, default=None)


def _slug(name: str) -> str:
    return "part-" + "-".join(word for word in name.lower().split() if word.isalpha())


def _no_roofline(shown: Shown) -> str:
    return (
        tag("p", esc(f"No bytes and flops to draw it from: {shown.no_problem}."), class_="note")
        if shown.no_problem
        else ""
    )


def _diagnosis(row: RungRow | None) -> str:
    found = row.event.outcome.diagnosis if row else None
    if row is None or found is None:
        return ""
    said = [e.told for f in found.findings for e in f.evidence]
    basis = {"counters": "hardware counters", "compiled": "the compiled kernel, without counters", "model": "the model"}
    note = f"On {found.shape}, from {basis.get(found.source, found.source)}: {', '.join(said)}."
    kernels = "".join(tag("li", esc(_compiled(r))) for r in row.event.outcome.resources)
    compiled = tag("h3", "As compiled") + tag("ul", kernels, class_="legend") if kernels else ""
    return tag("div", tag("p", esc(found.sentence)) + tag("p", esc(note), class_="note") + compiled)


def _compiled(r: KernelResources) -> str:
    spills = f", spills {r.spill_bytes} B" if r.spill_bytes else ""
    shape = (
        f"{r.kernel} on {r.shape}: {r.registers} registers{spills}, {r.shared_bytes:,} B shared, {r.num_warps} warps"
    )
    return (
        f"{shape}, {r.num_stages} stages, grid {'×'.join(map(str, r.grid))}, occupancy {r.occupancy:.0%} ({r.limiter})"
    )


def _document(title: str, body: str) -> str:
    script = f"script-src 'sha256-{_digest(SCRIPT)}'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; {script}; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{esc(title)}</title><style>{CSS}</style></head>\n"
        f"<body>{body}\n<script>{SCRIPT}</script></body></html>\n"
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
