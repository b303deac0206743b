"""The panes' view models, without Textual."""

import json
from dataclasses import replace

import pytest
from fake_source import FakeCommand, FakeSource, moment_of
from recorded_run import h200, recorded

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.event import Budget, CommandAccepted, CommandKind, EndReason
from kbtui.domain.rung import MEASURE
from kbtui.tui.glyphs import ASCII, UNICODE
from kbtui.tui.moment import Moment
from kbtui.tui.text import Role, plain, width_of
from kbtui.tui.view.base import Base, pair_of
from kbtui.tui.view.board import board_view, card_line, column_lines, why_lines
from kbtui.tui.view.bottleneck import bottleneck_lines, bottleneck_title, bottleneck_view
from kbtui.tui.view.detail import detail_lines
from kbtui.tui.view.header import alive_of, header_line, header_view, short_device
from kbtui.tui.view.history import Order, history_keys, history_line
from kbtui.tui.view.live import live_lines, live_title, live_view, ratio_interval
from kbtui.tui.view.log import log_line
from kbtui.tui.view.standing import Standing, best_of, standing_of
from kbtui.tui.view.steer import budget_argument, parse_budget, why_not

G = UNICODE


# Header


def test_header_names_run_device_clock_budget_and_best_with_its_interval(moment: Moment) -> None:
    said = plain(header_line(header_view(moment, G), 160, G))
    for part in (
        "softmax-7",
        "H200 · measured",
        "● searching",
        "of 30:00",
        "1.310× (1.306–1.314) over PyTorch",
        "c0015",
    ):
        assert part in said


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_header_never_exceeds_its_width_and_keeps_alive_and_best(moment: Moment, width: int) -> None:
    parts = header_line(header_view(moment, G), width, G)
    assert width_of(parts) <= width
    assert "searching" in plain(parts)
    assert "c0015" in plain(parts)


def test_lost_engine_says_since_when_and_what_to_press(source: FakeSource) -> None:
    source.lose_engine(41)
    alive = alive_of(moment_of(source), G)
    assert alive.words == "engine lost 41 s ago, R to resume"
    assert alive.lost
    assert alive.role is Role.ALARM


def test_an_engine_that_holds_the_lock_but_does_not_beat_is_silent_not_lost(source: FakeSource) -> None:
    assert source.engine_status is not None
    source.engine_status = replace(source.engine_status, beat_age_s=60.0)
    alive = alive_of(moment_of(source), G)
    assert alive.words == "engine silent for 60 s"
    assert not alive.lost


def test_modelled_device_is_labelled_loudly_in_header_and_live_pane() -> None:
    moment = moment_of(FakeSource(recorded(DATA_SHEETS["a100"]), n_samples=0))
    assert (" MODELLED ", Role.LOUD) in header_line(header_view(moment, G), 120, G)
    assert live_lines(live_view(moment), 56, 20, G)[0][0] == (" MODELLED ", Role.LOUD)


@pytest.mark.parametrize("width", [60, 80, 120, 150])
def test_a_replay_is_labelled_so_in_every_width_and_its_chip_named_in_brief(width: int) -> None:
    played = replace(h200(), name="replay of NVIDIA H200, pool 06ccb65f")
    parts = header_line(header_view(moment_of(FakeSource(recorded(played))), G), width, G)
    assert (" REPLAY ", Role.LOUD) in parts
    assert width_of(parts) <= width
    assert "pool" not in plain(parts)
    assert width < 100 or " H200" in plain(parts)
    assert short_device(played.name) == "replay of H200"


def test_modelled_best_is_over_the_first_kernel_never_over_pytorch() -> None:
    best = best_of(moment_of(FakeSource(recorded(DATA_SHEETS["a100"]))).state)
    assert best is not None
    assert best.over == "first kernel"
    assert best.low == best.high


def test_ended_run_says_why_it_ended() -> None:
    assert alive_of(moment_of(FakeSource(recorded(ended=EndReason.BUDGET))), G).words == "ended: budget"


def test_what_waited_when_the_run_ended_is_unfinished_and_comes_last() -> None:
    ended = moment_of(FakeSource(recorded(ended=EndReason.BUDGET)))
    view = board_view(ended, G)
    standings = [card.standing for card in view.cards]
    unfinished = standings.count(Standing.UNFINISHED)
    assert unfinished == sum(t.waiting_at is not None for t in ended.state.tried.values()) > 0
    assert standings[-unfinished:] == [Standing.UNFINISHED] * unfinished
    assert Standing.WAITING not in standings
    assert not any("waiting" in "".join(part[0] for part in row) for row in column_lines(view.columns, 120, 40, G))


# Board


def test_board_counts_agree_with_the_events(moment: Moment) -> None:
    columns = board_view(moment, G).columns
    assert [c.name for c in columns] == ["compile", "screen", "measure", "profile", "confirm"]
    assert columns[2].running == 1
    assert sum(c.waiting for c in columns) == 2
    assert columns[0].rejected == 2
    assert columns[4].champions == 4
    assert abs(sum(c.share for c in columns) - 1) < 1e-9
    decided = sum(len(t.results) for t in moment.state.tried.values())
    assert sum(c.seen for c in columns) == decided


def test_board_puts_the_running_candidate_first_then_waiting_from_the_top_rung_down(moment: Moment) -> None:
    cards = board_view(moment, G).cards
    assert [c.standing for c in cards[:4]] == [Standing.RUNNING, Standing.WAITING, Standing.WAITING, Standing.PRUNED]
    assert [c.id for c in cards[:3]] == ["c0040", "c0038", "c0039"]


def test_filter_needs_every_word_somewhere_on_the_card(moment: Moment) -> None:
    cards = board_view(moment, G, "wrong r1").cards
    assert {c.standing for c in cards} == {Standing.REJECTED}
    assert board_view(moment, G, "wrong champion").cards == ()


@pytest.mark.parametrize("width", [40, 54, 66, 96])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_every_card_and_column_fits_its_width(moment: Moment, width: int, glyphs: object) -> None:
    g = ASCII if glyphs is ASCII else UNICODE
    view = board_view(moment, g)
    for card in view.cards:
        assert width_of(card_line(card, width, g)) <= width
    for row in column_lines(view.columns, max(width, 54), 18, g):
        assert width_of(row) <= max(width, 54)


def test_the_reason_of_a_pruned_card_is_in_numbers(moment: Moment) -> None:
    said = " ".join(plain(row) for row in why_lines(moment, "c0037", 120, G))
    assert "pruned at 1 screen: -10.5 %" in said
    assert "over c0015" in said


def test_state_is_told_by_a_sign_and_not_by_colour_alone(moment: Moment) -> None:
    cards = {c.id: c for c in board_view(moment, G).cards}
    signs = {plain(card_line(cards[i], 60, G))[0] for i in ("c0040", "c0038", "c0037", "c0034", "c0015", "c0018")}
    assert len(signs) == 6


def test_ascii_draws_nothing_else(moment: Moment) -> None:
    view = board_view(moment, ASCII)
    lines = [card_line(c, 80, ASCII) for c in view.cards] + column_lines(view.columns, 80, 18, ASCII)
    lines += live_lines(live_view(moment), 80, 20, ASCII)
    lines += bottleneck_lines(bottleneck_view(moment, "c0015", ASCII), 80, ASCII)
    lines.append(header_line(header_view(moment, ASCII), 120, ASCII))
    assert all(plain(row).isascii() for row in lines)


# Live


def test_live_race_shows_both_medians_and_an_interval_clear_of_one(moment: Moment) -> None:
    view = live_view(moment)
    assert view.race is not None
    assert view.race.low > 1
    assert view.race.verdict == "faster so far"
    assert live_title(view) == "Live: c0040 against c0015 (champion), 4096x16384"
    said = "\n".join(plain(row) for row in live_lines(view, 66, 17, G))
    assert "pair 14 of ≤ 20" in said
    assert "over PyTorch eager" in said


def test_live_curve_ignores_what_only_the_screen_has_seen(moment: Moment) -> None:
    curve = live_view(moment).curve
    assert curve is not None
    assert moment.state.incumbents[1] == "c0040"
    assert curve.wall[-1][1] == pytest.approx(177.0 / 135.1, rel=1e-6)
    values = [y for _, y in curve.wall]
    assert values == sorted(values)


def test_with_no_samples_the_last_result_is_shown() -> None:
    view = live_view(moment_of(FakeSource(n_samples=0)))
    assert view.race is None
    assert view.settled is not None
    assert view.settled.candidate == "c0040"


def test_before_anything_is_timed_the_pane_says_what_will_appear(source: FakeSource) -> None:
    source.recorder.envelopes = source.recorder.envelopes[:2]
    source.live = []
    said = " ".join(plain(row) for row in live_lines(live_view(moment_of(source)), 60, 20, G))
    assert "appear here" in said


def test_ratio_interval_of_equal_pairs_is_that_ratio() -> None:
    assert ratio_interval([1.25] * 12) == (1.25, 1.25, 1.25)


# Bottleneck


def test_bottleneck_of_an_unprofiled_candidate_is_its_parents_and_says_so(moment: Moment) -> None:
    view = bottleneck_view(moment, "c0040", G)
    assert bottleneck_title(view) == "Bottleneck of c0015, parent of c0040"
    said = "\n".join(plain(row) for row in bottleneck_lines(view, 70, G))
    assert "Memory bound: 83%" in said
    assert "limited by registers" in said
    assert any(row.startswith("long scoreboard") and "61 %" in row for row in said.splitlines())
    assert "several rows a program" in said
    assert "▶ c0040 running" in said


def test_not_profiled_is_a_state_with_its_reason() -> None:
    moment = moment_of(FakeSource(recorded(DATA_SHEETS["a100"])))
    said = "\n".join(plain(row) for row in bottleneck_lines(bottleneck_view(moment, "c0015", G), 70, G))
    assert "not profiled: a model has no counters" in said


# History, log, detail


def test_history_fastest_first_puts_failures_last(moment: Moment) -> None:
    keys = history_keys(moment, "", Order.BEST)
    assert keys[0] == "c0015"
    last = [standing_of(moment, moment.state.tried[k]) for k in keys[-7:]]
    assert set(last) <= {Standing.REJECTED, Standing.UNVERIFIED}
    assert len(keys) == 40


def test_a_score_of_the_screening_shape_alone_comes_after_those_of_all_shapes(moment: Moment) -> None:
    keys = history_keys(moment, "", Order.BEST)
    timed = [moment.state.tried[k] for k in keys if moment.state.tried[k].score is not None]
    sound = [t for t in timed if standing_of(moment, t) not in (Standing.REJECTED, Standing.UNVERIFIED)]
    measured = [max(r for r, result in t.results.items() if result.score is not None) >= MEASURE for t in sound]
    assert True in measured
    assert False in measured
    assert measured == sorted(measured, reverse=True)


@pytest.mark.parametrize("width", [76, 116, 136, 196])
def test_history_rows_fit_every_width(moment: Moment, width: int) -> None:
    assert all(width_of(history_line(moment, k, width, G)) <= width for k in moment.state.tried)


def test_log_line_of_a_champion_has_its_sign(moment: Moment) -> None:
    crowned = [plain(log_line(moment, e, G)) for e in moment.journal if "★" in plain(log_line(moment, e, G))]
    assert len(crowned) == 4
    assert "c0015" in crowned[-1]


def test_detail_tells_gate_times_and_origin(moment: Moment) -> None:
    said = "\n".join(plain(row) for row in detail_lines(moment, "c0015", 100, G))
    for part in (
        "rewrites / exp2_for_exp",
        "verified (ok), stage 4, proof gpu",
        "4096x65536",
        "against eager",
        "children",
    ):
        assert part in said


# Diff base


def test_diff_base_falls_back_with_a_reason(moment: Moment) -> None:
    assert pair_of(moment, "c0040", Base.PARENT, None).left == "c0015"
    assert pair_of(moment, "c0040", Base.FIRST, None).left == "c0001"
    assert "nothing is marked" in pair_of(moment, "c0040", Base.MARKED, None).missing
    assert "nothing to compare" in pair_of(moment, "c0015", Base.CHAMPION, None).missing


# Steering


@pytest.mark.parametrize(
    ("kind", "candidate", "why"),
    [
        (CommandKind.PRUNE, "c0037", "pruned already"),
        (CommandKind.PROMOTE, "c0034", "rejected by the gate"),
        (CommandKind.PROMOTE, "c0038", "waiting"),
        (CommandKind.PROMOTE, "c0015", "no higher rung"),
        (CommandKind.PIN, "c0037", "waits for nothing"),
        (CommandKind.PIN, None, "no candidate under the cursor"),
    ],
)
def test_a_key_that_can_do_nothing_says_why(moment: Moment, kind: CommandKind, candidate: str | None, why: str) -> None:
    said = why_not(moment, kind, candidate)
    assert said is not None
    assert why in said


@pytest.mark.parametrize(
    ("kind", "candidate"),
    [(CommandKind.PRUNE, "c0038"), (CommandKind.PROMOTE, "c0037"), (CommandKind.PAUSE, None), (CommandKind.HINT, None)],
)
def test_what_can_be_done_is_not_refused(moment: Moment, kind: CommandKind, candidate: str | None) -> None:
    assert why_not(moment, kind, candidate) is None


def test_pause_needs_an_engine_and_a_run_that_goes_on(source: FakeSource) -> None:
    source.lose_engine()
    assert "R resumes" in (why_not(moment_of(source), CommandKind.PAUSE, None) or "")
    ended = moment_of(FakeSource(recorded(ended=EndReason.BUDGET)))
    assert "has ended (budget)" in (why_not(ended, CommandKind.STOP, None) or "")


def test_a_command_is_pending_until_the_ledger_has_it(source: FakeSource) -> None:
    source.asked.append(FakeCommand(1, CommandKind.PIN, "c0038"))
    moment = moment_of(source)
    assert [c.argument for c in moment.pending] == ["c0038"]
    assert "asked already" in (why_not(moment, CommandKind.PIN, "c0038") or "")
    assert {c.id: c.asked for c in board_view(moment, G).cards}["c0038"] == "pin"
    source.tell(CommandAccepted(1, CommandKind.PIN, "c0038"))
    assert moment_of(source).pending == ()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("30m", Budget(wall_s=1800)),
        ("+10m", Budget(wall_s=1200)),
        ("2h", Budget(wall_s=7200)),
        ("gpu 5m", Budget(wall_s=600, gpu_s=300)),
        ("200 candidates", Budget(wall_s=600, candidates=200)),
        ("none", Budget()),
    ],
)
def test_budget_as_a_person_types_it(typed: str, expected: Budget) -> None:
    assert parse_budget(typed, Budget(wall_s=600)) == expected


def test_budget_that_is_none_names_the_forms() -> None:
    with pytest.raises(ValueError, match=r"30m, \+10m"):
        parse_budget("a lot", Budget())


def test_budget_argument_is_the_commands_json() -> None:
    told = json.loads(budget_argument(Budget(60.0)))
    assert told.pop("wall_s") == 60.0
    assert not any(told.values())
