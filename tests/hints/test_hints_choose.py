"""From diagnosis to hints: what answers the bottleneck first, coarse to fine, what failed later."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hints import choose_hints, load_hints
from kbtui.domain.profile import Bottleneck, Diagnosis, Finding
from kbtui.domain.proposal import Phase, Space

HINTS = load_hints()


def diagnosed(*bottlenecks: Bottleneck) -> Diagnosis:
    findings = tuple(Finding(b, 0.7 / (i + 1), ()) for i, b in enumerate(bottlenecks))
    return Diagnosis("slow", findings, "4096x16384", 100.0, 50.0, "model")


def chosen(diagnosis=None, family="row_softmax", phase=Phase.COARSE, outcomes=(), limit=3) -> list[str]:
    return [h.id for h in choose_hints(HINTS, family, diagnosis, phase, outcomes, limit)]


@pytest.mark.parametrize(
    ("bottleneck", "family", "expected"),
    [
        (Bottleneck.EXTRA_PASSES, "row_softmax", "one_read_of_the_row"),
        (Bottleneck.TOO_FEW_PROGRAMS, "row_softmax", "split_the_row"),
        (Bottleneck.TOO_FEW_PROGRAMS, "mat_vec", "split_k"),
        (Bottleneck.NO_TENSOR_CORES, "attention", "online_attention"),
        (Bottleneck.NO_TENSOR_CORES, "conv", "convolution_as_a_product"),
        (Bottleneck.BARRIER, "mat_vec", "accumulate_in_lanes"),
        (Bottleneck.NARROW, "mat_vec", "one_row_wide_loads"),
        (Bottleneck.TAIL, "linear_relu_div", "shorter_last_wave"),
        (Bottleneck.INTEGER, "row_softmax", "place_from_the_grid"),
        (Bottleneck.LAUNCH, "conv", "one_launch_for_all"),
        (Bottleneck.UNCOALESCED, "channel_rms_norm", "one_pass_over_channels"),
    ],
)
def test_the_diagnosis_picks_the_hint(bottleneck, family, expected):
    assert chosen(diagnosed(bottleneck), family)[0] == expected


def test_without_a_diagnosis_the_coarse_phase_begins_with_algorithms():
    spaces = [h.space for h in choose_hints(HINTS, "row_softmax", None, Phase.COARSE, (), 4)]

    assert spaces == [Space.ALGORITHM] * 4


def test_hints_of_another_family_are_never_chosen():
    assert not set(chosen(family="mat_vec", limit=99)) & {"one_read_of_the_row", "one_pass_over_channels"}


def test_a_hint_that_failed_drops_and_one_that_helped_rises():
    diagnosis = diagnosed(Bottleneck.EXTRA_PASSES)
    first, second = chosen(diagnosis, limit=2)

    assert chosen(diagnosis, outcomes=[(first, False), (first, False)], limit=1) == [second]
    assert chosen(diagnosis, outcomes=[(second, True)], limit=1) == [second]


@given(
    st.lists(st.tuples(st.sampled_from([h.id for h in HINTS]), st.booleans()), max_size=12),
    st.lists(st.sampled_from(list(Bottleneck)), min_size=1, max_size=3, unique=True),
    st.integers(0, 40),
)
def test_any_history_gives_a_bounded_list_without_repeats_whatever_its_order(outcomes, bottlenecks, limit):
    diagnosis = diagnosed(*bottlenecks)
    once = chosen(diagnosis, outcomes=outcomes, limit=limit)

    assert once == chosen(diagnosis, outcomes=outcomes[::-1], limit=limit)
    assert len(once) == len(set(once)) <= limit
