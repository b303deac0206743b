import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtui.evaluation.vetting.reductions import Kind, find_reductions

F = torch.nn.functional


def drawn(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(len(sizes)), dtype=torch.float64)


def found(reference, *inputs) -> set[tuple[Kind, tuple[tuple[int, int], ...]]]:
    return {(r.kind, r.axes) for r in find_reductions(reference, inputs)}


SYMMETRIC = {
    "softmax": (lambda x: torch.softmax(x, -1), (drawn(3, 8),), {((0, 1),)}),
    "softmax over rows": (lambda x: torch.softmax(x, 0), (drawn(8, 3),), {((0, 0),)}),
    "matrix and vector": (torch.mv, (drawn(5, 8), drawn(8)), {((0, 1), (1, 0))}),
    "square matrices": (torch.matmul, (drawn(6, 6), drawn(6, 6)), {((0, 1), (1, 0))}),
    "maximum": (lambda x: x.amax(1), (drawn(3, 8),), {((0, 1),)}),
    "mean of all": (lambda x: x.mean(), (drawn(4, 5),), {((0, 0),), ((0, 1),)}),
    "linear, ReLU": (lambda x, w, b: torch.relu(F.linear(x, w, b)), (drawn(3, 8), drawn(5, 8), drawn(5)),
                     {((0, 1), (1, 1))}),
    "attention": (F.scaled_dot_product_attention, (drawn(1, 2, 7, 5), drawn(1, 2, 9, 5), drawn(1, 2, 9, 6)),
                  {((0, 3), (1, 3)), ((1, 2), (2, 2))}),
    "two layers": (lambda x, v, w: torch.tanh(x @ v) @ w, (drawn(3, 5), drawn(5, 7), drawn(7, 2)),
                   {((0, 1), (1, 0)), ((1, 1), (2, 0))}),
    "labels": (lambda s, y: F.cross_entropy(s, y), (drawn(6, 9), torch.tensor([0, 3, 8, 2, 1, 1])),
               {((0, 0), (1, 0))}),
}  # fmt: skip


@pytest.mark.parametrize("case", SYMMETRIC)
def test_axes_whose_order_does_not_matter_are_found_together(case):
    reference, inputs, groups = SYMMETRIC[case]
    assert {axes for kind, axes in found(reference, *inputs) if kind is Kind.SYMMETRIC} == groups


def test_an_output_that_runs_along_a_reduced_axis_is_known():
    (softmax,) = find_reductions(lambda x: torch.softmax(x, -1), (drawn(3, 8),))
    (total,) = find_reductions(lambda x: x.sum(1), (drawn(3, 8),))
    assert (softmax.along, total.along) == ((1,), (None,))


def test_taps_of_a_convolution_are_an_affine_reduction_and_its_image_is_read_in_windows():
    kinds = found(lambda x, w: F.conv2d(x, w, padding=1, groups=2), drawn(1, 8, 9, 9), drawn(6, 4, 3, 3))
    assert {(Kind.AFFINE, ((1, 1),)), (Kind.AFFINE, ((1, 2),)), (Kind.AFFINE, ((1, 3),))} <= kinds
    assert {(Kind.WINDOW, ((0, 2),)), (Kind.WINDOW, ((0, 3),))} <= kinds


def test_windows_of_maxima_are_windows():
    assert (Kind.WINDOW, ((0, 2),)) in found(lambda x: F.max_pool1d(x, 2), drawn(1, 2, 8))


def test_a_scan_that_is_not_affine_is_ordered():
    assert found(lambda x: torch.cummax(x, 1)[0], drawn(3, 8)) == {(Kind.ORDERED, ((0, 1),))}


def test_an_elementwise_operation_reduces_nothing():
    assert found(lambda x, y: torch.relu(x) * y, drawn(4, 8), drawn(4, 8)) == set()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(4, 6), min_size=1, max_size=3), st.data())
def test_a_sum_over_some_axes_reduces_just_those(sizes, data):
    axes = data.draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1))
    kinds = found(lambda x: x.pow(2).sum(tuple(axes)), drawn(*sizes))
    assert kinds == {(Kind.SYMMETRIC, ((0, a),)) for a in axes}
