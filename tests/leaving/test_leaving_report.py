"""The report: what it says, that nothing of others is markup in it, and what a real browser makes of it."""

import html
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.commands.leave import report
from kbtui.leaving.folder import Left
from kbtui.leaving.page.page import Shown, report_page
from kbtui.leaving.page.svg import Axis, nice_ticks
from kbtui.leaving.page.text import esc
from kbtui.leaving.rows import rung_rows
from store.workspace import Workspace

_VOID = {"meta", "col", "wbr", "br"}


class Structure(HTMLParser):
    """Elements opened and not closed, and how often each was opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.attributes: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(h200: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "softmax.html"
    assert report(h200.root, "softmax-1", path, None) == 0
    return path


def words(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)))


def test_it_says_the_result_with_interval_clock_device_and_proof(page: Path):
    said = words(page.read_text())
    for fact in ("1.53× (1.52–1.54) over PyTorch eager", "measured on NVIDIA H200", "confirmed in 3 fresh processes",
                 "c0032", "36 checks", "1.1e-07", "1.914× (1.905–1.923) over the first kernel"):  # fmt: skip
        assert fact in said, fact


def test_its_elements_are_closed_and_it_refers_to_nothing_outside(page: Path):
    structure = Structure(page.read_text())
    assert structure.open == []
    links = [value for name, value in structure.attributes if name in ("href", "src", "srcset", "action", "data")]
    assert all(value.startswith("#") for value in links)
    assert not {"link", "img", "iframe", "object", "embed"} & structure.count.keys()
    assert not re.search(r"@import|url\(", page.read_text())


def test_every_link_leads_to_a_place_on_the_page(page: Path):
    structure = Structure(page.read_text())
    ids = [value for name, value in structure.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for name, value in structure.attributes if name == "href"} <= set(ids)


def test_every_candidate_has_a_row_and_a_place_in_the_lineage(page: Path, h200_left: Left):
    text = page.read_text()
    for candidate in h200_left.state.tried:
        assert f'<tr id="{candidate}"' in text
        assert f'href="#{candidate}"' in text


def test_the_funnel_counts_what_the_ladder_decided(page: Path):
    row = re.search(r">2 measure</th>.*?</tr>", page.read_text(), re.DOTALL)
    assert row is not None
    assert [int(n) for n in re.findall(r'class="num">(\d+)</td>', row[0])] == [36, 6, 30]


def test_what_bounds_it_is_told_in_the_words_of_every_screen(page: Path, h200_left: Left):
    rows = rung_rows(h200_left.envelopes, h200_left.state)
    timed = [r for r in rows if r.tried.candidate.id == h200_left.best.candidate.id and r.measurement is not None]
    diagnosis = max(timed, key=lambda r: r.event.rung).event.outcome.diagnosis
    assert diagnosis is not None
    evidence = [e.told for f in diagnosis.findings for e in f.evidence]
    assert evidence
    assert ", ".join(evidence) in words(page.read_text())


def test_words_of_others_are_never_markup(h200_left: Left, shown_of: Callable[[Left], Shown]):
    hostile = "</td></script><script>document.title='owned'</script><img src=x onerror=alert(1)>\" onload='x'\x1b\u202e"
    left = replace(h200_left, best_source=hostile, first_source=f"a {hostile}", exporter={hostile: hostile})
    state = left.state
    renamed = {k: replace(t, candidate=replace(t.candidate, summary=hostile)) for k, t in state.tried.items()}
    shown = replace(shown_of(left), state=replace(state, tried=renamed, user_hints=[hostile]), no_problem=hostile)
    text = report_page(shown)
    structure = Structure(text)
    assert structure.open == []
    assert structure.count["script"] == 1
    assert "img" not in structure.count
    assert not [name for name, _ in structure.attributes if name.startswith("on")]
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert hostile.replace("\x1b", "\ufffd").replace("\u202e", "\ufffd") in words(text)


@given(st.text())
def test_escaped_text_holds_no_markup_and_reads_the_same(text: str):
    out = esc(text)
    assert not set(out) & set("<>\"'")
    kept = "".join(c for c in text if c.isprintable() and not 0x202A <= ord(c) <= 0x2069)
    assert "".join(c for c in html.unescape(out) if c in kept) == "".join(c for c in text if c in kept)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_lie_inside_and_are_few(low: float, span: float):
    ticks = nice_ticks(low, low + span)
    slack = 1e-6 * (abs(low) + span)
    assert 1 <= len(ticks) <= 12
    assert all(low - slack <= t <= low + span + slack for t in ticks)


def test_a_logarithmic_axis_puts_powers_of_ten_at_equal_distances():
    axis = Axis(1.0, 1000.0, 0.0, 300.0, log=True)
    assert [round(axis.at(v), 6) for v in (1, 10, 100, 1000)] == [0, 100, 200, 300]


def test_without_the_problem_it_says_why_there_is_no_roofline(h200_left: Left, shown_of: Callable[[Left], Shown]):
    page = report_page(replace(shown_of(h200_left), spec=None, no_problem="the problem at /p has changed"))
    assert "the problem at /p has changed" in words(page)
    assert "operations a byte" not in page


def test_modelled_times_are_labelled_and_never_set_beside_pytorch(model_run: Workspace, tmp_path: Path):
    report(model_run.root, None, tmp_path, None)
    said = words((tmp_path / "softmax-1.html").read_text())
    assert "modelled on A100-SXM4-80GB" in said
    assert "PyTorch" not in said
    assert "measured" not in said.replace("measure", "", 0).split("Environment")[0]


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    command += ["--disable-background-networking", "--enable-logging=stderr", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, timeout=300, check=True)


@pytest.mark.program("chromium")
def test_a_browser_draws_it_and_its_script_runs_without_complaint(page: Path, tmp_path: Path):
    dumped = browse(page, tmp_path / "profile", "--dump-dom", "--virtual-time-budget=3000")
    dom = dumped.stdout.decode()
    assert '<html lang="en" class="js">' in dom
    assert 'data-rows="49"' in dom
    assert "1.53×" in dom
    assert "CONSOLE" not in dumped.stderr.decode(errors="replace")


@pytest.mark.program("chromium")
def test_a_click_on_a_heading_sorts_by_number_and_another_turns_it_round(page: Path, tmp_path: Path):
    clicks = "const h = document.querySelectorAll('#candidates th')[4]; h.click(); h.click();"
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    (tmp_path / "clicked.html").write_text(text.replace("</body>", f"<script>{clicks}</script></body>"))
    dom = browse(tmp_path / "clicked.html", tmp_path / "profile", "--dump-dom").stdout.decode()
    body = dom[dom.index('id="candidates"') :]
    rungs = [int(n) for n in re.findall(r'<td class="num">(\d*)</td><td class="state', body) if n]
    assert rungs == sorted(rungs)
    assert len(set(rungs)) > 2
    assert 'aria-sort="ascending"' in body


@pytest.mark.program("chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_of_it_has_the_schemes_paper(page: Path, tmp_path: Path, scheme: str):
    picture = tmp_path / "page.png"
    prefer = f"--blink-settings=preferredColorScheme={1 if scheme == 'light' else 0}"
    done = browse(page, tmp_path / "profile", f"--screenshot={picture}", "--window-size=1250,1600", prefer)
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert picture.stat().st_size > 50_000
    assert top_left(picture) == ((0xFB, 0xFA, 0xF7) if scheme == "light" else (0x14, 0x17, 0x1C))
    assert "CONSOLE" not in done.stderr.decode(errors="replace")


def top_left(picture: Path) -> tuple[int, ...]:
    """The first pixel of a PNG whose first row, having nothing above it, holds it as it is."""
    import zlib

    content = picture.read_bytes()
    at, packed = 8, b""
    while at < len(content):
        size, kind = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8]
        packed += content[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    return tuple(zlib.decompress(packed)[1:4])
