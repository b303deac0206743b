"""Roofline, speed of light, stalls, gate report, samples: view models without Textual."""

import json
import math
import re
from dataclasses import replace

import pytest
from fake_source import FakeSource, moment_of
from hypothesis import given
from hypothesis import strategies as st
from recorded_run import HINTS, SPEC, recorded, samples_json

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.profile import Bottleneck, Evidence, Finding, Profile
from kbtui.tui.draw import Level, scatter, step_curve
from kbtui.tui.glyphs import ASCII, UNICODE
from kbtui.tui.moment import Moment
from kbtui.tui.text import plain, width_of
from kbtui.tui.view.bottleneck import bottleneck_lines, bottleneck_view
from kbtui.tui.view.documents import gate_lines, histogram, matches_in, profile_lines, samples_lines
from kbtui.tui.view.live import live_lines, live_view
from kbtui.tui.view.roofline import Point, Roofline, diagnosed, roofline_lines, roofline_of
from kbtui.tui.view.speed import speed_of_light, stall_lines

G = UNICODE


@pytest.fixture
def known(moment: Moment) -> Moment:
    """The moment with what the problem's folder declares."""
    moment.problem, moment.hints = SPEC, HINTS
    return moment


def roofline(moment: Moment, candidate: str = "c0015") -> Roofline | str:
    state = moment.state
    assert state.started is not None
    tried = state.tried[candidate]
    parent = tried.candidate.parents[0]
    return roofline_of(state.started.device, moment.problem, (candidate, tried), (parent, state.tried[parent]))


def test_the_kernel_stands_on_the_roofline_where_its_time_and_counted_bytes_put_it(known: Moment) -> None:
    view = roofline(known)
    assert isinstance(view, Roofline)
    flops = 5 * 4096 * 16384
    assert view.kernel.counted
    assert view.kernel.flops_per_byte == pytest.approx(flops / 0.540e9)
    assert view.kernel.tflops == pytest.approx(flops / 135.1 / 1e6)
    assert view.bound.tflops == pytest.approx(view.roof(view.bound.flops_per_byte), rel=1e-3)
    assert view.parent is not None
    assert view.parent.name == "c0009"


def test_no_roofline_is_drawn_from_formulas_that_have_changed(known: Moment) -> None:
    known.problem = replace(SPEC, bytes_formula="3 * n_rows * n_cols * itemsize")
    assert "formulas have changed" in str(roofline(known))
    known.problem = None
    assert "cannot be read here" in str(roofline(known))


def test_the_roofline_of_one_never_diagnosed_says_when_it_appears(known: Moment) -> None:
    assert "once the kernel has been diagnosed" in str(roofline(known, "c0037"))


@given(st.floats(1e-3, 1e3), st.floats(1e-4, 1e3), st.floats(1e-3, 1e3), st.integers(30, 150), st.integers(7, 30))
def test_a_roofline_fits_its_room_and_no_point_is_lost(
    intensity: float, tflops: float, bound: float, width: int, height: int
) -> None:
    roof = min(60.0, 4.8 * bound)
    view = Roofline("s", 4800.0, 60.0, 60.0, Point("b", bound, roof, False), Point("k", intensity, tflops, True), None)
    rows = roofline_lines(view, width, height, ASCII)
    assert all(width_of(row) <= width for row in rows)
    assert any("K" in plain(row) for row in rows[1:-3])


def test_a_diagnosis_from_counters_is_shown_before_a_later_one_that_was_reckoned(known: Moment) -> None:
    tried = known.state.tried["c0015"]
    counted = tried.results[3].outcome.diagnosis
    assert counted is not None
    reckoned = replace(counted, source="compiled", sentence="Reckoned.")
    tried.results[4] = replace(tried.results[4], outcome=replace(tried.results[4].outcome, diagnosis=reckoned))
    found = diagnosed(tried)
    assert found is not None
    assert found[0] is counted


def test_speed_of_light_comes_from_counters_and_else_from_the_diagnosis(known: Moment) -> None:
    profiled = known.state.tried["c0015"].results[3].outcome
    shares = dict(speed_of_light(profiled.diagnosis, profiled.profile))
    assert shares["compute"] == 18.0
    assert shares["L2"] == 44.0
    reckoned = dict(speed_of_light(profiled.diagnosis, Profile("s", not_profiled="no permission")))
    assert set(reckoned) == {"memory", "compute"}


def test_stalls_are_bars_heaviest_first_without_what_is_no_stall() -> None:
    rows = [
        plain(row) for row in stall_lines((("barrier", 9.0), ("long_scoreboard", 61.0), ("selected", 30.0)), 100, 4, G)
    ]
    assert [row.split("  ")[0].strip() for row in rows] == ["long scoreboard", "barrier"]
    assert "waits for device memory" in rows[0]
    assert rows[0].count("█") > rows[1].count("█")


@pytest.mark.parametrize("width", [56, 64, 76, 96, 116, 196])
def test_the_bottleneck_fits_and_shows_hints_tried_and_not_yet_tried(known: Moment, width: int) -> None:
    rows = bottleneck_lines(bottleneck_view(known, "c0015", G), width, G)
    assert all(width_of(row) <= width for row in rows)
    said = "\n".join(plain(row) for row in rows)
    assert "c0040 running" in said
    assert "not tried yet" in said
    assert "roofline on 4096x16384" in said


def test_the_gate_report_names_each_stage_and_shows_the_line_a_refusal_points_at(known: Moment) -> None:
    tried = known.state.tried["c0034"]
    source = "\n".join(f"line {n}" for n in range(1, 40))
    said = "\n".join(plain(row) for row in gate_lines(known, tried, source, 80, G))
    assert "Stage 0" in said
    assert "✗ rejected: wrong values" in said
    assert "▸  12  line 12" in said


def test_unverified_is_said_not_to_be_the_candidates_failure(known: Moment) -> None:
    said = "\n".join(plain(row) for row in gate_lines(known, known.state.tried["c0018"], None, 80, G))
    assert "? unverified: harness failed" in said
    assert "not the candidate's failure" in said


def test_samples_are_shown_process_by_process(known: Moment) -> None:
    matches = matches_in(samples_json())
    assert len(matches) == 6
    rows = samples_lines(known.state.tried["c0015"], matches, 90, G)
    assert all(width_of(row) <= 90 for row in rows)
    said = "\n".join(plain(row) for row in rows)
    assert "process 3: 1.0" in said
    assert "32 samples each" in said


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"processes": 3}', '{"processes": [{"a": {"s": [{"candidate": 1}]}}]}']
)
def test_a_stored_text_that_is_no_log_of_samples_has_none(text: str) -> None:
    assert matches_in(text) == ()


def test_a_pair_of_single_times_is_read_too() -> None:
    pairs = [{"candidate": 1.0, "other": 2.0}]
    (match,) = matches_in(json.dumps({"rung": 2, "processes": [{"c0001": {"s": pairs}}]}))
    assert (match.candidate_us, match.other_us) == ((1.0,), (2.0,))


def test_without_stored_samples_the_intervals_are_shown_and_it_says_why() -> None:
    moment = moment_of(FakeSource(recorded(DATA_SHEETS["a100"])))
    said = "\n".join(plain(row) for row in samples_lines(moment.state.tried["c0015"], (), 100, G))
    assert "stored only where a GPU measured them" in said
    assert "modelled" in said


def test_each_page_says_what_will_appear_on_a_candidate_nothing_is_known_of(known: Moment) -> None:
    fresh = known.state.tried["c0039"]
    fresh.results.clear()
    for rows in (
        gate_lines(known, fresh, None, 80, G),
        samples_lines(fresh, (), 80, G),
        profile_lines(known, fresh, SPEC, 80, G),
    ):
        assert "appears here" in " ".join(plain(row) for row in rows)


@given(st.lists(st.floats(1.0, 100.0), min_size=1, max_size=200), st.integers(8, 80))
def test_a_histogram_has_a_mark_where_there_is_a_sample_and_none_elsewhere(times: list[float], width: int) -> None:
    low, high = min(times), max(times)
    drawn = histogram(times, low, high, width, G)
    assert len(drawn) == width
    filled = {min(int((t - low) / ((high - low) or 1.0) * width), width - 1) for t in times}
    assert {i for i, c in enumerate(drawn) if c != " "} == filled


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=300), st.integers(8, 80), st.integers(3, 9))
def test_a_scatter_fits_and_draws_the_level(values: list[float], width: int, height: int) -> None:
    rows = scatter(values, 1.0, width, height, G)
    assert len(rows) == height
    assert all(width_of(row) == width + 6 for row in rows)
    assert any("1.000" in plain(row) for row in rows)


def test_eager_and_compile_are_lines_with_their_names(known: Moment) -> None:
    curve = live_view(known).curve
    assert curve is not None
    assert [level.name for level in curve.levels] == ["eager", "compile"]
    assert curve.levels[1].value == pytest.approx(math.prod((177 / 157, 10.2 / 11.9, 1051 / 779)) ** (1 / 3))
    said = "\n".join(plain(row) for row in live_lines(live_view(known), 80, 30, G))
    assert "eager" in said
    assert "compile" in said
    assert "each pair, above 1 the candidate is faster" in said


def test_levels_on_one_row_share_it_with_both_names() -> None:
    rows = step_curve([(0.0, 1.0), (5.0, 9.0)], (Level(1.0, "eager"), Level(1.01, "compile")), 10.0, 60, 6, G)
    assert any("eager, compile" in plain(row) for row in rows)


@pytest.mark.parametrize("width", range(40, 100, 3))
def test_no_number_of_the_bottleneck_is_cut(known: Moment, width: int) -> None:
    """Words may end in an ellipsis, figures may not: 111 is not 111.8."""
    rows = [plain(row) for row in bottleneck_lines(bottleneck_view(known, "c0015", G), width, G)]
    assert [row for row in rows if re.search(r"[\d.]…", row)] == []
    said = " ".join(" ".join(rows).split())
    assert "135.1 µs" in said
    assert "bound 111.8 µs" in said


def test_each_finding_has_its_weight_and_its_numbers_as_a_person_writes_them(known: Moment) -> None:
    view = bottleneck_view(known, "c0015", G)
    assert view is not None
    assert view.diagnosis is not None
    spilled = (Evidence("spilled", 15516.0, "bytes a thread"), Evidence("taking", 79.11, "% of the traffic"))
    findings = (Finding(Bottleneck.SPILLS, 0.66, spilled), Finding(Bottleneck.TAIL, 0.04, ()))
    changed = replace(view, diagnosis=replace(view.diagnosis, findings=findings))
    rows = [plain(r) for r in bottleneck_lines(changed, 86, G)]
    assert "why         spills 0.66: spilled 15,516 bytes a thread, taking 79 % of the traffic" in rows
    assert "            tail 0.04" in rows
