import pytest

from kbtui.evaluation.family import Operation, family_of


def op(name: str, *inputs: tuple[int, ...], out: tuple[int, ...] = (4, 8), dims: tuple[int, ...] = ()) -> Operation:
    return Operation(name, inputs or ((4, 8),), out, dims)


CASES = {
    "row_softmax": [op("_softmax", dims=(-1,))],
    "channel_rms_norm": [op("pow"), op("mean", dims=(1,)), op("add"), op("rsqrt"), op("mul")],
    "mat_vec": [op("mm", (4, 8), (8, 1), out=(4, 1))],
    "linear_relu_div": [op("t"), op("addmm", (16,), (4, 8), (8, 16), out=(4, 16)), op("relu"), op("div")],
    "attention": [op("bmm"), op("mul"), op("_softmax", dims=(-1,)), op("bmm")],
    "conv": [op("convolution", (1, 2, 8, 8), (4, 2, 3, 3), out=(1, 4, 8, 8)), op("relu")],
}


@pytest.mark.parametrize("family", CASES)
def test_each_family_is_told_by_its_operations(family: str) -> None:
    assert family_of(CASES[family]) == family


def test_a_softmax_written_out_is_a_softmax() -> None:
    written = [op("amax", dims=(-1,)), op("sub"), op("exp"), op("sum", dims=(1,)), op("div")]
    assert family_of(written) == "row_softmax"


@pytest.mark.parametrize(
    "operations",
    [
        [],
        [op("add")],
        [op("_softmax", dims=(0,))],
        [op("mm"), op("relu"), op("mm")],
        [op("mean", dims=(1,)), op("sub"), op("pow"), op("mean", dims=(1,)), op("rsqrt"), op("mul")],
    ],
)
def test_what_no_structure_is_known_for_has_no_family(operations: list[Operation]) -> None:
    assert family_of(operations) is None
