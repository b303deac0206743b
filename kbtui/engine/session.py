"""One engine's life on one run: lock, ledger, device, generators, loop. Effects: all of them, put together here."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hints import choose_hints, load_hints
from kbtui.domain.event import Budget, CommandKind, EndReason, RunEnded, RunResumed, RunStarted, Spent
from kbtui.domain.problem import Problem
from kbtui.domain.proposal import Hint
from kbtui.domain.rung import DEFAULT_LADDER
from kbtui.engine.engine import Engine, HintChooser, Narrator
from kbtui.engine.ports import Device, Ledger
from kbtui.engine.quiet import QuietDevice, packing_between
from kbtui.engine.replaying import generators_on, meter_on, problem_on, spent_of
from kbtui.engine.requests import diagnosis_of
from kbtui.engine.spec import RunSpec
from kbtui.engine.vetted import refuse_unsound
from kbtui.errors import DeviceError, EngineError, KbtuiError, UsageError
from kbtui.evaluation.devices import REPLAY, open_device
from kbtui.evaluation.devices.environment import environment_of
from kbtui.kernel_file import with_kernel
from kbtui.problems import load_problem
from kbtui.room import need_room, room_on
from kbtui.scheduler.actions import Propose
from kbtui.scheduler.state import RunState, Tried, problem_sha
from store.lock import EngineLock
from store.packing import Packer, pack
from store.record import Checkpoint, create_run, no_checkpoint, open_run
from store.tidying import bound_cache, sweep
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
    need_room(root)
    workspace = open_workspace(root) if spec.run else create_workspace(root, Path(spec.repo) if spec.repo else None)
    with EngineLock(workspace.lock).acquire(spec.run or "") as lock:
        sweep(workspace)
        bound_cache(workspace.cache / "compiled")
        begin = _resume if spec.run else _start
        opened = begin(spec, workspace, checkpoint)
        with opened as (problem, ledger, device), closing(Packer(workspace)) as packer:
            lock.name_run(ledger.run)
            started = _started(ledger)
            generators = generators_on(device, started, spec)
            meter = meter_on(device, spent_of(ledger, started))
            choose, room = hint_chooser(problem, load_hints()), room_on(workspace.root)
            told = packing_between(narrate, packer)
            engine = Engine(problem, ledger, QuietDevice(device, packer), generators, choose, meter, told, room=room)
            yield Session(engine, ledger, device)
        with suppress(KbtuiError):  # nothing is timed any more; a repository left loose is none the worse
            pack(workspace)


def run_session(
    spec: RunSpec,
    ready: Callable[[str], None],
    narrate: Narrator,
    hook: Callable[[Engine], None],
    opened: Callable[[], None] = lambda: None,
    *,
    checkpoint: Checkpoint = no_checkpoint,
) -> RunState:
    """Run to the end and return the final state.

    ``ready`` is told the run's name, ``hook`` gets the engine once, ``opened`` is called when the problem is open.
    Raises KbtuiError, and nothing else: of a defect of ours the traceback goes into the engine's log.
    """
    try:
        with open_session(spec, narrate, checkpoint) as session:
            ready(session.ledger.run)
            hook(session.engine)
            return _run(session, opened)
    except KbtuiError:
        raise
    except Exception as error:
        raise _defect(error, Path(spec.workspace) / "engine.log") from error


def _run(session: Session, opened: Callable[[], None]) -> RunState:
    try:
        session.engine.run(opened)
    except Exception as error:
        stopped = session.engine.interrupted
        told = RunEnded(EndReason.STOPPED, f"interrupted by {stopped}") if stopped else None
        with suppress(Exception):  # what cannot be recorded now is what is being raised
            session.engine.give_up(told or RunEnded(EndReason.FAILED, _first_line(error)))
        if not (stopped and isinstance(error, KbtuiError)):
            raise
    return session.engine.state


def _defect(error: Exception, log: Path) -> KbtuiError:
    with suppress(OSError), log.open("a") as file:
        traceback.print_exception(error, file=file)
    if isinstance(error, OSError):
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return EngineError(f"the engine cannot go on: {what}", "mend that, then `kbtui resume`")
    return EngineError(
        f"a defect of kbtui: {type(error).__name__}: {_first_line(error)}", f"please report it with {log}"
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def check_model(generators: tuple[str, ...], model: str | None, spec: RunSpec) -> None:
    """Before a run begins. Raises DeviceError where no server answers, UsageError where it has not got the model."""
    if "llm" not in generators:
        return
    if not model:
        raise UsageError("the llm generator needs a model", "name one that the server has: --model NAME")
    from kbtui.generation.llm import make_chat  # httpx is slow to import, and most runs ask no model

    held = make_chat(spec.ollama_host, spec.llm_url).list_models()
    if model not in held and f"{model}:latest" not in held:
        has = f"it has {', '.join(held[:8])}" if held else "it has none"
        if spec.llm_url:
            raise UsageError(f"{spec.llm_url} has no model {model!r}", f"name one of its own: {has}")
        raise UsageError(f"the model {model!r} is not pulled", f"run `ollama pull {model}`; {has}")


@contextmanager
def _start(spec: RunSpec, workspace: Workspace, checkpoint: Checkpoint) -> Iterator[tuple[Problem, Ledger, Device]]:
    kernel = Path(spec.kernel) if spec.kernel else None
    problem = with_kernel(load_problem(spec.problem), kernel)
    if not spec.device.startswith(REPLAY):
        check_model(spec.generators, spec.model, spec)
    device = open_device(spec.device, workspace.root)
    try:
        problem = problem_on(device, problem, kernel)
        if not spec.unvetted:
            refuse_unsound(device, problem, workspace.root)
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
            unvetted=spec.unvetted,
            environment=environment_of(device.spec),
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
        if not started.device.key.startswith(REPLAY):
            check_model(started.generators, started.model, spec)
        device = _device_again(started, workspace)
        try:
            if device.spec.name != started.device.name:
                raise UsageError(
                    f"run {spec.run} was measured on {started.device.name}, this is {device.spec.name}",
                    "start a new run here: times of two chips cannot be compared",
                )
            problem = _same_problem(started, device)
            _settle_old_commands(ledger, spent)
            ledger.append(RunResumed(budget, "taken up again", environment_of(device.spec)), spent.wall_s, spent.gpu_s)
            yield problem, ledger, device
        finally:
            device.close()
    finally:
        ledger.close()


def _device_again(started: RunStarted, workspace: Workspace) -> Device:
    """The device that a run began on: no other will do."""
    try:
        return open_device(started.device.key, workspace.root)
    except DeviceError as error:
        where = f"a run on {started.device.name} goes on where there is one"
        raise DeviceError(error.what, f"{where}; kbtui doctor says what is here") from None


def _settle_old_commands(ledger: Ledger, spent: Spent) -> None:
    """A stop or pause that came too late for the engine before this one is not meant for the resumed run."""
    for command in ledger.take_commands():
        if command.kind in (CommandKind.STOP, CommandKind.PAUSE):
            ledger.append(command, spent.wall_s, spent.gpu_s)


def resumed_budget(state: RunState, spec: RunSpec, spent: Spent) -> Budget:
    """What a resumed run may spend in all: a budget given now counts from now on, else what is left of the old one.

    Raises UsageError where nothing is left.
    """
    if spec.budget_given:
        more = spec.budget
        used_tokens = sum(got.tokens for got in state.yields.values())
        return Budget(
            wall_s=spent.wall_s + more.wall_s if more.wall_s is not None else None,
            candidates=len(state.tried) + more.candidates if more.candidates is not None else None,
            gpu_s=spent.gpu_s + more.gpu_s if more.gpu_s is not None else None,
            llm_tokens=used_tokens + more.llm_tokens if more.llm_tokens is not None else None,
        )
    if state.ended is not None and state.ended.reason is EndReason.BUDGET:
        raise UsageError(f"run {spec.run} has spent its budget ({state.ended.detail})", "give it more: --budget 10m")
    return state.budget


def _same_problem(started: RunStarted, device: Device) -> Problem:
    kernel = Path(started.kernel_path) if started.kernel_path else None
    problem = problem_on(device, load_problem(started.problem_path), kernel)
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
        arch = state.started.device.arch if state.started else None
        return choose_hints(hints, family, diagnosis, action.phase, hint_outcomes(state), HINTS_A_QUESTION, arch)

    return choose


def hint_outcomes(state: RunState) -> tuple[tuple[str, bool], ...]:
    """(hint, whether its candidate gained on its parent) for every judged candidate that a hint led to."""
    return tuple(
        (hint, _gained(state, tried))
        for tried in state.tried.values()
        if (hint := tried.candidate.origin.hint) and tried.last is not None and tried.waiting_at is None
    )


def _gained(state: RunState, tried: Tried) -> bool:
    """Above its parent on the highest rung that scored both; one without a parent, above the first kernel.

    Scores of two rungs are of different shapes: neither is above the other.
    """
    own = _scores(tried)
    parent = state.tried.get(tried.candidate.parents[0]) if tried.candidate.parents else None
    if parent is None:
        return max(own.items(), default=(0, 0.0))[1] > 1.0
    theirs = _scores(parent)
    both = own.keys() & theirs.keys()
    return bool(both) and own[max(both)] > theirs[max(both)]


def _scores(tried: Tried) -> dict[int, float]:
    return {rung: result.score for rung, result in tried.results.items() if result.score is not None}
