"""Rewrites leave alone what they would not change, and what no launch can reach."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.device import DATA_SHEETS
from kbtui.generation.playbook import load_entries
from kbtui.generation.rewrites import REWRITES, Target
from kbtui.generation.rewrites.conditions import decided
from kbtui.generation.rewrites.syntax import parse
from kbtui.problems import load_problem

CONSTANTS = {"ARCH": 80, "PRECISION": "ieee", "SPLIT": 0}


def default_of(problem: str, name: str, chip: str = "a100") -> str:
    spec = load_problem(problem).spec
    entry = next(e for e in load_entries(spec.family) if e.name == name)
    return entry.instantiate(entry.defaults(), DATA_SHEETS[chip], spec)


def edits(name: str, source: str, problem: str) -> tuple:
    rewrite = next(r for r in REWRITES if r.name == name)
    return rewrite.apply(source, Target.of(DATA_SHEETS["a100"], load_problem(problem).spec))


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("ARCH >= 90", False),
        ("ARCH < 90 or x.is_contiguous()", True),
        ("ARCH >= 90 and x.is_contiguous()", False),
        ("ARCH < 90 and x.is_contiguous()", None),
        ("x.is_contiguous() or ARCH >= 90", None),
        ("not SPLIT", True),
        ('PRECISION == "ieee"', True),
        ('PRECISION != "ieee"', False),
        ('PRECISION < "z"', None),
        ("ARCH == PRECISION", None),
        ("60 < ARCH < 90", None),
        ("tile > ARCH", None),
        ("(yield)", None),
        ("ARCH >=", None),
    ],
)
def test_a_condition_is_decided_by_constants_or_not_at_all(condition, holds):
    assert decided(condition, CONSTANTS) is holds


@given(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.booleans())
def test_what_is_decided_is_what_python_says(left, right, operator, negated):
    condition = f"{'not ' if negated else ''}A {operator} B"

    assert decided(condition, {"A": left, "B": right}) is eval(condition, {"A": left, "B": right})


def test_kernels_for_a_later_chip_are_none_of_a_source_for_an_earlier_one():
    earlier = parse(default_of("linear_relu_div", "linear_tensor_descriptor"))
    later = parse(default_of("linear_relu_div", "linear_tensor_descriptor", "h200"))

    assert set(earlier.kernels) == {launch.kernel for launch in earlier.launches} == {"pointed_tiles"}
    assert {"pointed_tiles", "described_tiles"} <= set(later.kernels)


def test_a_kernel_that_others_call_stays_though_its_own_launch_never_happens():
    source = parse(
        "import triton\nOLD = 0\n"
        "@triton.jit\ndef part(p):\n    return p\n"
        "@triton.jit\ndef whole(p):\n    part(p)\n"
        "def kernel_function(x):\n    if OLD:\n        part[(1,)](x)\n    whole[(1,)](x)\n    return x\n"
    )

    assert set(source.kernels) == {"part", "whole"}
    assert [launch.kernel for launch in source.launches] == ["whole"]


def test_a_name_bound_in_the_host_is_no_constant_of_the_module():
    source = parse(
        "import triton\nWIDE = 0\n@triton.jit\ndef f(p):\n    return p\n"
        "def kernel_function(x):\n    WIDE = x.shape[0] > 4\n    if WIDE:\n        f[(1,)](x)\n    return x\n"
    )

    assert [launch.kernel for launch in source.launches] == ["f"]


def test_nothing_is_edited_in_a_kernel_that_is_never_launched():
    source = default_of("linear_relu_div", "linear_tensor_descriptor")

    for name in ("num_stages", "dot_precision", "eviction_policy", "num_warps"):
        made = edits(name, source, "linear_relu_div")
        assert [e.summary for e in made if "described_tiles" in e.summary] == []


def test_policies_a_kernel_has_already_through_its_constants_are_not_set_again():
    source = default_of("softmax", "softmax_online_tiles")

    modes = [dict(e.params)["eviction"] for e in edits("eviction_policy", source, "softmax")]

    assert "reuse" not in modes
    assert {"loads_first", "loads_last"} <= set(modes)
    assert "reuse" in [
        dict(e.params)["eviction"]
        for e in edits("eviction_policy", source.replace('SECOND_READ = "evict_first"', 'SECOND_READ = ""'), "softmax")
    ]


def test_a_loop_whose_author_chose_is_not_flattened():
    source = default_of("linear_relu_div", "linear_persistent")

    assert edits("flatten_loops", source, "linear_relu_div") == ()
    assert edits("flatten_loops", source.replace(", flatten=FLATTEN", ""), "linear_relu_div")


def test_bits_of_a_float_are_no_offset():
    source = default_of("softmax", "softmax_split_atomic")

    made = edits("narrow_offsets", source, "softmax")

    assert [e.summary for e in made] == ["offsets of join_part in 32 bits", "offsets of write_part in 32 bits"]


def test_a_sum_named_before_it_is_stored_is_split_but_not_one_that_is_changed_after():
    stored, named = "tl.store(out_ptr + rows, tl.sum(products, axis=1)", "total = tl.sum(products, axis=1)\n"
    source = default_of("mat_vec", "matvec_row_block")
    source = source.replace(stored, f"{named}    tl.store(out_ptr + rows, total")

    assert edits("split_reduction", source, "mat_vec")
    assert not edits("split_reduction", source.replace(named, f"{named}    total += 1.0\n"), "mat_vec")
