"""The tree of candidates, the comparison of two, and of two runs: view models without Textual."""

from dataclasses import replace

from fake_source import FakeRun, FakeSource, moment_of
from hypothesis import given
from hypothesis import strategies as st
from recorded_run import RUN, recorded, recorded_earlier

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.event import Decision
from kbtui.tui import fmt
from kbtui.tui.glyphs import ASCII, UNICODE
from kbtui.tui.moment import Moment
from kbtui.tui.text import Role, plain, width_of
from kbtui.tui.view.base import Base, pair_of
from kbtui.tui.view.board import board_view
from kbtui.tui.view.compare import common_ancestor, compare_lines, head_to_head, verdict_lines
from kbtui.tui.view.compare_runs import curves_lines, not_comparable, run_lines
from kbtui.tui.view.history import Order, history_keys
from kbtui.tui.view.kanban import card_lines, columns_of, leader_of
from kbtui.tui.view.lineage import bests, lineage_line, lineage_of, speed_role
from kbtui.tui.view.runs import run_line, runs_head
from kbtui.tui.view.standing import Standing, standing_of

G = UNICODE


def moment_of_run(recorder: object, run: str = RUN) -> Moment:
    moment = Moment(run)
    moment.fold(recorder.envelopes)  # type: ignore[attr-defined]
    return moment


# Lineage


def test_every_candidate_is_in_the_tree_once_and_below_the_one_it_was_made_from(moment: Moment) -> None:
    lineage = lineage_of(moment, "", False, G)
    order = [n.id for n in lineage.nodes]
    assert sorted(order) == sorted(moment.state.tried)
    depth = {n.id: n.depth for n in lineage.nodes}
    for node in lineage.nodes:
        parents = moment.state.tried[node.id].candidate.parents
        assert node.parent == (parents[0] if parents else None)
        if node.parent is not None:
            assert order.index(node.parent) < order.index(node.id)
            assert depth[node.id] == depth[node.parent] + 1


def test_a_filter_keeps_the_line_that_leads_to_what_it_finds(moment: Moment) -> None:
    shown = [n.id for n in lineage_of(moment, "c0040", False, G).nodes]
    assert shown == ["c0002", "c0009", "c0015", "c0040"]


def test_only_bests_leaves_those_that_were_a_best_and_what_led_there(moment: Moment) -> None:
    shown = {n.id for n in lineage_of(moment, "", True, G).nodes}
    assert {"c0001", "c0002", "c0009", "c0015", "c0040"} <= shown
    assert "c0037" not in shown
    assert set(history_keys(moment, "", Order.BEST, only_bests=True)) == set(bests(moment))


def test_speed_is_told_by_a_number_beside_its_colour(moment: Moment) -> None:
    lineage = lineage_of(moment, "", False, G)
    at = [n.id for n in lineage.nodes].index("c0015")
    row = lineage_line(moment, lineage, at, 100, G)
    assert "1.39×" in plain(row)
    assert any(role in (Role.SPEED_BEST, Role.SPEED_NEAR) for _, role in row)


@given(st.floats(0.01, 5.0), st.floats(0.01, 5.0), st.floats(0.01, 5.0))
def test_a_faster_kernel_never_has_a_slower_colour(a: float, b: float, best: float) -> None:
    order = [Role.SPEED_SLOW, Role.SPEED_FAIR, Role.SPEED_NEAR, Role.SPEED_BEST]
    assert order.index(speed_role(min(a, b), best)) <= order.index(speed_role(max(a, b), best))


def test_lineage_rows_fit_every_width_in_both_alphabets(moment: Moment) -> None:
    for g in (UNICODE, ASCII):
        lineage = lineage_of(moment, "", False, g)
        for width in (56, 76, 116, 196):
            rows = [lineage_line(moment, lineage, i, width, g) for i in range(len(lineage.nodes))]
            assert all(width_of(row) <= width for row in rows)
        assert g is UNICODE or all(n.stem.isascii() for n in lineage.nodes)


# Board


def test_every_card_is_in_the_column_of_its_rung(moment: Moment) -> None:
    view = board_view(moment, G)
    columns = columns_of(view)
    assert sum(len(c) for c in columns) == len(view.cards) == 40
    assert all(card.rung == i for i, cards in enumerate(columns) for card in cards)
    assert columns[2][0].standing is Standing.RUNNING


def test_a_card_shows_operator_state_and_score_within_its_cell(moment: Moment) -> None:
    cards = {c.id: c for c in board_view(moment, G).cards}
    for width in (14, 18, 30):
        for card in cards.values():
            assert all(width_of(row) == width for row in card_lines(card, width, False, G))
    top, below = card_lines(cards["c0015"], 24, False, G)
    assert plain(top).split() == ["★", "c0015", "champion"]
    assert "exp2 for exp" in plain(below)
    assert "1.39×" in plain(below)


def test_unverified_is_counted_apart_from_rejected(moment: Moment) -> None:
    view = board_view(moment, G)
    decided = [r for t in moment.state.tried.values() for r in t.results.values()]
    assert sum(c.unverified for c in view.columns) == sum(r.decision is Decision.SET_ASIDE for r in decided) == 1
    assert sum(c.rejected for c in view.columns) == sum(r.decision is Decision.REJECT for r in decided)
    assert standing_of(moment, moment.state.tried["c0018"]) is Standing.UNVERIFIED


def test_a_live_run_leads_to_what_runs_and_an_ended_one_to_its_champion(moment: Moment) -> None:
    from kbtui.domain.event import EndReason

    assert leader_of(moment) == "c0040"
    ended = moment_of(FakeSource(recorded(ended=EndReason.BUDGET)))
    assert leader_of(ended) == "c0015"
    assert board_view(ended, G).cards[0].id == "c0015"


def test_a_champion_that_was_beaten_is_not_said_to_be_pruned(moment: Moment) -> None:
    assert standing_of(moment, moment.state.tried["c0009"]) is Standing.WAS_BEST


# Two candidates


def test_two_that_were_timed_in_pairs_have_an_interval(moment: Moment) -> None:
    tried = moment.state.tried
    met = head_to_head(tried["c0015"], tried["c0040"])
    assert met is not None
    said = " ".join(plain(row) for row in verdict_lines(tried["c0015"], tried["c0040"], 100, G))
    assert "c0040 is 1.041× (1.021–1.061) as fast as c0015" in said
    turned = head_to_head(tried["c0040"], tried["c0015"])
    assert turned is not None
    assert turned[1] is not met[1]


def test_two_that_never_met_are_compared_through_the_first_kernel_and_it_says_so(moment: Moment) -> None:
    tried = moment.state.tried
    said = " ".join(plain(row) for row in verdict_lines(tried["c0005"], tried["c0037"], 100, G))
    assert "about" in said
    assert "has no interval" in said


def test_the_ratio_of_two_that_never_met_is_of_the_highest_rung_that_timed_both(moment: Moment) -> None:
    """A score of the screen is of one shape, one of the measure rung of all of them: beside each other they mislead."""
    tried = moment.state.tried
    scores = {n: {rung: r.score for rung, r in t.results.items() if r.score} for n, t in tried.items()}
    pairs = ((tried[a], tried[b]) for a in tried for b in tried if set(scores[a]) == {1} < set(scores[b]))
    low, high = next((a, b) for a, b in pairs if not head_to_head(a, b))
    said = " ".join(plain(row) for row in verdict_lines(low, high, 100, G))
    ratio = scores[high.candidate.id][1] / scores[low.candidate.id][1]
    assert f"about {fmt.ratio(ratio, G)} as fast" in said
    assert "on rung 1 " in said
    only_high = replace(high, results={rung: r for rung, r in high.results.items() if rung > 1})
    assert "no rung in common" in " ".join(plain(row) for row in verdict_lines(low, only_high, 100, G))


def test_each_shape_is_compared_the_same_way_round_as_the_verdict(moment: Moment) -> None:
    found = head_to_head(moment.state.tried["c0015"], moment.state.tried["c0040"])
    assert found is not None
    ratios = [f"{fmt.ratio(s.ratio, G)} paired" for s in found[0].shapes]
    for candidate, marked in (("c0015", "c0040"), ("c0040", "c0015")):
        rows = [plain(row) for row in compare_lines(moment, pair_of(moment, candidate, Base.MARKED, marked), 140, G)]
        assert [r for r in ratios if any(r in row for row in rows)] == ratios


def test_under_the_model_nothing_is_said_to_be_paired_or_sure() -> None:
    modelled = moment_of_run(recorded(DATA_SHEETS["a100"]), "softmax-8")
    tried = modelled.state.tried
    pairs = [(a, b) for a in tried for b in tried if a != b and head_to_head(tried[a], tried[b])]
    assert pairs
    for a, b in pairs:
        said = " ".join(plain(row) for row in compare_lines(modelled, pair_of(modelled, a, Base.MARKED, b), 140, G))
        assert "under the model; nothing was measured" in said
        assert "paired" not in said


def test_one_that_was_never_timed_is_not_compared(moment: Moment) -> None:
    tried = moment.state.tried
    said = " ".join(plain(row) for row in verdict_lines(tried["c0015"], tried["c0011"], 100, G))
    assert "c0011 has not been timed" in said


def test_what_differs_is_marked_and_every_row_fits(moment: Moment) -> None:
    pair = pair_of(moment, "c0040", Base.CHAMPION, None)
    for width in (56, 78, 116, 196):
        rows = compare_lines(moment, pair, width, G)
        assert all(width_of(row) <= width for row in rows), width
    said = [plain(row) for row in compare_lines(moment, pair, 116, G)]
    assert any(row.startswith("structure") and "≠" in row for row in said)
    assert any(row.startswith("spills") and "≠" not in row for row in said)


def test_the_nearest_common_ancestor_is_named_with_the_steps_to_it(moment: Moment) -> None:
    assert common_ancestor(moment.state, "c0016", "c0040") == ("c0009", 1, 2)
    assert common_ancestor(moment.state, "c0015", "c0040") == ("c0015", 0, 1)
    assert common_ancestor(moment.state, "c0004", "c0040") is None


# Two runs


def test_two_runs_on_one_chip_are_compared_without_an_interval(moment: Moment) -> None:
    earlier = moment_of_run(recorded_earlier(), "softmax-6")
    said = " ".join(plain(row) for row in run_lines(earlier, moment, 120, G))
    assert "the best of softmax-7 is about" in said
    assert "without an interval" in said


def test_a_measured_and_a_modelled_run_are_never_compared(moment: Moment) -> None:
    modelled = moment_of_run(recorded(DATA_SHEETS["a100"]), "softmax-8")
    assert "measured, the other modelled" in (not_comparable(moment, modelled) or "")
    said = [plain(row) for row in run_lines(moment, modelled, 120, G)]
    assert not any("as fast as" in row for row in said)
    shapes = [row for row in said if row.startswith("4096x16384")]
    assert shapes
    assert all("×" not in row for row in shapes)


def test_both_curves_fit_one_pane_on_the_same_axes(moment: Moment) -> None:
    earlier = moment_of_run(recorded_earlier(), "softmax-6")
    rows = curves_lines((earlier, moment), False, 90, 24, G)
    assert len(rows) <= 24
    assert all(width_of(row) <= 90 for row in rows)
    labels = [plain(row)[:6].strip() for row in rows]
    assert labels.count("1.00") == 2


def test_with_nothing_timed_the_curves_say_what_will_appear() -> None:
    empty = Moment("softmax-9")
    assert "appears here" in plain(curves_lines((empty, empty), False, 60, 12, G)[0])
    assert "no events yet" in (not_comparable(empty, empty) or "")


# The list of runs


def test_modelled_is_said_on_a_run_within_the_first_eighty_columns_and_stands_under_its_head() -> None:
    row = plain(run_line(FakeRun(clock="modelled"), None, G, marked=True))
    assert "MODELLED" in row[:76]
    assert row.index("MODELLED") == plain(runs_head(120)).index("clock")


def test_the_best_of_a_run_is_read_whole_in_the_narrowest_window() -> None:
    for width in (51, 73, 74, 140):
        row = plain(run_line(FakeRun(end_reason="budget"), None, G, width=width))
        end = plain(runs_head(width)).index("over first") + len("over first")
        assert end <= width
        assert row[:end].endswith("1.39× c0015")
