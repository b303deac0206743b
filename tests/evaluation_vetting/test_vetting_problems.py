"""Samples and files in KernelBench's format, vetted as they are."""

from dataclasses import replace
from pathlib import Path

import pytest

from kbtui.domain.problem import ShapeRole, Tolerance
from kbtui.domain.vetting import KERNELBENCH_ALLCLOSE, Flaw
from kbtui.evaluation.vetting.harden import declaration, harden
from kbtui.problems import load_problem, sample_names

FILES = Path(__file__).parents[1] / "data" / "kernelbench_vetting"
#: Timed shapes of which no part can be computed on a CPU in good time.
TOO_DEAR = {"sdp_attn": {"4x32x2048x64", "4x32x4096x128", "32x32x512x1024"}}


@pytest.mark.parametrize("name", sample_names())
def test_a_sample_is_sound_on_its_proxies_its_timed_and_its_hidden_shapes(name, vetted):
    problem = load_problem(name)
    vetting = vetted(problem)
    assert vetting.sound, vetting.complaints
    assert len(vetting.nulls) >= 13
    assert any(" of " in null.null for null in vetting.nulls)
    left_out = {text.partition(":")[0] for text in vetting.unvetted}
    assert left_out == TOO_DEAR.get(name, set())
    assert len(vetting.shapes) >= len(problem.spec.shapes_of(ShapeRole.PROXY)) + 3


@pytest.mark.parametrize("name", ["softmax", "mat_vec"])
def test_a_sample_with_a_lax_tolerance_is_refused_for_the_quarter_that_passes(name, vetted):
    problem = load_problem(name)
    lax = replace(problem, spec=replace(problem.spec, distributions=("normal",), tolerance=Tolerance(0.9, 1e9)))
    whats = [c.what for c in vetted(lax).complaints if c.flaw is Flaw.NULL_PASSES]
    assert any("every fourth of" in what for what in whats)


def test_a_softmax_of_uniform_inputs_is_refused_at_allclose_for_zeros(vetted):
    problem = load_problem(str(FILES / "uniform_softmax.py"))
    first = vetted(problem, KERNELBENCH_ALLCLOSE).complaints[0]
    assert first.flaw is Flaw.NULL_PASSES
    assert first.what.startswith("zeros would pass on 4096x393216")
    assert "no right answer is larger than" in first.what
    assert "judge by relative error" in first.do


def test_a_matrix_vector_product_of_uniform_inputs_is_refused_for_a_quarter_read(vetted):
    problem = load_problem(str(FILES / "uniform_matvec.py"))
    whats = [c.what for c in vetted(problem, KERNELBENCH_ALLCLOSE).complaints]
    assert any(w.startswith("a quarter of A[1] and B[0] read, the rest made up would pass") for w in whats)


def test_relu_of_uniform_inputs_is_refused_for_its_input_and_hardened_by_signed_ones(vetted):
    problem = load_problem(str(FILES / "uniform_relu.py"))
    (complaint,) = [c for c in vetted(problem).complaints if "x returned" in c.what]
    assert "no input is negative" in complaint.what
    assert harden(problem, vetted).vetting.sound


#: What costs a second or two of CPU time waits for `make test-full`.
DEAR = {"batch_norm", "layer_norm", "square_matmul", "uniform_matvec", "uniform_softmax", "conv_relu"}


@pytest.mark.parametrize(
    "file",
    [pytest.param(f.stem, marks=pytest.mark.slow if f.stem in DEAR else ()) for f in sorted(FILES.glob("*.py"))],
)
def test_what_harden_offers_is_a_problem_that_loads_and_is_sound(file, vetted, tmp_path):
    hardened = harden(load_problem(str(FILES / f"{file}.py")), vetted)
    assert hardened.vetting.sound, hardened.vetting.complaints
    (tmp_path / "problem.toml").write_text(declaration(hardened.problem.spec, f"{file}.py"))
    (tmp_path / f"{file}.py").write_text(hardened.problem.reference_source)
    loaded = load_problem(str(tmp_path))
    assert loaded.spec == hardened.problem.spec
    assert loaded.reference_source == hardened.problem.reference_source
