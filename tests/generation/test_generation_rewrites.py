"""Every rewrite changes the source and keeps the kernel right; the diagnosis picks which comes first."""

import random
import tomllib
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hints import load_hints
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import ShapeRole
from kbtui.domain.profile import Bottleneck, Diagnosis, Finding
from kbtui.domain.proposal import Sibling
from kbtui.generation.playbook import load_entries
from kbtui.generation.rewrites import REWRITES, Rewrite, Target
from kbtui.generation.rewrites.propose import Rewrites
from kbtui.generation.rewrites.source import parse
from kbtui.problems import load_problem
from tests.fakes.kernel_styles import AS_MODULE, AUTOTUNED, NAMED_AXES, STYLES

SAMPLES = ("softmax", "rms_norm", "mat_vec", "linear_relu_div", "sdp_attn", "group_conv")
A100 = DATA_SHEETS["a100"]
KERNELS = Path(__file__).parents[1] / "data" / "kernels"
FLOORS = {"float32": 1e-6, "float16": 1e-3}


def target_of(problem: str) -> Target:
    return Target.of(A100, load_problem(problem).spec)


def kernels() -> list[tuple[str, str]]:
    """(problem, source) of the samples' first kernels, other styles, and every playbook default."""
    found = [(name, load_problem(name).kernel_source) for name in SAMPLES]
    found += list(STYLES.values())
    for name in SAMPLES[:3]:
        spec = load_problem(name).spec
        found += [(name, e.instantiate(e.defaults(), A100, spec)) for e in load_entries(spec.family)]
    return found


def style(name: str) -> tuple[str, str]:
    """(problem, source) of a kernel in the style of a public library."""
    of = tomllib.loads((KERNELS / "kernels.toml").read_text())[name]
    return (str(KERNELS / of) if "/" in of else of), (KERNELS / f"{name}.py").read_text()


def edit(name: str, source: str, problem: str = "softmax"):
    rewrite = next(r for r in REWRITES if r.name == name)
    return rewrite.apply(source, target_of(problem))


Pair = tuple[str, str, Rewrite]


def pairs_of(sources: list[tuple[str, str]]) -> list[Pair]:
    return [(problem, source, rewrite) for problem, source in sources for rewrite in REWRITES]


def jobs_of(pairs: list[Pair], per_rewrite: int | None) -> list[dict]:
    jobs = []
    for problem, source, rewrite in pairs:
        spec = load_problem(problem).spec
        shape = spec.shapes_of(ShapeRole.PROXY)[1]
        for made in islice(rewrite.each(source, target_of(problem)), per_rewrite):
            if "autotune" in made.source:  # needs a device
                continue
            jobs.append(
                {"label": f"{problem} {rewrite.name}: {made.summary}", "source": made.source, "problem": problem,
                 "dims": shape.as_dict(), "dtype": spec.dtype_of(shape)}
            )  # fmt: skip
    return jobs


def assert_right(jobs, rows):
    wrong = [
        (job["label"], row)
        for job, row in zip(jobs, rows, strict=True)
        if "failed" in row or row["error"] > FLOORS[job["dtype"]]
    ]
    assert not wrong


def test_every_rewrite_keeps_the_samples_kernels_right(interpret):
    some = random.Random(0).sample(pairs_of(kernels()[:9]), k=48)
    jobs = jobs_of(some, per_rewrite=1)

    assert len(jobs) > 20
    assert_right(jobs, interpret(jobs))


@pytest.mark.slow
def test_every_application_to_every_kernel_keeps_it_right(interpret):
    jobs = jobs_of(pairs_of(kernels()), per_rewrite=None)

    assert_right(jobs, interpret(jobs))


def test_every_rewrite_applies_somewhere_and_always_changes_the_source():
    applied: dict[str, int] = {}
    some = [*kernels()[:8], *map(style, ("softmax_three_pass", "rms_rows_looped", "gemv_nested"))]
    for problem, source in some:
        for rewrite in REWRITES:
            made = rewrite.apply(source, target_of(problem))
            applied[rewrite.name] = applied.get(rewrite.name, 0) + bool(made)
            assert all(e.source != source for e in made)
            assert len({e.source for e in made}) == len(made)
            assert len({e.summary for e in made}) == len(made), (rewrite.name, [e.summary for e in made])
    assert min(applied.values()) >= 1
    assert applied["num_warps"] == len(some) - 1  # all but the autotuned one


@pytest.mark.slow  # test_generation_rewrites_study sees the same of a sample
def test_rewrites_change_the_compiled_intermediate_code(ttir_for):
    names = ("exp2", "reciprocal", "peel_masked_tail", "eviction_policy", "grid_swizzle", "pipelined_range")
    jobs = []
    for name in names:
        problem, source = next((p, s) for p, s in kernels() if edit(name, s, p))
        dims = load_problem(problem).spec.shapes_of(ShapeRole.TUNE)[0].as_dict()
        for text in (source, edit(name, source, problem)[0].source):
            jobs.append({"source": text, "problem": problem, "dims": dims})

    codes = [row["ttir"] for row in ttir_for(80, jobs)]

    assert [n for n, before, after in zip(names, codes[::2], codes[1::2], strict=True) if before == after] == []


def test_tiles_written_as_numbers_change_with_their_grid():
    source = load_problem("linear_relu_div").kernel_source

    made = {e.summary: e.source for e in edit("tile_size", source, "linear_relu_div")}

    assert "triton.cdiv(n_batch, 128), triton.cdiv(n_out, 64)" in made["BLOCK_M 64 to 128"]
    assert "triton.cdiv(n_batch, 64), triton.cdiv(n_out, 32)" in made["BLOCK_N 64 to 32"]
    assert "BLOCK_M=64, BLOCK_N=64, BLOCK_K=16" in made["BLOCK_K 32 to 16"]


def test_a_launch_in_a_method_is_edited_too():
    first = edit("tile_size", AS_MODULE)[0]

    assert "scale[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)" in first.source


def test_a_computed_tile_is_left_alone():
    source = STYLES["two_kernels"][1]

    assert edit("tile_size", source) == ()


def test_a_case_by_case_option_is_scaled_in_every_case():
    source = STYLES["two_kernels"][1]

    first = edit("num_warps", source)[0]

    assert "warps = 8 if block < 2048 else 32" in first.source


def test_freezing_autotune_moves_a_configuration_to_the_launch():
    first, second = edit("freeze_autotune", AUTOTUNED, "mat_vec")

    assert "autotune" not in first.source
    assert "BLOCK_K=256, num_warps=2)" in first.source
    assert "BLOCK_K=1024, num_warps=8, num_stages=2)" in second.source


def test_dot_precision_replaces_allow_tf32_and_leaves_fp16_problems_alone():
    first = edit("dot_precision", NAMED_AXES, "linear_relu_div")[0]

    assert 'tl.dot(xt, wt, input_precision="tf32x3")' in first.source
    assert edit("dot_precision", load_problem("sdp_attn").kernel_source, "sdp_attn") == ()


def test_peeling_keeps_conditions_that_are_not_the_loops_own():
    made = edit("peel_masked_tail", NAMED_AXES, "linear_relu_div")[0].source

    main, tail = made.split("for k0 in range(K // BK * BK, K, BK):")
    assert "mask=(rm[:, None] < M), other=0.0)" in main
    assert "inside[None, :]" not in main.split("for k0 in")[1]
    assert "inside[None, :]" in tail


def test_the_swizzle_goes_after_the_docstring():
    made = edit("grid_swizzle", NAMED_AXES, "linear_relu_div")[0].source

    lines = made.splitlines()
    at = next(i for i, line in enumerate(lines) if "tl.swizzle2d" in line)
    assert '"""One tile' in lines[at - 1]
    assert "pid_m = pid_0" in lines[at + 1]


@pytest.mark.parametrize(
    ("bottleneck", "expected"),
    [
        (Bottleneck.NO_TENSOR_CORES, {"dot_precision"}),
        (Bottleneck.SPILLS, {"tile_size"}),
        (Bottleneck.BARRIER, {"num_warps", "pipelined_range"}),
        (Bottleneck.UNCOALESCED, {"peel_masked_tail", "even_tiles"}),
        (Bottleneck.OCCUPANCY_SHARED, {"tile_size"}),
    ],
)
def test_the_diagnosis_picks_the_rewrite(bottleneck, expected, request_for):
    diagnosis = Diagnosis("slow", (Finding(bottleneck, 1.0, ()),), "128x1024", 100.0, 50.0, "counters")
    source = load_problem("linear_relu_div").kernel_source

    first = Rewrites().propose(request_for("linear_relu_div", source=source, diagnosis=diagnosis, limit=1))[0]

    assert first.origin.operator in expected
    assert first.summary.startswith(f"{first.origin.operator}: ")


def test_a_hint_picks_the_rewrite_and_is_named_in_the_origin(request_for):
    hint = next(h for h in load_hints() if h.id == "group_the_grid")
    source = load_problem("linear_relu_div").kernel_source

    first = Rewrites().propose(request_for("linear_relu_div", source=source, hints=(hint,), limit=1))[0]

    assert (first.origin.operator, first.origin.hint) == ("grid_swizzle", "group_the_grid")


def test_what_failed_on_siblings_comes_later(request_for):
    source = load_problem("softmax").kernel_source
    first = Rewrites().propose(request_for("softmax", source=source, limit=1))[0]
    lost = (Sibling("c0002", first.summary, "prune: 0.8 of the incumbent", 0.8),)

    then = Rewrites().propose(request_for("softmax", source=source, siblings=lost, limit=1))[0]

    assert then.origin.operator != first.origin.operator


def test_without_a_parent_or_with_one_that_has_no_syntax_there_is_nothing(request_for):
    assert Rewrites().propose(request_for("softmax")) == ()
    assert Rewrites().propose(request_for("softmax", source="def kernel_function(:")) == ()


def test_two_passes_become_one_online_pass_and_another_structure(request_for):
    source = style("softmax_three_pass")[1]

    made = edit("online_pass", source)[0].source

    assert made.count("for off in range") == source.count("for off in range") - 1
    assert "s = s * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)" in made
    hint = next(h for h in load_hints() if h.id == "online_max_and_sum")
    asked = request_for("softmax", source=source, hints=(hint,), user_hints=("online pass",), limit=1)
    assert Rewrites().propose(asked)[0].structure == "first + online_pass"


def test_a_split_reduction_adds_its_parts_into_zeros():
    made = edit("split_reduction", style("gemv_running_sum")[1], "mat_vec")[0].source

    assert "tl.atomic_add(y_ptr + row, acc)" in made
    assert "y = torch.zeros(M" in made
    assert "gemv[(M, 4)]" in made


def test_a_persistent_grid_copies_the_pointers_that_its_body_moves():
    source = style("swiglu_rows")[1]

    made = edit("persistent_grid", source, style("swiglu_rows")[0])[0].source

    assert "a_ptr_here = a_ptr" in made
    assert "a_ptr_here += program_id * stride" in made
    assert "_swiglu_forward_kernel[(min(n_rows, 216),)]" in made
    assert "n_programs=n_rows" in made


def test_offsets_stay_wide_where_the_problem_is_large():
    source = load_problem("softmax").kernel_source
    small = target_of("softmax")
    narrow = next(r for r in REWRITES if r.name == "narrow_offsets")

    assert narrow.apply(source, small) or "int64" not in source
    assert narrow.apply(source, Target(small.device, small.dtypes, 1 << 31)) == ()


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 999), limit=st.integers(0, 20), kernel=st.sampled_from(SAMPLES))
def test_proposals_are_deterministic_bounded_fresh_and_valid(request_for_factory, seed, limit, kernel):
    source = load_problem(kernel).kernel_source
    request = request_for_factory(kernel, source=source, seed=seed, limit=limit)

    once = Rewrites().propose(request)

    assert once == Rewrites().propose(request)
    assert len(once) <= limit
    assert len({p.source for p in once}) == len(once)
    assert all(parse(p.source) is not None for p in once)


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=200))
def test_no_text_makes_a_rewrite_raise(text):
    for rewrite in REWRITES:
        rewrite.apply(text, target_of("softmax"))
        rewrite.apply(AUTOTUNED[: len(text) * 5] + text, target_of("softmax"))
