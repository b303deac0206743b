"""The loop: take the scheduler's next action, carry it out, record what happened. Effects: through its ports."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from kbtui.domain.candidate import Attachment, Proposal, source_sha
from kbtui.domain.event import (
    CandidateAdmitted,
    CommandAccepted,
    CommandKind,
    EndReason,
    Envelope,
    Event,
    ProblemOpened,
    ProposalsMade,
    RunEnded,
    RungCompleted,
)
from kbtui.domain.problem import Problem
from kbtui.domain.proposal import Hint, ProposalRequest, Receipt
from kbtui.domain.rung import COMPILE
from kbtui.engine.acceptance import accepted
from kbtui.engine.admission import candidate_of, first_kernel, submission, trailers
from kbtui.engine.meter import Meter
from kbtui.engine.ports import Costly, Device, Generator, Ledger, Stoppable
from kbtui.engine.pulse import Activity, Pulse
from kbtui.engine.requests import evaluation_request, proposal_request
from kbtui.errors import DiskFullError, KbtuiError, UsageError
from kbtui.scheduler.actions import Action, AdmitFirst, Evaluate, Finish, Propose, Wait
from kbtui.scheduler.best import best_commit_with
from kbtui.scheduler.budget import rung_within
from kbtui.scheduler.fingerprint import structure_of
from kbtui.scheduler.judge import judge
from kbtui.scheduler.policy import DEFAULT_POLICY, Policy
from kbtui.scheduler.queue import entry_rung, next_action
from kbtui.scheduler.state import RunState

HintChooser = Callable[[RunState, Propose], tuple[Hint, ...]]
Narrator = Callable[[Envelope, RunState], None]
#: What is wrong with the room on the disk, in one line; None where there is enough.
Room = Callable[[], str | None]

Written = TypeVar("Written")

PAUSE_POLL_S = 0.2

_log = logging.getLogger(__name__)


class Engine:
    """Runs one search. Its state is the fold of the ledger, so a new Engine goes on where the last stopped."""

    def __init__(
        self,
        problem: Problem,
        ledger: Ledger,
        device: Device,
        generators: dict[str, Generator],
        choose_hints: HintChooser,
        meter: Meter,
        narrate: Narrator,
        policy: Policy = DEFAULT_POLICY,
        room: Room = lambda: None,
    ) -> None:
        self._problem = problem
        self._ledger = ledger
        self._device = device
        self._generators = generators
        self._choose_hints = choose_hints
        self._meter = meter
        self._narrate = narrate
        self._policy = policy
        self._room = room
        self._sources: dict[str, str] = {}
        self.interrupted: str | None = None
        self._given_up = False
        self._answering = False
        self._show: Callable[[Activity], None] = lambda activity: None
        self.state = RunState()
        for envelope in ledger.events():
            self.state.apply(envelope)

    def interrupt(self, why: str) -> None:
        """End the run after the current evaluation, and a generator's answer at once. May come from a signal."""
        self.interrupted = why
        self._stop_generators()

    def run(self, opened: Callable[[], None] = lambda: None) -> RunEnded:
        """Until the budget is spent, the user stops it or nothing is left to try. ``opened``: the problem is open.

        Raises KbtuiError where it cannot go on (a reference that raises, no device).
        """
        pulse = Pulse(self._ledger, self._meter, self._end_long_answers)
        self._show = pulse.show
        try:
            self._open(pulse)
            opened()
            while True:
                self._take_commands()
                action = self._next_action()
                if not isinstance(action, Finish) and (full := self._room()):
                    self._await_room(full, pulse)
                    continue
                match action:
                    case AdmitFirst():
                        self._admit(first_kernel(self._problem), None)
                    case Evaluate() as action:
                        self._evaluate(action, pulse)
                    case Propose() as action:
                        self._propose(action, pulse)
                    case Wait(why):
                        pulse.show(Activity(why))
                        time.sleep(PAUSE_POLL_S)
                    case Finish(reason, detail):
                        self._check_begun(reason)
                        ended = RunEnded(reason, detail)
                        self._record(ended)
                        return ended
        finally:
            pulse.close()

    def give_up(self, ended: RunEnded) -> None:
        """Record that the run cannot go on. Raises DiskFullError rather than wait for room."""
        self._given_up = True
        self._record(ended)

    def _next_action(self) -> Action:
        if self.interrupted:
            return Finish(EndReason.STOPPED, f"interrupted by {self.interrupted}")
        has_first = self._problem.kernel_source is not None
        spent = self._meter.wall_s, self._meter.gpu_s
        return next_action(self.state, *spent, has_first=has_first, policy=self._policy)

    def _open(self, pulse: Pulse) -> None:
        pulse.show(Activity("opening the problem on the device"))
        report = self._device.open(self._problem)
        self._meter.settle(counts=self.state.opened is None)
        if self.state.opened is None:
            self._meter.add_gpu(report.gpu_s)
            self._record(ProblemOpened(report))

    def _check_begun(self, reason: EndReason) -> None:
        """Raises UsageError where a search without a first kernel ends because nothing could draft one."""
        if reason is EndReason.EXHAUSTED and not self.state.tried:
            raise UsageError(
                f"no generator can draft a first kernel of {self._problem.spec.name}",
                "give one with --kernel FILE, or a model that writes one with --model NAME",
            )

    def _await_room(self, full: str, pulse: Pulse) -> None:
        """Nothing is evaluated on a full disk: what fails for want of room would be taken for a kernel's fault."""
        _log.warning("waiting: %s", full)
        pulse.show(Activity(f"waiting: {full}"))
        while self._room() and not isinstance(self._next_action(), Finish):
            self._take_commands()
            time.sleep(PAUSE_POLL_S)

    def _stop_generators(self) -> None:
        for generator in self._generators.values():
            if isinstance(generator, Stoppable):
                generator.stop()

    def _end_long_answers(self) -> None:
        """Once a second, beside the loop: a model may take minutes over an answer that nobody will use any more."""
        if not self._answering:
            return
        limit_s = self.state.budget.wall_s
        over = limit_s is not None and self._meter.wall_s >= limit_s
        if over or self.interrupted or any(c.kind is CommandKind.STOP for c in self._ledger.take_commands()):
            self._stop_generators()

    def _take_commands(self) -> None:
        for command in self._ledger.take_commands():
            self._record(accepted(self.state, command))
        for command in self.state.commands:
            known = self.state.seen.keys() | self.state.open_batch.keys()
            if command.kind is CommandKind.SUBMIT and source_sha(command.argument) not in known:
                self._admit_submission(command)

    def _admit_submission(self, command: CommandAccepted) -> None:
        parent = command.parent if command.parent in self.state.tried else None
        above = self._source(parent) if parent else None
        known = self.state.tried[parent].candidate.structure if parent else None
        structure = structure_of(command.argument, above, known, "person")
        self._admit(submission(command, structure), parent)

    def _admit(self, proposal: Proposal, parent: str | None) -> None:
        number = len(self.state.tried) + len(self.state.open_batch) + 1
        above = self.state.tried[parent] if parent else None
        candidate = candidate_of(number, proposal, parent)
        commit = self._written(
            lambda: self._ledger.commit_candidate(
                number,
                proposal.source,
                (above.commit,) if above else (),
                f"{candidate.id} {candidate.summary}",
                trailers(candidate, self._ledger.run),
            )
        )
        self._sources[candidate.id] = proposal.source
        self._record(CandidateAdmitted(candidate, entry_rung(self.state, above), commit), proposal.attachments)
        self._device.prefetch(proposal.source)

    def _evaluate(self, action: Evaluate, pulse: Pulse) -> None:
        rung = rung_within(self.state, action.rung, self._meter.wall_s, self._meter.gpu_s, self._policy)
        pulse.show(Activity(rung.name, action.candidate, action.rung))
        for waiting in self.state.waiting(COMPILE):
            self._device.prefetch(self._source(waiting.candidate.id))
        request = evaluation_request(self.state, action, self._source, rung)
        start_s = self._meter.wall_s
        evaluated = self._device.evaluate(request, pulse.sample)
        self._meter.settle()
        outcome = replace(evaluated.outcome, wall_s=self._meter.wall_s - start_s)
        self._meter.add_gpu(outcome.gpu_s)
        judgement = judge(self.state, action.candidate, action.rung, outcome, self._policy)
        self._record(
            RungCompleted(
                action.candidate,
                action.rung,
                outcome,
                judgement.decision,
                judgement.reason,
                judgement.score,
                judgement.new_incumbent,
                judgement.basis,
            ),
            evaluated.attachments,
        )

    def _propose(self, action: Propose, pulse: Pulse) -> None:
        pulse.show(Activity(f"asking {action.generator}", action.parent))
        hints = self._choose_hints(self.state, action)
        request = proposal_request(self.state, action, self._problem, self._source, hints)
        start_s, failure = self._meter.wall_s, ""
        try:
            proposals = self._answer(action.generator, request)
        except KbtuiError as error:
            proposals, failure = (), str(error)
        receipt = self._receipt(action.generator)
        for proposal in proposals:
            if source_sha(proposal.source) not in self.state.seen.keys() | self.state.open_batch.keys():
                self._admit(proposal, action.parent)
        self._meter.settle()
        wall_s = self._meter.wall_s - start_s
        fresh = len(self.state.open_batch)
        repeated = max(len(proposals) - fresh, 0)
        self._record(
            ProposalsMade(
                action.generator,
                action.parent,
                fresh,
                repeated,
                exhausted=not proposals and not failure and receipt.exhausted,
                wall_s=wall_s,
                note="; ".join((failure or action.why, *receipt.notes)),
                tokens=receipt.tokens,
                failed=bool(failure),
            ),
            receipt.attachments,
        )

    def _receipt(self, name: str) -> Receipt:
        generator = self._generators[name]
        return generator.receipt() if isinstance(generator, Costly) else Receipt()

    def _answer(self, name: str, request: ProposalRequest) -> tuple[Proposal, ...]:
        generator = self._generators[name]
        self._answering = isinstance(generator, Stoppable)
        try:
            return generator.propose(request)
        finally:
            self._answering = False

    def _record(self, event: Event, attachments: tuple[Attachment, ...] = ()) -> None:
        best = best_commit_with(self.state, event)
        envelope = self._written(
            lambda: self._ledger.append(event, self._meter.wall_s, self._meter.gpu_s, attachments, best)
        )
        self.state.apply(envelope)
        self._narrate(envelope, self.state)

    def _written(self, write: Callable[[], Written]) -> Written:
        """What ``write`` writes, as soon as there is room for it: the room may go between a look at it and a write."""
        while True:
            try:
                return write()
            except DiskFullError as full:
                if self.interrupted or self._given_up:
                    raise
                self._show(Activity(f"waiting: {full}"))
                time.sleep(PAUSE_POLL_S)

    def _source(self, candidate: str) -> str:
        if candidate not in self._sources:
            self._sources[candidate] = self._ledger.source(self.state.tried[candidate].commit)
        return self._sources[candidate]
