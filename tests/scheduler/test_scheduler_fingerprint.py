"""A fingerprint sees what a kernel does: names, layout, tiles and warps do not change it; passes and sharing do."""

import ast
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtui.scheduler.fingerprint import fingerprint, same_structure, structure_of

HEADER = "import torch\nimport triton\nimport triton.language as tl\n\n"
ROW = (
    HEADER
    + '''
@triton.jit
def softmax(x_ptr, out_ptr, stride, n_cols, BLOCK: tl.constexpr):
    """One row a program."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + cols, e / tl.sum(e, axis=0), mask=cols < n_cols)


def kernel_function(x):
    out = torch.empty_like(x)
    softmax[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=1024, num_warps=4)
    return out
'''
)
LOOP = (
    HEADER
    + """
@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


def kernel_function(x):
    out = torch.empty(x.shape[0], device=x.device)
    total[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
    return out
"""
)
AGAIN = LOOP.replace(
    "    tl.store(out_ptr + row,",
    """    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr + row,""",
)
#: (what is done otherwise, source) of the loop.
OTHERWISE = {
    "a second pass": AGAIN,
    "atomics": LOOP.replace("tl.store(out_ptr + row,", "tl.atomic_add(out_ptr + row,"),
    "a second axis": LOOP.replace("range(0, n, BLOCK)", "range(tl.program_id(1) * BLOCK, n, BLOCK)"),
    "a persistent grid": LOOP.replace("range(0, n, BLOCK)", "range(tl.program_id(0), n, tl.num_programs(0))"),
    "another reduction": LOOP.replace("tl.sum(acc, axis=0)", "tl.max(acc, axis=0)"),
    "a second launch": LOOP.replace(
        "    return out", "    total[(1,)](out, out, x.shape[0], BLOCK=1024)\n    return out"
    ),
    "a dot": LOOP.replace("acc += tl.load(", "acc += tl.dot(acc, acc) + tl.load("),
    "an online pass": LOOP.replace("acc += tl.load(", "acc = tl.maximum(acc, acc) + tl.load("),
    "no loop": ROW,
}
NAMES = ("x_ptr", "out_ptr", "row", "cols", "softmax", "total", "acc", "start", "BLOCK", "n")


@settings(max_examples=60, deadline=None)
@given(
    source=st.sampled_from([ROW, LOOP, AGAIN]),
    new=st.lists(st.from_regex(r"[a-z][a-z0-9]{2,6}_v", fullmatch=True), min_size=10, max_size=10, unique=True),
    tile=st.sampled_from([64, 512, 4096]),
    warps=st.sampled_from([1, 2, 16]),
)
def test_names_formatting_tiles_and_warps_do_not_change_it(source, new, tile, warps):
    other = source
    for old, name in zip(NAMES, new, strict=True):
        other = re.sub(rf"\b{old}\b", name, other)
    other = other.replace("1024", str(tile)).replace("num_warps=4", f"num_warps={warps}")
    other = ast.unparse(ast.parse(other)) + "\n# a comment\n"

    assert fingerprint(other) == fingerprint(source)
    assert same_structure(source, other)


@pytest.mark.parametrize("what", OTHERWISE)
def test_what_is_done_otherwise_changes_it(what):
    assert not same_structure(LOOP, OTHERWISE[what])
    assert fingerprint(LOOP).label != fingerprint(OTHERWISE[what]).label


def test_any_two_ways_of_doing_it_otherwise_are_told_apart():
    labels = [fingerprint(source).label for source in (LOOP, *OTHERWISE.values())]

    assert len(set(labels)) == len(labels)


def test_whole_tiles_and_the_tail_after_them_are_one_pass():
    tail = """    for start in range(n // BLOCK * BLOCK, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr + row,"""
    peeled = LOOP.replace("range(0, n, BLOCK)", "range(0, n // BLOCK * BLOCK, BLOCK)")
    peeled = peeled.replace("    tl.store(out_ptr + row,", tail)

    assert same_structure(LOOP, peeled)


def test_a_kernel_that_calls_another_does_what_that_does():
    helped = LOOP.replace("def kernel_function", "@triton.jit\ndef added(acc):\n    return tl.sum(acc, axis=0)\n\n\n"
                          "def kernel_function").replace("tl.sum(acc, axis=0))", "added(acc))")  # fmt: skip

    assert fingerprint(helped).kernels[0].reductions == fingerprint(LOOP).kernels[0].reductions


def test_the_label_says_it_in_words():
    assert fingerprint(OTHERWISE["a second launch"]).label.startswith("2 launches, 2 passes #")
    assert fingerprint(OTHERWISE["atomics"]).label.startswith("1 launch, 1 pass, atomics #")


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=200))
def test_no_text_makes_it_raise(text):
    fingerprint(text)
    fingerprint(LOOP[: len(text) * 4] + text)
    assert same_structure(text, text)


def test_a_source_that_does_what_its_parent_does_is_of_its_structure_and_another_is_not() -> None:
    renamed = LOOP.replace("BLOCK", "TILE")
    assert structure_of(renamed, LOOP, "row/looped", "row") == "row/looped"
    others = {structure_of(other, LOOP, "row/looped", "row") for other in OTHERWISE.values()}
    assert len(others) == len(OTHERWISE)
    assert all(other.startswith("row/") for other in others)
    assert "row/looped" not in others


def test_a_source_without_a_parent_has_a_structure_of_its_own_also_where_it_cannot_be_read() -> None:
    assert structure_of(LOOP, None, None, "row") == structure_of(LOOP, "other", "row/x", "row")
    assert structure_of("no kernel", None, None, "person") == "person/unread"
