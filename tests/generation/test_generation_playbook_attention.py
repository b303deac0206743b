"""Attention through tensor descriptors is right at every width of a head, whole tiles or not, and fits a Hopper SM."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import ShapeRole
from kbtui.generation.playbook import Entry, load_entries
from kbtui.generation.playbook.advice import Size
from kbtui.generation.playbook.advice_rules import attention
from kbtui.problems import load_problem

H200 = DATA_SHEETS["h200"]
CAUSAL = str(Path(__file__).parents[1] / "data" / "kernels" / "problems" / "causal_attention")
LIMIT = 1e-3
#: Tiles small enough that a few hundred keys are several of them; half of all keys are walked without masks, and
#: weights of wide heads go through memory.
SMALL = {
    "NARROW_M": 64, "NARROW_N": 64, "MIDDLE_M": 64, "MIDDLE_N": 64, "WIDE_M": 64, "SPAN": 128, "VALUES": 128,
    "HELD_VALUES": 0,
}  # fmt: skip


def described() -> Entry:
    return next(e for e in load_entries("attention") if e.name == "attention_described")


def job(dims: dict[str, int], params: dict[str, Any], problem: str = "sdp_attn", layout: str = "contiguous") -> Any:
    causal = "true" if problem == CAUSAL else "false"
    spec = replace(load_problem("sdp_attn").spec, params=(("causal", causal),))
    source = described().instantiate(described().defaults() | params, H200, spec)
    return {"source": source, "problem": problem, "dims": dims, "layout": layout, "dtype": "float16"}


def failures(jobs: list[Any], rows: list[dict[str, Any]]) -> list[Any]:
    return [
        (asked["problem"], asked["dims"], row)
        for asked, row in zip(jobs, rows, strict=True)
        if row.get("error", 1.0) > LIMIT or not row["shape_ok"]
    ]


def test_descriptors_give_attention_at_every_width_of_a_head(interpret):
    jobs = [
        job({"batch": 2, "heads": 2, "seq": 128, "head_dim": 64}, SMALL),
        job({"batch": 1, "heads": 1, "seq": 1, "head_dim": 16}, {}),
        job({"batch": 1, "heads": 2, "seq": 150, "head_dim": 80}, SMALL),
        job({"batch": 1, "heads": 2, "seq": 130, "head_dim": 128}, {}),
        job({"batch": 1, "heads": 1, "seq": 33, "head_dim": 1024}, {}),
        job({"batch": 1, "heads": 2, "seq": 256, "head_dim": 192}, SMALL),
        job({"batch": 1, "heads": 1, "seq": 300, "head_dim": 136}, SMALL),
    ]

    assert failures(jobs, interpret(jobs)) == []


def test_held_weights_of_wide_heads_give_attention_and_more_keys_than_are_held_too(interpret):
    jobs = [
        job({"batch": 2, "heads": 1, "seq": 70, "head_dim": 264}, {}),
        job({"batch": 1, "heads": 2, "seq": 270, "head_dim": 136}, {}),
        job({"batch": 1, "heads": 1, "seq": 512, "head_dim": 160}, {"HELD_VALUES": 128}),
        job({"batch": 1, "heads": 1, "seq": 513, "head_dim": 136}, {"SPAN": 256}),
        job({"seq": 300, "head_dim": 136}, {}, problem=CAUSAL),
    ]

    assert failures(jobs, interpret(jobs)) == []


def test_few_keys_of_wide_heads_are_held_and_others_walked(ttir_for):
    walks = {(512, 64): "walk_described", (512, 128): "walk_described", (512, 136): "hold_weights",
             (513, 136): "weigh_then_sum"}  # fmt: skip
    jobs = [job({"batch": 1, "heads": 1, "seq": seq, "head_dim": head_dim}, {}) for seq, head_dim in walks]

    for (dims, walk), row in zip(walks.items(), ttir_for(90, jobs), strict=True):
        assert [f"@{walk}(" in text for text in row["ttir"]] == [True], (dims, walk)


def test_only_what_acts_on_a_size_is_searched_there():
    def acts(*dims: int) -> set[str]:
        (first, *_) = attention(Size(dims, 2), H200)
        return {name for name, _ in described().grid} - first.idle

    assert all(name.startswith("NARROW_") for name in acts(4, 32, 2048, 64))
    assert all(name.startswith("MIDDLE_") for name in acts(4, 32, 4096, 128))
    assert acts(32, 32, 512, 1024) == {"HELD_VALUES", "HELD_STAGES", "PIECE", "WIDE_STAGES"}
    assert {"KEYS", "WIDE_M"} <= acts(32, 32, 513, 1024)
    assert "HELD_VALUES" not in acts(32, 32, 513, 1024)


def test_what_no_descriptor_can_be_made_for_goes_through_pointers(interpret):
    jobs = [
        job({"batch": 1, "heads": 2, "seq": 37, "head_dim": 64}, {}, layout="sliced"),
        job({"batch": 1, "heads": 1, "seq": 40, "head_dim": 203}, {}),
        job({"batch": 1, "heads": 1, "seq": 65, "head_dim": 20}, {}),
    ]

    assert failures(jobs, interpret(jobs)) == []


def test_causal_attention_sees_no_key_after_the_query(interpret):
    jobs = [
        job(dims, SMALL, problem=CAUSAL)
        for dims in ({"seq": 70, "head_dim": 16}, {"seq": 200, "head_dim": 128}, {"seq": 300, "head_dim": 136})
    ]

    assert failures(jobs, interpret(jobs)) == []


@pytest.mark.slow
def test_every_timed_shape_fits_a_hopper_without_spills(compile_for):
    shapes = [shape.as_dict() for shape in load_problem("sdp_attn").spec.shapes_of(ShapeRole.TUNE)]
    jobs = [job(dims, {}) for dims in shapes]

    for asked, row in zip(jobs, compile_for(90, jobs), strict=True):
        assert row.get("kernels"), (asked["dims"], row)
        for kernel in row["kernels"]:
            assert kernel["spill_bytes"] == 0, asked["dims"]
            assert kernel["shared_bytes"] <= H200.shared_per_block
