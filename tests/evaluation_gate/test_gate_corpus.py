"""Kernels that cheat earn their reasons and honest ones pass: by the text, and when they run with the policy off.

The whole of both corpora through a device is slow; by default a seeded sample runs under the interpreter alone.
"""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import gate_corpus
from benchmarks.gate_corpus import Finding, InterpreterUnderTest, Sample
from kbtui.domain.verdict import Reason
from kbtui.evaluation.policy import check_policy
from kbtui.problems import load_problem

EXPLOITS = gate_corpus.exploits()
#: The interpreter is slow on the other samples.
QUICK = ("softmax", "rms_norm", "mat_vec")
N_EXPLOITS, N_HONEST, SEED = 10, 4, 20261130


def sampled(samples: tuple[Sample, ...], n: int) -> list[Sample]:
    fit = [s for s in samples if s.problem in QUICK and s.first_stage and not s.cuda_only]
    return random.Random(SEED).sample(fit, n)


@pytest.fixture(scope="module")
def honest() -> tuple[Sample, ...]:
    """Not at import: rewrites take seconds, and every worker of pytest imports every module."""
    return gate_corpus.honest()


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InterpreterUnderTest]:
    under = InterpreterUnderTest(tmp_path_factory.mktemp("corpus"))
    yield under
    under.close()


def mismatches(findings: Iterator[Finding]) -> list[Finding]:
    return [f for f in findings if f.right is False]


def test_the_corpora_are_as_wide_as_they_claim(honest: tuple[Sample, ...]) -> None:
    assert len(EXPLOITS) >= 130
    assert len({s.problem for s in EXPLOITS}) == 6
    assert len(honest) >= 100
    assert Counter(s.problem for s in honest).keys() == set(gate_corpus.PROBLEMS)


@pytest.mark.parametrize("sample", EXPLOITS, ids=lambda s: s.name)
def test_a_file_names_reasons_that_there_are_and_what_catches_it(sample: Sample) -> None:
    assert {Reason(r) for r in sample.runtime}
    assert sample.policy == gate_corpus.PASSES or Reason(sample.policy)
    assert sample.caught_by


@pytest.mark.parametrize("sample", EXPLOITS, ids=lambda s: s.name)
def test_the_static_policy_says_of_a_cheat_what_its_file_says(sample: Sample) -> None:
    verdict = check_policy(sample.source, load_problem(sample.problem).spec)
    said = gate_corpus.PASSES if verdict.ok else verdict.reason.value
    assert said == sample.policy, verdict
    assert verdict.ok or verdict.line


def test_the_static_policy_lets_honest_kernels_pass(honest: tuple[Sample, ...]) -> None:
    verdicts = {s.name: check_policy(s.source, load_problem(s.problem).spec) for s in honest}
    assert len(verdicts) == len(honest)
    assert {name: verdict for name, verdict in verdicts.items() if not verdict.ok} == {}


def test_cheats_are_caught_when_they_run_with_the_policy_off(interpreter: InterpreterUnderTest) -> None:
    found = gate_corpus.run(interpreter, sampled(EXPLOITS, N_EXPLOITS), (False,), lambda _: None)
    assert mismatches(found) == []


def test_honest_kernels_pass_when_they_run(interpreter: InterpreterUnderTest, honest: tuple[Sample, ...]) -> None:
    found = gate_corpus.run(interpreter, sampled(honest, N_HONEST), (True,), lambda _: None)
    assert mismatches(found) == []


@pytest.mark.slow
@pytest.mark.parametrize("problem", gate_corpus.PROBLEMS)
def test_both_corpora_through_a_device(problem: str, tmp_path: Path, honest: tuple[Sample, ...]) -> None:
    under = gate_corpus.under_test("model:a100", tmp_path)
    mine = [s for s in (*EXPLOITS, *honest) if s.problem == problem]
    try:
        assert mismatches(gate_corpus.run(under, mine, (True, False), lambda _: None)) == []
    finally:
        under.close()


@pytest.mark.gpu
def test_both_corpora_on_a_gpu(tmp_path: Path, honest: tuple[Sample, ...]) -> None:
    under = gate_corpus.under_test("cuda:0", tmp_path)
    try:
        assert mismatches(gate_corpus.run(under, (*EXPLOITS, *honest), (True, False), lambda _: None)) == []
    finally:
        under.close()
