"""Changing a part of the inputs in place: the same for the referee, who makes them anew, as for the candidate."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from kbtui.evaluation.roles.nudge import nudge, nudged

SIZES = st.lists(st.integers(0, 300), min_size=1, max_size=3)


def _inputs(sizes: list[int]) -> list[object]:
    return [*(torch.arange(n, dtype=torch.float32) for n in sizes), 3, torch.arange(5)]


@given(SIZES, st.text(max_size=8))
def test_a_nudge_changes_a_part_of_every_floating_input_and_is_undone(sizes: list[int], seed: str) -> None:
    inputs, original = _inputs(sizes), _inputs(sizes)
    undo = nudge(inputs, seed)
    for value, before in zip(inputs[: len(sizes)], original, strict=False):
        n_changed = int((value != before).sum())  # type: ignore[attr-defined]
        assert n_changed <= max(1, before.numel() // 64)  # type: ignore[attr-defined]
        assert n_changed > 0 or before.numel() < 2  # type: ignore[attr-defined]
    for one in undo:
        one()
    assert all(torch.equal(torch.as_tensor(a), torch.as_tensor(b)) for a, b in zip(inputs, original, strict=True))


@given(SIZES, st.text(max_size=8))
def test_the_same_seed_nudges_alike_and_leaves_what_it_copies(sizes: list[int], seed: str) -> None:
    inputs, original = _inputs(sizes), _inputs(sizes)
    copies = nudged(inputs, seed)
    assert all(torch.equal(torch.as_tensor(a), torch.as_tensor(b)) for a, b in zip(inputs, original, strict=True))
    nudge(inputs, seed)
    assert all(torch.equal(torch.as_tensor(a), torch.as_tensor(b)) for a, b in zip(inputs, copies, strict=True))
