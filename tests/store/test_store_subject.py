from dataclasses import replace

import pytest

from kbtui.domain.candidate import Candidate, Origin
from kbtui.domain.evaluation import ProblemReport, RungOutcome
from kbtui.domain.event import (
    Budget,
    CandidateAdmitted,
    CommandAccepted,
    CommandKind,
    Decision,
    EndReason,
    ProblemOpened,
    ProposalsMade,
    RunEnded,
    RungCompleted,
    RunResumed,
)
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome
from kbtui.domain.verdict import Proof, Reason, rejected, verified
from store.subject import budget_text, subject

NAMES = {"c0031": "online softmax, 2 rows a program"}
TIMED = Measurement(Clock.MEASURED, (), (Comparison("first", Outcome.FASTER, 1.41, 1.39, 1.43, 0.99, 20, 3),))
OK = RungOutcome(verified(2, Proof.GPU), 0.5, 1.0, measurement=TIMED)
DONE = RungCompleted("c0031", 3, OK, Decision.PROMOTE, "+6 % over c0012", 1.41, True)
UNTIMED = replace(OK, measurement=None)
WRONG = RungOutcome(rejected(Reason.WRONG_VALUES, 1, Proof.GPU, "x"), 0.1, 0.1)
MODELLED = replace(OK, measurement=Measurement(Clock.MODELLED, ()))
CROSSOVER = Candidate("c0040", "ab", ("c0012", "c0031"), Origin("llm", "qwen"), "s", "both ideas")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (DONE, "r3 c0031 online softmax, 2 rows a program: 1.41× (1.39–1.43), promoted: +6 % over c0012"),
        (
            replace(DONE, reason="promoted, 97 % sure"),
            f"r3 c0031 {NAMES['c0031']}: 1.41× (1.39–1.43), promoted, 97 % sure",
        ),
        (replace(DONE, outcome=MODELLED), f"r3 c0031 {NAMES['c0031']}: 1.41× modelled, promoted: +6 % over c0012"),
        (
            replace(DONE, outcome=MODELLED, reason="-0.2 % over c0004 (modelled)"),
            f"r3 c0031 {NAMES['c0031']}: 1.41× modelled, promoted: -0.2 % over c0004",
        ),
        (
            RungCompleted("c0002", 1, WRONG, Decision.REJECT, "error 0.34", None, False),
            "r1 c0002: rejected: error 0.34 (wrong_values)",
        ),
        (
            RungCompleted("c0031", 0, UNTIMED, Decision.SET_ASIDE, "the device was lost", None, False),
            f"r0 c0031 {NAMES['c0031']}: set aside: the device was lost",
        ),
        (CandidateAdmitted(CROSSOVER, 1, "d"), "new c0040 both ideas from c0012 and c0031 (llm qwen)"),
        (
            ProposalsMade("rewrites", "c0031", 3, 2, True, 0.1),
            "rewrites proposed 3 new from c0031, 2 known already, has no more",
        ),
        (ProblemOpened(ProblemReport(None)), "problem opened: no known family"),
        (CommandAccepted(1, CommandKind.PRUNE, "c0012"), "command prune c0012"),
        (CommandAccepted(1, CommandKind.SUBMIT, "import triton\n...", "mine"), "command submit a kernel; mine"),
        (RunEnded(EndReason.EXHAUSTED, ""), "end: exhausted"),
        (RunResumed(Budget(wall_s=90), "after a kill"), "resume with budget 1m30s; after a kill"),
    ],
)  # fmt: skip
def test_subject_says_what_happened(event, line):
    assert subject(event, NAMES) == line


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (Budget(), "no limit"),
        (Budget(600, 200, 60), "budget 10m, 200 candidates, 1m of GPU"),
        (Budget(gpu_s=2.5), "budget 2.5s of GPU"),
        (Budget(5400, 1), "budget 1h30m, 1 candidate"),
    ],
)
def test_budget_reads_as_a_person_gave_it(budget, text):
    assert budget_text(budget) == text
