import pytest
from softmax_problem import CHEATS, HONEST, kernel, make_problem

from kbtui.domain.verdict import Proof, VerdictKind
from kbtui.errors import UsageError
from kbtui.evaluation.gate.interpreter import InterpreterGate
from kbtui.evaluation.process import Zygote


def assert_passes(gate: InterpreterGate, name: str, stage: int) -> None:
    verdict = gate.check(HONEST[name], stage, seed=5)
    assert verdict.ok, verdict
    assert verdict.proof is Proof.INTERPRETER
    assert verdict.stage == stage
    assert verdict.error is not None
    assert verdict.error < 1e-6


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_kernel_passes_the_stage_with_every_kind_of_check(gate: InterpreterGate, name: str) -> None:
    assert_passes(gate, name, 1)


#: The later stages compare values on more shapes only.
LATER = [name if name in ("plain", "autotuned over configurations") else pytest.param(name, marks=pytest.mark.slow)
         for name in HONEST]  # fmt: skip


@pytest.mark.parametrize("name", LATER)
def test_an_honest_kernel_passes_the_later_stages(gate: InterpreterGate, name: str) -> None:
    for stage in (2, 4):
        assert_passes(gate, name, stage)


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_earns_its_reason(gate: InterpreterGate, name: str) -> None:
    source, reason = CHEATS[name]
    verdict = gate.check(source, 1, seed=5)
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, reason), verdict


def test_who_is_honest_for_a_while_is_caught_before_he_may_be_champion(gate: InterpreterGate) -> None:
    by_the_clock = kernel(
        "began = born.setdefault('at', time.monotonic())\n"
        "if x.shape not in kept or time.monotonic() - began < 1.3:\n"
        "    kept[x.shape] = launch(x, torch.empty_like(x))\n"
        "return kept[x.shape]",
        "import time\nborn, kept = {}, {}",
    )
    verdict = gate.check(by_the_clock, 4, seed=5)
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, "wrong_values"), verdict


def test_a_hang_ends_at_its_deadline(zygote: Zygote) -> None:
    gate = InterpreterGate(zygote, make_problem(), call_timeout_s=0.5)
    gate.open()
    verdict = gate.check(kernel("while True:\n    pass"), 1, seed=5)
    gate.close()
    assert verdict.reason == "timed_out"


def test_an_exception_names_the_candidates_line(gate: InterpreterGate) -> None:
    source = CHEATS["raises"][0]
    verdict = gate.check(source, 1, seed=5)
    assert verdict.line == 1 + source.splitlines().index("    raise ValueError('not today')")


def test_what_the_interpreter_cannot_do_is_not_the_candidates_fault(gate: InterpreterGate) -> None:
    source = kernel("return launch(x, torch.empty_like(x))").replace("tl.exp(", "tl.extra.cuda.libdevice.exp(")
    verdict = gate.check(source, 1, seed=5)
    assert (verdict.kind, verdict.reason) == (VerdictKind.UNVERIFIED, "interpreter_unsupported")


def test_a_reference_that_raises_is_the_users_to_correct(zygote: Zygote) -> None:
    gate = InterpreterGate(zygote, make_problem("def reference(x):\n    raise KeyError('rows')\n"))
    with pytest.raises(UsageError, match="the reference of softmax raised"):
        gate.open()
    gate.close()


def test_a_referee_that_dies_is_replaced(gate: InterpreterGate) -> None:
    gate._living_referee().kill()
    assert gate.check(HONEST["plain"], 1, seed=6).ok
