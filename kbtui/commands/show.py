"""ls, status, show, diff, log, best, export, prompt: what the store holds, as text or JSON. Effects: reads it."""

import difflib
import json
import sys
from pathlib import Path
from typing import Any

from kbtui.commands.where import brief_result, open_reader, pick_candidate, pick_run
from kbtui.console import tell
from kbtui.domain.codec import to_plain
from kbtui.domain.event import RungCompleted
from kbtui.domain.wording import counted
from kbtui.errors import ExitCode
from kbtui.leaving.software import in_brief
from kbtui.result import RunResult, ended_words, headline
from kbtui.scheduler.basis import basis_words
from kbtui.scheduler.score import score_of, score_words
from kbtui.scheduler.shrinkage import shrinkage_words, shrinkages


def result_json(result: RunResult, git_dir: str) -> str:
    return json.dumps({**to_plain(result), "repository": git_dir, "headline": headline(result)}, indent=2)


def list_runs(workspace: Path, as_json: bool) -> ExitCode:
    rows = open_reader(workspace).runs()
    if as_json:
        print(json.dumps([to_plain(row) for row in rows], indent=2))
        return ExitCode.DONE
    for row in rows:
        best = f"{row.best_score:.2f}× over first" if row.best_score else "nothing timed"
        begun = row.started_at[:16].replace("T", " ")
        tried = counted(row.n_candidates, "candidate")
        print(f"{row.run:20} {row.state:10} {best:>17}  {tried:>14}  {row.device} ({row.clock})  {begun} UTC")
    return ExitCode.DONE


def status(workspace: Path, run: str | None, as_json: bool) -> ExitCode:
    reader = open_reader(workspace)
    name = pick_run(reader, run)
    result, engine = brief_result(reader, name), reader.engine()
    if as_json:
        print(json.dumps({"result": to_plain(result), "engine": to_plain(engine)}, indent=2))
        return ExitCode.DONE
    print(f"{name}: {headline(result)}")
    if engine is not None and engine.alive and engine.run == name:
        doing = f"{engine.activity} {engine.candidate or ''}".strip()
        print(f"engine pid {engine.pid}: {doing}; {engine.wall_s:.0f} s spent, {engine.gpu_s:.0f} s of GPU")
    else:
        ended = ended_words(result)
        print(f"ended: {ended}" if ended else f"the engine is not running; go on with: kbtui resume {name}")
    return ExitCode.DONE


def show(workspace: Path, run: str | None, candidate: str, as_json: bool) -> ExitCode:
    """One candidate: where it came from, every rung's outcome and reason, then its code."""
    reader = open_reader(workspace)
    state = reader.state(pick_run(reader, run))
    tried = pick_candidate(state, candidate)
    source = reader.source(tried.commit)
    if as_json:
        results = [to_plain(r) for r in tried.results.values()]
        shown: dict[str, Any] = {"candidate": to_plain(tried.candidate), "commit": tried.commit, "results": results}
        shown["environment"] = dict(state.started.environment) if state.started else {}
        print(json.dumps({**shown, "source": source}, indent=2))
        return ExitCode.DONE
    origin = tried.candidate.origin
    made = f"{origin.generator}/{origin.operator}" + (f", hint {origin.hint}" if origin.hint else "")
    print(f"{tried.candidate.id} {tried.candidate.summary}  ({made})")
    print(f"commit {tried.commit}, parents {', '.join(tried.candidate.parents) or 'none'}")
    if not tried.results:
        print(f"  not tried{' before the run ended' if state.ended else ' yet'}: nothing is known of it")
    for result in tried.results.values():
        print(f"  rung {result.rung}: {result.decision}: {result.reason}{_timings(result)}{_basis(result)}")
    if (score := score_of(tried)) is not None:
        print(f"  {score_words(score)}")
    for shrinkage in shrinkages(tried):
        print(f"  screened at {shrinkage_words(shrinkage)}")
    if state.started and (ran_with := in_brief(dict(state.started.environment))):
        print(f"  run with {ran_with}, on {state.started.device.name}")
    for note in tried.candidate.notes:
        print(f"  note: {note}")
    print(f"\n{source}")
    return ExitCode.DONE


def _timings(result: RungCompleted) -> str:
    measurement = result.outcome.measurement
    if measurement is None:
        return ""
    times = ", ".join(f"{t.shape} {t.device_us:.1f} µs" for t in measurement.timings)
    return f"\n          {measurement.clock}: {times}"


def _basis(result: RungCompleted) -> str:
    return "".join(f"\n          {told}" for told in basis_words(result.basis)) if result.basis else ""


def diff(workspace: Path, run: str | None, old: str, new: str) -> ExitCode:
    """A unified diff between two candidates on stdout."""
    reader = open_reader(workspace)
    state = reader.state(pick_run(reader, run))
    before, after = pick_candidate(state, old), pick_candidate(state, new)
    if before.candidate.id == after.candidate.id:
        tell(f"both are {before.candidate.id}: no difference")
    lines = difflib.unified_diff(
        reader.source(before.commit).splitlines(keepends=True),
        reader.source(after.commit).splitlines(keepends=True),
        f"{before.candidate.id}/kernel.py",
        f"{after.candidate.id}/kernel.py",
    )
    sys.stdout.writelines(lines)
    return ExitCode.DONE


def log(workspace: Path, run: str | None, as_json: bool) -> ExitCode:
    """The run's story, one event a line, oldest first."""
    from kbtui.domain.codec import envelope_to_plain
    from kbtui.engine.telling import line_of
    from kbtui.scheduler.state import RunState

    reader = open_reader(workspace)
    envelopes = reader.envelopes(pick_run(reader, run))
    if as_json:
        for envelope in envelopes:
            print(json.dumps(envelope_to_plain(envelope)))
        return ExitCode.DONE
    state = RunState()
    for envelope in envelopes:
        state.apply(envelope)
        print(f"{envelope.wall_s:8.1f}s  {line_of(envelope.event, state)}")
    return ExitCode.DONE


def best(workspace: Path, run: str | None, as_json: bool) -> ExitCode:
    """The champion; exit 1 where nothing better than the first kernel was found."""
    from kbtui.commands.run import print_result

    reader = open_reader(workspace)
    result = brief_result(reader, pick_run(reader, run))
    print_result(workspace, result, as_json)
    return ExitCode.DONE if result.better else ExitCode.NOTHING_BETTER


def prompt(workspace: Path, run: str | None, candidate: str) -> ExitCode:
    """The prompt that would ask a model to improve this candidate, for any model or person to answer."""
    from hints import load_hints
    from kbtui.domain.proposal import Phase
    from kbtui.engine.requests import proposal_request
    from kbtui.engine.session import hint_chooser
    from kbtui.generation.prompt import build_prompt
    from kbtui.problems import load_problem
    from kbtui.scheduler.actions import Propose

    reader = open_reader(workspace)
    state = reader.state(pick_run(reader, run))
    tried = pick_candidate(state, candidate)
    assert state.started is not None
    problem = load_problem(state.started.problem_path)
    action = Propose("llm", tried.candidate.id, Phase.NARROW, 1, "asked by hand")
    hints = hint_chooser(problem, load_hints())(state, action)
    request = proposal_request(state, action, problem, lambda c: reader.source(state.tried[c].commit), hints)
    print(build_prompt(request))
    return ExitCode.DONE
