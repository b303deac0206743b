"""Kept replies meet as many rewrites of the same question, and what became of each is counted as it was."""

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.llm_contest import (
    LLM,
    REWRITES,
    Contest,
    answers,
    counts,
    judged,
    kept_rows,
    merge,
    read_questions,
    request_from_plain,
    request_to_plain,
)
from benchmarks.llm_replies import kept_replies
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import Evaluated, RungOutcome
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome
from kbtui.domain.verdict import Proof, Reason, rejected, verified
from kbtui.evaluation.devices.cuda_gates import Gated
from kbtui.generation.prompt import build_prompt

ASKED = Path(__file__).parents[1] / "data" / "llm_replies" / "asked"


class Scripted:
    """A device on which every kernel is right; times come from a list of outcomes, one a look."""

    def __init__(self, *looks: Outcome | None) -> None:
        self.looks = list(looks)

    def evaluate(self, request, on_sample):
        if request.rung.max_pairs == 0:
            return Evaluated(RungOutcome(verified(request.rung.gate_stage, Proof.GPU, "37 checks"), 0.0, 0.0))
        look = self.looks.pop(0)
        if look is None:
            return Evaluated(RungOutcome(rejected(Reason.WRONG_VALUES, 4, Proof.GPU, "late"), 0.0, 0.0))
        found = Comparison(request.incumbent.id, look, 1.1, 1.0, 1.2, 0.9, 12, request.rung.process_pairs)
        measured = Measurement(Clock.MEASURED, (), (found,))
        return Evaluated(RungOutcome(verified(4, Proof.GPU), 0.0, 0.0, measurement=measured))


PASSED = verified(4, Proof.GPU, "37 checks")


class GatesLater(Scripted):
    """Also gates many: what is ``wrong`` at once, all others when asked to finish."""

    def __init__(self, wrong: str, *looks: Outcome | None) -> None:
        super().__init__(*looks)
        self.wrong, self.waiting, self.spec = wrong, [], DATA_SHEETS["h200"]

    def whole_gates(self, seed: int, alone: bool) -> "GatesLater":
        assert alone
        return self

    def put(self, name: str, source: str) -> list[Gated]:
        if source == self.wrong:
            return [Gated(name, rejected(Reason.WRONG_VALUES, 1, Proof.GPU, "wrong"))]
        self.waiting.append(Gated(name, PASSED, 5.0))
        return []

    def finish(self) -> list[Gated]:
        found, self.waiting = self.waiting, []
        return found


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """Every fifth kept reply, and what was asked."""
    folder = tmp_path_factory.mktemp("asked")
    for path in (ASKED / "questions.json", *sorted(ASKED.glob("*-*.json"))[::5]):
        shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def every(some):
    return list(answers(some))


def test_every_reply_is_there_once_beside_one_rewrite_of_its_question(every, some):
    replies = [a for a in every if a.generator == LLM]

    assert sorted(a.label for a in replies) == sorted(name for name, _ in kept_replies(some))
    for question in {(a.problem, a.question) for a in every}:
        mine = [a.generator for a in every if (a.problem, a.question) == question]
        assert mine.count(REWRITES) <= mine.count(LLM)
    assert sum(a.generator == REWRITES for a in every) >= 0.9 * len(replies)
    assert len({a.key for a in every}) == len(every)


def test_a_question_comes_back_from_its_file_as_it_was_asked():
    for request in read_questions(ASKED):
        assert request_from_plain(json.loads(json.dumps(request_to_plain(request)))) == request
        assert request.diagnosis is not None
        assert request.diagnosis.sentence in build_prompt(request)


def test_who_leads_once_is_looked_at_again_in_fresh_processes(every):
    answer = next(a for a in every if a.source is not None)

    assert judged(Scripted(Outcome.SLOWER), answer, PASSED)["outcome"] == "slower"
    assert judged(Scripted(Outcome.UNCLEAR), answer, PASSED)["outcome"] == "unclear"
    found = judged(Scripted(Outcome.FASTER, Outcome.TIE), answer, PASSED)
    assert (found["outcome"], found["processes"]) == ("tie", 3)
    assert judged(Scripted(Outcome.FASTER, None), answer, PASSED)["reason"] == "wrong_values"


def test_all_are_gated_before_any_that_passed_is_timed(every):
    first, second, third = [a for a in every if a.source is not None][:3]
    device = GatesLater(first.source or "", Outcome.SLOWER, Outcome.TIE)
    contest = Contest(None, {})

    for answer in (first, second, third):
        contest.play(device, answer)
    assert [row["label"] for row in contest.rows] == [first.label]
    assert contest.rows[0]["verdict"] == "rejected"
    contest.settle(device)
    assert [(row["label"], row["outcome"]) for row in contest.rows[1:]] == [
        (second.label, "slower"), (third.label, "tie"),
    ]  # fmt: skip
    contest.settle(device)
    assert len(contest.rows) == 3


def test_who_passed_but_found_no_time_to_be_timed_is_left_for_another_call(every):
    answer = next(a for a in every if a.source is not None)
    contest = Contest(None, {}, until=0.0)
    device = GatesLater("", Outcome.SLOWER)
    contest.play(device, answer)
    contest.settle(device)
    assert contest.rows == []


def test_what_was_found_is_kept_and_only_our_own_failures_are_tried_again(every, tmp_path):
    answer = next(a for a in every if a.source is not None)
    contest = Contest(tmp_path / "out.json", {})

    contest.keep(_row(answer, "verified", "ok", outcome="faster"))
    contest.keep(_row(replace(answer, label="other"), "unverified", "harness_failed"))
    contest.keep(_row(replace(answer, label="third"), "rejected", "wrong_values"))

    assert {key[3] for key in kept_rows(tmp_path / "out.json")} == {answer.label, "third"}
    counted = counts(contest.rows)[answer.generator]
    assert (counted["answers"], counted["verified"], counted["faster"]) == (3, 1, 1)
    assert counted["failed"] == {"unverified: harness_failed": 1, "rejected: wrong_values": 1}


def test_what_several_calls_found_is_put_together(every, tmp_path):
    answer = next(a for a in every if a.source is not None)
    for name, verdict in (("a.json", "unverified"), ("b.json", "verified")):
        contest = Contest(tmp_path / name, {"device": name})
        contest.keep(_row(answer, verdict, "ok"))

    merge(argparse.Namespace(files=[tmp_path / "a.json", tmp_path / "b.json"], out=tmp_path / "all.json"))

    found = json.loads((tmp_path / "all.json").read_text())
    assert [call["device"] for call in found["calls"]] == ["a.json", "b.json"]
    assert [row["verdict"] for row in found["answers"]] == ["verified"]


def _row(answer, verdict: str, reason: str, **more: str) -> dict:
    return {"generator": answer.generator, "problem": answer.problem, "question": answer.question,
            "label": answer.label, "verdict": verdict, "reason": reason, "detail": "", **more}  # fmt: skip
