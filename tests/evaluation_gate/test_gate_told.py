"""Answers of a child that has been taken over."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from softmax_problem import kernel

from kbtui.domain.verdict import Proof, Reason, VerdictKind
from kbtui.evaluation.gate import told
from kbtui.evaluation.gate.failures import verdict_of_failure
from kbtui.evaluation.gate.interpreter import InterpreterGate
from kbtui.evaluation.process import WorkerError, WorkerNonsense, WorkerNotStarted, WorkerTimeout

FORGE = """
import json, os, socket, struct, time

def forge(frame):
    text = json.dumps({"id": 3, **frame}).encode()
    for fd in range(3, 40):
        try:
            kind = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if kind.startswith("socket"):
            os.write(fd, struct.pack("!IQ", len(text), 0) + text)
    time.sleep(5)
"""
ANSWERS = [
    {"value": 5}, {"value": {}}, {"value": None}, {"value": {"fault": [1], "forbidden": 5, "n_launches": "x"}},
    {"value": {"fault": {"reason": "ok", "detail": "x"}, "forbidden": [], "n_launches": 1}},
    {"value": {"fault": None, "forbidden": [1, 2], "n_launches": 1}}, {"id": 7, "value": {}}, {},
]  # fmt: skip
NAMES = ["fault", "reason", "detail", "forbidden", "n_launches", "returned"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.parametrize("frame", ANSWERS, ids=range(len(ANSWERS)))
def test_a_forged_answer_ends_the_candidate_not_the_engine(gate: InterpreterGate, frame: dict[str, object]) -> None:
    verdict = gate.check(kernel(f"forge({frame!r})", FORGE), 1, seed=5)
    assert verdict.kind is VerdictKind.REJECTED, verdict
    assert verdict.reason in (Reason.SANDBOX_VIOLATION, Reason.CRASHED), verdict


@given(JSON)
def test_any_answer_is_understood_or_called_nonsense(value: object) -> None:
    for take in (told.check_report, told.returned, lambda v: told.durations_us(v, 2, "timed")):
        with contextlib.suppress(WorkerNonsense):
            take(value)  # type: ignore[operator]


@pytest.mark.parametrize("time_us", [-1.0, 0.0, float("nan"), float("inf"), 10**400, "1", None, True, 1e30])
def test_a_time_that_is_none_is_nonsense(time_us: object) -> None:
    with pytest.raises(WorkerNonsense):
        told.durations_us([time_us], 1, "timed")
    assert told.durations_us([1, 2.5], 2, "timed") == [1.0, 2.5]


def test_what_a_candidate_says_reaches_no_terminal_as_it_is(gate: InterpreterGate) -> None:
    verdict = gate.check(kernel(r"raise ValueError('\udc80 \x1b[2J\x00\x9b bad')"), 1, seed=5)
    assert verdict.detail.isprintable()
    assert verdict.detail.encode()
    assert "bad" in verdict.detail


def test_a_child_that_never_started_says_nothing_of_its_candidate() -> None:
    for cause in (WorkerTimeout("start", 120.0, ""), WorkerError("ImportError", "no torch", "", None)):
        verdict = verdict_of_failure(WorkerNotStarted(cause), 1, Proof.INTERPRETER)
        assert (verdict.kind, verdict.reason) == (VerdictKind.UNVERIFIED, Reason.HARNESS_FAILED)
