import inspect
import runpy
from pathlib import Path

import pytest
import torch

from kbtui.domain.problem import ShapeRole
from kbtui.problems import DISTRIBUTIONS, load_problem, sample_names
from sample_kernels import distributions

#: (bytes, operations) worked out by hand for the shape each sample is screened on.
BY_HAND = {
    "softmax": (2 * 268_435_456, 5 * 67_108_864),
    "rms_norm": (2 * 1_073_741_824, 3 * 268_435_456),
    "mat_vec": (4 * (33_554_432 + 131_072 + 256), 67_108_864),
    "linear_relu_div": (4 * (131_072 + 524_288 + 512 + 65_536), 134_217_728 + 3 * 65_536),
    "sdp_attn": (4 * 67_108_864, 4 * 1024 * 512 * 512 * 64),
    "group_conv": (4 * (2 * 16_777_216 + 4_608), 2 * 16_777_216 * 8 * 9),
}


def reference_of(name: str) -> dict:
    return runpy.run_path(str(Path(load_problem(name).path) / "reference.py"))


def test_the_six_samples_are_there():
    assert set(sample_names()) == set(BY_HAND)


@pytest.mark.parametrize("name", BY_HAND)
def test_formulas_give_the_numbers_worked_out_by_hand(name):
    spec = load_problem(name).spec
    (screening,) = spec.timed_at(1)
    assert (spec.bytes_moved(screening), spec.flops(screening)) == BY_HAND[name]


@pytest.mark.parametrize("name", BY_HAND)
def test_a_sample_has_three_timed_sizes_and_hidden_and_proxy_ones(name):
    spec = load_problem(name).spec
    assert len(spec.shapes_of(ShapeRole.TUNE)) >= 3
    assert len(spec.shapes_of(ShapeRole.HIDDEN)) >= 4
    assert len(spec.shapes_of(ShapeRole.PROXY)) >= 3
    assert spec.distributions == DISTRIBUTIONS
    assert len({s.name for s in spec.shapes}) == len(spec.shapes)


@pytest.mark.parametrize("name", BY_HAND)
def test_hidden_shapes_hold_a_one_an_odd_size_and_a_neighbour_of_a_power_of_two(name):
    sizes = {size for s in load_problem(name).spec.shapes_of(ShapeRole.HIDDEN) for _, size in s.dims}
    powers = {1 << i for i in range(4, 20)}
    assert 1 in sizes
    assert any(size - 1 in powers or size + 1 in powers for size in sizes)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("name", BY_HAND)
def test_inputs_on_meta_have_the_sizes_of_real_ones_without_a_generator(name, distribution):
    module, spec = reference_of(name), load_problem(name).spec
    for shape in spec.shapes_of(ShapeRole.PROXY):
        how = {"device": "cpu", "distribution": distribution, "dtype": spec.dtype_of(shape)}
        real = module["make_inputs"](shape.as_dict(), generator=torch.Generator().manual_seed(0), **how)
        meta = module["make_inputs"](shape.as_dict(), generator=None, **(how | {"device": "meta"}))
        assert [(t.shape, t.dtype) for t in real] == [(t.shape, t.dtype) for t in meta]
        assert all(t.is_contiguous() for t in real)
        assert all(torch.isfinite(t).all() for t in real)
        assert all(t.device.type == "meta" for t in meta)
        out = module["reference"](*meta)
        assert out.dtype == meta[0].dtype


@pytest.mark.parametrize("name", BY_HAND)
def test_a_seed_means_the_same_inputs_and_another_seed_others(name):
    module, spec = reference_of(name), load_problem(name).spec
    shape = spec.shapes_of(ShapeRole.PROXY)[0].as_dict()

    def drawn(seed: int, distribution: str) -> tuple[torch.Tensor, ...]:
        return module["make_inputs"](shape, torch.Generator().manual_seed(seed), "cpu", distribution)

    for distribution in DISTRIBUTIONS:
        assert all(torch.equal(a, b) for a, b in zip(drawn(1, distribution), drawn(1, distribution), strict=True))
        assert not torch.equal(drawn(1, distribution)[0], drawn(2, distribution)[0])


@pytest.mark.parametrize("name", BY_HAND)
def test_make_inputs_defaults_to_the_declared_dtype(name):
    default = inspect.signature(reference_of(name)["make_inputs"]).parameters["dtype"].default
    assert default == load_problem(name).spec.dtype


def test_parameters_declared_are_the_references_constants():
    assert float(dict(load_problem("rms_norm").spec.params)["eps"]) == reference_of("rms_norm")["EPS"]
    declared = dict(load_problem("linear_relu_div").spec.params)
    assert float(declared["divisor"]) == reference_of("linear_relu_div")["DIVISOR"]


#: What a lazy kernel answers instead, by sample; each must be far from the answer on every distribution.
def lazy_answers(name: str, inputs: tuple[torch.Tensor, ...], answer: torch.Tensor) -> dict[str, torch.Tensor]:
    lazy = {"zeros": torch.zeros_like(answer), "mean": torch.full_like(answer, answer.mean().item())}
    if inputs[0].shape == answer.shape:
        lazy["its first input"] = inputs[0]
    match name:
        case "softmax":
            x = inputs[0]
            exps = torch.exp(x - x.amax(-1, keepdim=True))
            lazy["a quarter of the sum"] = exps / (4 * exps[:, : x.shape[1] // 4].sum(-1, keepdim=True))
        case "rms_norm":
            x = inputs[0]
            lazy["a quarter of the features"] = x / (x[:, : max(1, x.shape[1] // 4)] ** 2).mean(1, keepdim=True).sqrt()
            lazy["no eps"] = x / (x**2).mean(1, keepdim=True).sqrt()
        case "mat_vec":
            matrix, vector = inputs
            quarter = vector.shape[0] // 4
            lazy["a quarter of the columns"] = 4 * matrix[:, :quarter] @ vector[:quarter]
        case "linear_relu_div":
            lazy["the bias alone"] = torch.relu(inputs[2]).expand_as(answer) / 2
            lazy["no bias"] = torch.relu(inputs[0] @ inputs[1].T) / 2
        case "sdp_attn":
            lazy["the mean of the values"] = inputs[2].mean(-2, keepdim=True).expand_as(answer)
    return lazy


#: Answers that are right on some distribution by their nature, and must be caught on another.
CAUGHT_ELSEWHERE = {("rms_norm", "no eps"): "tiny"}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("name", BY_HAND)
def test_a_lazy_kernel_is_far_from_right_on_every_distribution(name, distribution):
    module, spec = reference_of(name), load_problem(name).spec
    shape = spec.shapes_of(ShapeRole.PROXY)[1]
    generator = torch.Generator().manual_seed(3)
    inputs = module["make_inputs"](shape.as_dict(), generator, "cpu", distribution, dtype=spec.dtype_of(shape))
    doubles = tuple(t.double() for t in inputs)
    answer = module["reference"](*doubles)
    for what, lazy in lazy_answers(name, doubles, answer).items():
        if CAUGHT_ELSEWHERE.get((name, what), distribution) == distribution:
            error = ((lazy - answer).norm() / answer.norm()).item()
            assert error > 5 * spec.tolerance.floor, (what, error)


def test_an_unknown_distribution_is_refused_by_name():
    with pytest.raises(ValueError, match="unknown distribution 'norml'"):
        distributions.draw("norml", (2, 2))


def test_the_distributions_the_parser_defaults_to_are_those_that_can_be_drawn():
    assert distributions.DISTRIBUTIONS == DISTRIBUTIONS
