"""One engine's life on one run: lock, ledger, device, generators, loop. Effects: all of them, put together here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hints import choose_hints, load_hints
from kbtui.domain.event import Budget, EndReason, RunEnded, RunResumed, RunStarted, Spent
from kbtui.domain.problem import Problem
from kbtui.domain.proposal import Hint
from kbtui.domain.rung import DEFAULT_LADDER
from kbtui.engine.engine import Engine, HintChooser, Narrator
from kbtui.engine.ports import Device, Ledger
from kbtui.engine.replaying import generators_on, meter_on, problem_on, spent_of
from kbtui.engine.requests import diagnosis_of
from kbtui.engine.spec import RunSpec
from kbtui.errors import KbtuiError, UsageError
from kbtui.evaluation.devices import REPLAY, open_device
from kbtui.kernel_file import read_kernel
from kbtui.problems import load_problem
from kbtui.scheduler.actions import Propose
from kbtui.scheduler.state import RunState, Tried, problem_sha
from store.lock import EngineLock
from store.record import Checkpoint, create_run, no_checkpoint, open_run
from store.workspace import Workspace, create_workspace, open_workspace

HINTS_A_QUESTION = 4


@dataclass(frozen=True, slots=True)
class Session:
    engine: Engine
    ledger: Ledger
    device: Device


@contextmanager
def open_session(spec: RunSpec, narrate: Narrator, checkpoint: Checkpoint = no_checkpoint) -> Iterator[Session]:
    """The run named or described by ``spec``, locked and ready to go. Raises KbtuiError in one line.

    ``checkpoint`` is told each step of recording an event, so that a test can stop the process there.
    """
    root = Path(spec.workspace)
    workspace = open_workspace(root) if spec.run else create_workspace(root, Path(spec.repo) if spec.repo else None)
    with EngineLock(workspace.lock).acquire(spec.run or "") as lock:
        begin = _resume if spec.run else _start
        opened = begin(spec, workspace, checkpoint)
        with opened as (problem, ledger, device):
            lock.name_run(ledger.run)
            started = _started(ledger)
            generators = generators_on(device, started, spec.ollama_host)
            meter = meter_on(device, spent_of(ledger, started))
            yield Session(
                Engine(problem, ledger, device, generators, hint_chooser(problem, load_hints()), meter, narrate),
                ledger,
                device,
            )


def run_session(
    spec: RunSpec,
    ready: Callable[[str], None],
    narrate: Narrator,
    hook: Callable[[Engine], None],
    *,
    checkpoint: Checkpoint = no_checkpoint,
) -> RunState:
    """Run to the end and return the final state. ``ready`` is told the run's name; ``hook`` gets the engine once."""
    with open_session(spec, narrate, checkpoint) as session:
        ready(session.ledger.run)
        hook(session.engine)
        try:
            session.engine.run()
        except KbtuiError as error:
            session.engine.give_up(RunEnded(EndReason.FAILED, str(error)))
            raise
        return session.engine.state


@contextmanager
def _start(spec: RunSpec, workspace: Workspace, checkpoint: Checkpoint) -> Iterator[tuple[Problem, Ledger, Device]]:
    problem = load_problem(spec.problem)
    if spec.kernel:
        problem = replace(problem, kernel_source=read_kernel(Path(spec.kernel)))
    if "llm" in spec.generators and not spec.model and not spec.device.startswith(REPLAY):
        raise UsageError("the llm generator needs a model", "name one that Ollama has: --model NAME")
    device = open_device(spec.device, workspace.root)
    try:
        problem = problem_on(device, problem)
        started = RunStarted(
            run="",
            problem=problem.spec.name,
            problem_path=problem.path,
            problem_sha=problem_sha(problem),
            device=device.spec,
            seed=spec.seed,
            budget=spec.budget,
            generators=spec.generators,
            model=spec.model,
            child_entry=spec.child_entry,
            ladder=DEFAULT_LADDER,
            kernel_path=spec.kernel,
        )
        ledger = create_run(workspace, started, checkpoint=checkpoint)
        try:
            yield problem, ledger, device
        finally:
            ledger.close()
    finally:
        device.close()


@contextmanager
def _resume(spec: RunSpec, workspace: Workspace, checkpoint: Checkpoint) -> Iterator[tuple[Problem, Ledger, Device]]:
    assert spec.run is not None
    ledger = open_run(workspace, spec.run, checkpoint=checkpoint)
    try:
        started = _started(ledger)
        spent = spent_of(ledger, started)
        budget = resumed_budget(_fold(ledger), spec, spent)
        device = open_device(started.device.key, workspace.root)
        try:
            problem = _same_problem(started, device)
            if device.spec.name != started.device.name:
                raise UsageError(
                    f"run {spec.run} was measured on {started.device.name}, this is {device.spec.name}",
                    "start a new run here: times of two chips cannot be compared",
                )
            ledger.append(RunResumed(budget, "taken up again"), spent.wall_s, spent.gpu_s)
            yield problem, ledger, device
        finally:
            device.close()
    finally:
        ledger.close()


def resumed_budget(state: RunState, spec: RunSpec, spent: Spent) -> Budget:
    """What a resumed run may spend in all: a budget given now counts from now on, else what is left of the old one.

    Raises UsageError where nothing is left.
    """
    if spec.budget_given:
        more = spec.budget
        return Budget(
            wall_s=spent.wall_s + more.wall_s if more.wall_s is not None else None,
            candidates=len(state.tried) + more.candidates if more.candidates is not None else None,
            gpu_s=spent.gpu_s + more.gpu_s if more.gpu_s is not None else None,
        )
    if state.ended is not None and state.ended.reason is EndReason.BUDGET:
        raise UsageError(f"run {spec.run} has spent its budget ({state.ended.detail})", "give it more: --budget 10m")
    return state.budget


def _same_problem(started: RunStarted, device: Device) -> Problem:
    problem = problem_on(device, load_problem(started.problem_path))
    if started.kernel_path:
        problem = replace(problem, kernel_source=read_kernel(Path(started.kernel_path)))
    if problem_sha(problem) != started.problem_sha:
        raise UsageError(
            f"the problem at {started.problem_path} has changed since run {started.run} began",
            "put it back as it was, or start a new run",
        )
    return problem


def _started(ledger: Ledger) -> RunStarted:
    first = next(iter(ledger.events())).event
    assert isinstance(first, RunStarted)
    return first


def _fold(ledger: Ledger) -> RunState:
    state = RunState()
    for envelope in ledger.events():
        state.apply(envelope)
    return state


def hint_chooser(problem: Problem, hints: tuple[Hint, ...]) -> HintChooser:
    """Chooses the hints for a question from its parent's diagnosis and from how hints have fared in this run."""

    def choose(state: RunState, action: Propose) -> tuple[Hint, ...]:
        family = problem.spec.family or (state.opened.report.family if state.opened else None)
        diagnosis = diagnosis_of(state, action.parent) if action.parent else None
        return choose_hints(hints, family, diagnosis, action.phase, hint_outcomes(state), HINTS_A_QUESTION)

    return choose


def hint_outcomes(state: RunState) -> tuple[tuple[str, bool], ...]:
    """(hint, whether its candidate scored above its parent) for every judged candidate that a hint led to."""
    return tuple(
        (hint, _gained(state, tried))
        for tried in state.tried.values()
        if (hint := tried.candidate.origin.hint) and tried.last is not None and tried.waiting_at is None
    )


def _gained(state: RunState, tried: Tried) -> bool:
    parent = state.tried.get(tried.candidate.parents[0]) if tried.candidate.parents else None
    return (tried.score or 0.0) > ((parent.score if parent else None) or 1.0)
