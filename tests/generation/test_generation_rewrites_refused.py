"""Rewrites leave alone what they would not change, and what no launch can reach."""

import libcst as cst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.device import DATA_SHEETS
from kbtui.generation.playbook import load_entries
from kbtui.generation.rewrites import REWRITES, Target
from kbtui.generation.rewrites.conditions import decided
from kbtui.generation.rewrites.passed import integers_passed, texts_passed
from kbtui.generation.rewrites.source import parse
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


@pytest.mark.parametrize(
    ("problem", "name", "kernel"),
    [
        ("softmax", "softmax_persistent", "rows_in_registers"),
        ("rms_norm", "channel_rms_looped", "channel_walk"),
        ("group_conv", "conv_implicit_product", "gathered_product"),
    ],
)
def test_stages_a_loop_may_have_already_are_not_set_again(problem, name, kernel):
    source = default_of(problem, name)
    assert "\nSTAGES = 2\n" in source

    def stages(text: str) -> set[str]:
        made = edits("pipelined_range", text, problem)
        return {dict(e.params)["num_stages"] for e in made if e.summary.startswith(f"loops of {kernel} ")}

    assert stages(source) == {"3", "4", "1"}
    assert stages(source.replace("\nSTAGES = 2\n", "\nSTAGES = 3\n")) == {"2", "4", "1"}


def test_what_an_expression_may_be_is_read_from_the_launches():
    source = parse(
        "import triton\nDEEP = 4\nMODE = 'ieee'\n"
        "@triton.jit\ndef f(p, n, S, T, U, M):\n    return p\n"
        "def kernel_function(x):\n    s = 3 if x.shape[0] > 4 else DEEP\n    u = x.shape[1] // 2\n"
        "    f[(1,)](x, 8, S=min(s, u), T=u, U=DEEP, M=MODE)\n    f[(1,)](x, 9, S=DEEP, T=u, U=0x10, M='tf32')\n"
    )

    assert integers_passed(source, "f", cst.Name("S")) == {3, 4}
    assert integers_passed(source, "f", cst.Name("T")) == set()
    assert integers_passed(source, "f", cst.Name("U")) == {4, 16}
    assert integers_passed(source, "f", cst.Name("n")) == {8, 9}
    assert integers_passed(source, "f", cst.Integer("5")) == {5}
    assert integers_passed(source, "f", None) == set()
    assert texts_passed(source, "f", cst.Name("M")) == {"ieee", "tf32"}


def test_names_bound_to_each_other_are_followed_once():
    source = parse(
        "import triton\n@triton.jit\ndef f(p, S):\n    return p\n"
        "def kernel_function(x):\n    a = b\n    b = a\n    b = 2\n    f[(1,)](x, S=a)\n"
    )

    assert integers_passed(source, "f", cst.Name("S")) == {2}


def test_a_tile_of_one_element_is_given_no_hint():
    source = default_of("mat_vec", "matvec_split_k")
    assert source.count("\nROWS = 2\n") == 1
    source = source.replace("\nROWS = 2\n", "\nROWS = 1\n")

    def hinted(text: str) -> list[str]:
        return [e.summary for e in edits("alignment_hints", text, "mat_vec")]

    assert hinted(source) == ["offsets of add_parts with alignment hints"]
    assert len(hinted(source.replace("ROWS = 1\n", "ROWS = 2\n", 1))) == 2


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


def test_a_constant_is_not_raised_above_what_the_host_takes_of_it():
    source = default_of("group_conv", "conv_direct_group")
    assert "min(OUT_CHANNELS, 8, " in source
    smaller = source.replace("OUT_CHANNELS = 8\n", "OUT_CHANNELS = 4\n")

    made = {text: edits("tile_size", text, "group_conv") for text in (source, smaller)}

    told = {text: [e.summary for e in of if e.summary.startswith("OUT_CHANNELS")] for text, of in made.items()}
    assert told == {source: ["OUT_CHANNELS 8 to 4"], smaller: ["OUT_CHANNELS 4 to 8", "OUT_CHANNELS 4 to 2"]}
