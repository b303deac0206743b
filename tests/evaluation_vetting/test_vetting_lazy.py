import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtui.evaluation.vetting.lazy import _pieces, _strides, lazy_answers
from kbtui.evaluation.vetting.nulls import null_answers
from kbtui.evaluation.vetting.reductions import find_reductions, in_double

F = torch.nn.functional


def answers(reference, *inputs) -> dict[str, torch.Tensor]:
    reductions = find_reductions(reference, inputs)
    made = lazy_answers(in_double(reference), inputs, reductions, ("x", "w"))
    return {lazy.name: lazy.outputs[0] for lazy in made}


def test_a_quarter_of_a_sum_is_four_times_the_quarters():
    x = torch.randn(3, 8, dtype=torch.float64)
    lazy = answers(lambda x: x.sum(1), x)
    torch.testing.assert_close(lazy["a quarter of x[1]"], 4 * x[:, :2].sum(1))
    torch.testing.assert_close(lazy["every fourth of x[1]"], 4 * x[:, ::4].sum(1))


def test_a_quarter_of_a_maximum_is_the_quarters_maximum():
    x = torch.randn(3, 8, dtype=torch.float64)
    torch.testing.assert_close(answers(lambda x: x.amax(1), x)["a quarter of x[1]"], x[:, :2].amax(1))


def test_a_product_reads_the_same_quarter_of_both():
    x, w = torch.randn(3, 8, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
    torch.testing.assert_close(answers(torch.mv, x, w)["a quarter of x[1] and w[0]"], 4 * x[:, :2] @ w[:2])


def test_each_part_of_a_softmax_is_normalised_by_its_own_quarter():
    x = torch.randn(3, 8, dtype=torch.float64)
    lazy = answers(lambda x: torch.softmax(x, 1), x)["a quarter of x[1]"]
    parts = [torch.softmax(x[:, i : i + 2], 1) / 4 for i in range(0, 8, 2)]
    torch.testing.assert_close(lazy, torch.cat(parts, 1))


def test_one_tap_of_three_is_scaled_by_three():
    x, w = torch.randn(1, 2, 9, dtype=torch.float64), torch.randn(1, 2, 3, dtype=torch.float64)
    lazy = answers(lambda x, w: F.conv1d(x, w), x, w)["a third of w[2]"]
    torch.testing.assert_close(lazy, 3 * F.conv1d(x[..., :7], w[..., :1]))


@given(st.integers(2, 200), st.integers(2, 4))
def test_parts_cover_an_axis_once_and_read_only_themselves(size, n_parts):
    for parts in (_pieces(size, min(n_parts, size)), _strides(size, min(n_parts, size))):
        assert sorted(int(i) for own, _ in parts for i in own) == list(range(size))
        for own, source in parts:
            assert set(source.tolist()) == set(own.tolist())
            assert torch.equal(source[own], own)


def nulls(x: torch.Tensor, reference=torch.relu) -> dict[str, torch.Tensor | None]:
    made = null_answers(reference, (x,), [reference(x.double())], {}, (), ("x",))
    return {null.name: null.outputs[0] for null in made}


def test_null_answers_are_left_out_where_there_is_nothing_to_leave_out():
    one = nulls(torch.ones(1, 1))
    assert one["mean"] is one["first row"] is one["last column missing"] is one["row means"] is None
    assert float(one["zeros"]) == 0.0


@settings(max_examples=50)
@given(st.floats(-(2.0**100), 2.0**100, width=32).filter(lambda v: abs(v) > 1e-30))
def test_rounded_inputs_are_within_half_a_unit_of_ten_bits(value):
    rounded = nulls(torch.tensor([value]), reference=lambda x: x * 1.0)["rounded inputs"]
    assert abs(float(rounded) - value) <= abs(value) * 2**-11
    assert float(torch.frexp(rounded)[0] * 2**11) % 1 == 0
