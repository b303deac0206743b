"""Puts questions to the generators, half of them with hints, and keeps the answers. Effects: generators, recording."""

import time
from dataclasses import dataclass, replace

from benchmarks.recording.questions import Question, next_question
from benchmarks.recording.recording import Asked, Recording
from hints import choose_hints, load_hints
from kbtui.domain.candidate import Candidate, Proposal
from kbtui.domain.codec import to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.pool import PoolCandidate
from kbtui.domain.problem import Problem
from kbtui.domain.profile import Diagnosis
from kbtui.domain.proposal import Hint, Phase, ProposalRequest
from kbtui.engine.ports import Generator

#: Drafts of every structure, about twice, come before anything else; then so many answers to a question.
DRAFTS, ANSWERS = 14, 2
HINTS_A_QUESTION = 4


@dataclass(frozen=True, slots=True)
class Asker:
    """``family`` is the problem's, as its report has it."""

    problem: Problem
    family: str
    device: DeviceSpec
    generators: dict[str, Generator]
    recording: Recording

    def ask(self) -> bool:
        """Ask until somebody answers; False where nobody does."""
        while (question := next_question(self.recording, tuple(self.generators))) is not None:
            began = time.monotonic()
            found = self._answers(question)
            parent = question.parent.source_sha if question.parent else None
            asked = Asked(question.generator, parent, question.hinted, len(found), time.monotonic() - began)
            self.recording.append("asked", asked, proposals=[to_plain(p) for p in found])
            if found:
                return True
        return False

    def _answers(self, question: Question) -> tuple[Proposal, ...]:
        phase = Phase.NARROW if question.parent else Phase.COARSE
        diagnosis = diagnosis_of(question.parent) if question.parent else None
        hints: tuple[Hint, ...] = ()
        if question.hinted:
            hints = choose_hints(load_hints(), self.family, diagnosis, phase, (), HINTS_A_QUESTION, self.device.arch)
        request = ProposalRequest(
            self.problem, self.family, self.device, _as_candidate(question.parent),
            question.parent.source if question.parent else None, diagnosis, hints, (), self.recording.seen, phase,
            ANSWERS if question.parent else DRAFTS, len(self.recording.asked),
        )  # fmt: skip
        chosen = {h.id for h in hints}
        found = self.generators[question.generator].propose(request)
        return tuple(p if p.origin.hint in chosen else replace(p, origin=replace(p.origin, hint=None)) for p in found)


def diagnosis_of(candidate: PoolCandidate) -> Diagnosis | None:
    """As its highest rung diagnosed it."""
    told = [r.outcome.diagnosis for r in candidate.rungs if r.outcome.diagnosis is not None]
    return told[-1] if told else None


def _as_candidate(parent: PoolCandidate | None) -> Candidate | None:
    if parent is None:
        return None
    return Candidate("parent", parent.source_sha, (), parent.origin, parent.structure, parent.summary, parent.notes)
