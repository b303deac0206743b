"""What it costs to screen a candidate, end to end, and where the time goes.

``python benchmarks/screening.py --candidates 200 --shape 4096x16384 --out FILE`` on a machine with an NVIDIA GPU:
distinct softmax kernels (the playbook over its grid, rewrites of its kernels) go through rungs 0 and 1 as the engine
sends them: policy, compile from an empty cache, stage 1 of the gate, a comparison with the incumbent, sandbox on.
Beside it ``--baseline N`` of them are put through the same checks and the same comparison in a process each, one after
the other, as evaluators do that start Python for every candidate.

Printed and kept: seconds a candidate, the GPU's idle share (NVML's utilisation samples) and how it splits over what
the evaluating thread was waiting for meanwhile (``waits.idle_split``), and seconds a candidate by the call that was
waited for, its checks one by one. ``--spares`` and ``--at-once``: warm children kept, and warmed up side by side.
"""

import argparse
import itertools
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.waits import Trace, Utilisation, idle_split
from kbtui.cores import cores
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import EvaluationRequest, Opponent
from kbtui.domain.measurement import Outcome
from kbtui.domain.problem import Problem, Shape, ShapeRole
from kbtui.domain.proposal import Phase, ProposalRequest
from kbtui.domain.rung import COMPILE, DEFAULT_LADDER, SCREEN
from kbtui.domain.verdict import Proof
from kbtui.engine.ports import Device
from kbtui.evaluation.devices.cuda import QUEUES, CudaDevice
from kbtui.evaluation.gate.clients import CandidateClient, RefereeClient
from kbtui.evaluation.gate.runner import run_stage
from kbtui.evaluation.measure.adjudicate import decide
from kbtui.evaluation.measure.loop import PairSamples, time_pair
from kbtui.evaluation.measure.record import MatchLog
from kbtui.evaluation.measure.schedule import calls_per_block, looks
from kbtui.evaluation.process.worker import Reply
from kbtui.generation.playbook.entry import load_entries
from kbtui.generation.rewrites.propose import Rewrites
from kbtui.problems import load_problem

AHEAD = 24
REWRITTEN = 0.2
WARM_S = 0.01


def problem_at(shape: str) -> Problem:
    """The softmax sample with this shape alone to be timed."""
    problem = load_problem("softmax")
    rows, cols = map(int, shape.split("x"))
    timed = Shape(shape, (("rows", rows), ("cols", cols)))
    others = tuple(s for s in problem.spec.shapes if s.role is not ShapeRole.TUNE)
    return replace(problem, spec=replace(problem.spec, shapes=(timed, *others)))


def sources(n: int, device: DeviceSpec, problem: Problem, seed: int) -> list[str]:
    """Distinct kernels: the playbook over its grid, and rewrites of some of them."""
    rng = random.Random(seed)
    made = [
        entry.instantiate(dict(zip([name for name, _ in entry.grid], values, strict=True)), device, problem.spec)
        for entry in load_entries("row_softmax")
        for values in itertools.product(*(values for _, values in entry.grid))
    ]
    made = rng.sample(sorted(set(made)), min(n, len(set(made))))
    n_rewritten = round(REWRITTEN * n)
    rewritten: list[str] = []
    for parent in made:
        request = ProposalRequest(
            problem,
            "row_softmax",
            device,
            None,
            parent,
            None,
            (),
            (),
            frozenset(),
            Phase.NARROW,
            2,
            rng.getrandbits(32),
        )
        rewritten += [p.source for p in Rewrites().propose(request)]
        if len(rewritten) >= n_rewritten:
            break
    chosen = list(dict.fromkeys([*rewritten[:n_rewritten], *made]))[:n]
    rng.shuffle(chosen)
    return chosen


def screen(
    device: Device, given: list[str], incumbent: Opponent | None, say: Callable[[str], None], at_most_s: float = 3600.0
) -> dict[str, Any]:
    """Every source through rungs 0 and 1, the next ones compiled meanwhile; as JSON. Stops after ``at_most_s``."""
    trace, verdicts = Trace(), Counter[str]()
    rungs: dict[int, list[float]] = {COMPILE: [], SCREEN: []}
    gpu_s, began = 0.0, time.perf_counter()
    with trace.of_calls(), Utilisation(device.spec.uuid) as used:
        for source in given[:AHEAD]:
            device.prefetch(source)
        for i, source in enumerate(given):
            if time.perf_counter() - began > at_most_s:
                break
            for ahead in given[i + AHEAD : i + AHEAD + 1]:
                trace.timed("device.prefetch", lambda ahead=ahead: device.prefetch(ahead))
            for rung in (COMPILE, SCREEN):
                request = EvaluationRequest(
                    f"s{i:04d}", source, DEFAULT_LADDER[rung], 0, rung - 1, incumbent, incumbent
                )
                at = time.perf_counter()
                outcome = device.evaluate(request, lambda _: None).outcome
                rungs[rung].append(time.perf_counter() - at)
                gpu_s += outcome.gpu_s
                if not outcome.verdict.ok:
                    break
            if outcome.measurement and outcome.measurement.comparisons[0].outcome is Outcome.FASTER:
                incumbent = Opponent(f"s{i:04d}", source)  # as the engine's judge would have it
            verdicts[f"{outcome.verdict.reason or outcome.verdict.kind} at rung {rung}"] += 1
            if not outcome.verdict.ok and outcome.verdict.reason not in ("out_of_resources", "compile_error"):
                say(f"candidate {i}: {outcome.verdict}")
    wall_s, n = time.perf_counter() - began, verdicts.total()
    found = {
        "candidates": n,
        "wall_s": round(wall_s, 2),
        "s_a_candidate": round(wall_s / n, 4),
        "gpu_held_s_a_candidate": round(gpu_s / n, 4),
        "gpu_idle_share": used.idle_share,
        "rung_mean_s": {str(r): round(statistics.fmean(t), 4) for r, t in rungs.items() if t},
        "rung_median_s": {str(r): round(statistics.median(t), 4) for r, t in rungs.items() if t},
        "rung_p90_s": {str(r): round(sorted(t)[int(0.9 * (len(t) - 1))], 4) for r, t in rungs.items() if t},
        "verdicts": dict(verdicts),
        "check_mean_s": trace.by_check(),
        "idle_split": idle_split(trace.intervals, used.samples),
        "waited_for": trace.a_candidate(n),
    }
    say(json.dumps({k: v for k, v in found.items() if k not in ("waited_for", "idle_split")}))
    for phase, split in idle_split(trace.intervals, used.samples).items():
        say(f"  idle {split['idle_share']:6.1%} of the time, busy {split['busy_share']:4.0%} of its own: {phase}")
    for name, (seconds, calls) in list(trace.a_candidate(n).items())[:36]:
        say(f"  {seconds * 1e3:8.1f} ms a candidate in {calls:6.2f} calls  {name}")
    return found


class Here:
    """A role's methods called in this very process, for the baseline."""

    def __init__(self, methods: dict[str, Callable[..., Any]]) -> None:
        self._methods = methods

    def call(self, method: str, *, timeout_s: float, payload: bytes | None = None, **params: Any) -> Reply:
        del timeout_s
        params |= {"payload": payload} if payload is not None else {}
        value = self._methods[method](**json.loads(json.dumps(params)) if payload is None else params)
        return Reply(getattr(value, "value", value), getattr(value, "payload", None))


def screen_here(shape: str, path: Path, rival: Path) -> str:
    """The whole of stage 1 and the comparison in this process, compile included. Imports torch and Triton."""
    from kbtui.evaluation.roles import candidate as candidate_role
    from kbtui.evaluation.roles import referee as referee_role

    problem = problem_at(shape)
    referee = referee_role.Referee(())
    judge = RefereeClient(Here({n: getattr(referee, n) for n in dir(referee) if not n.startswith("_")}), problem.spec)
    judge.open(problem)
    judge.make_arena(judge.bytes_needed(problem.spec.shapes, 2))
    clients = []
    for source in (path, rival):
        role = candidate_role.Candidate(())
        role.warm()
        role._arena = referee._arena
        client = CandidateClient(Here({n: getattr(role, n) for n in dir(role) if not n.startswith("_")}), 60.0)
        client.load(source.read_text())
        clients.append(client)
    verdict = run_stage(judge, clients[0], problem.spec, 1, 0, Proof.GPU)
    if not verdict.ok:
        return f"{verdict.reason}"
    timed = problem.spec.shapes[0]
    prepared = judge.prepare(timed, problem.spec.distributions[0], [1, 2])
    for client in clients:
        client.bind(prepared)
        client.warm_up(WARM_S)
    n_calls = calls_per_block(statistics.median(clients[0].timed(4, -1)))
    pairs: list[PairSamples] = []
    log = MatchLog((timed.name,), [{"rival": {timed.name: pairs}}])
    for n_pairs in looks(DEFAULT_LADDER[SCREEN].max_pairs):
        while len(pairs) < n_pairs:
            pairs.append(time_pair(len(pairs), clients[0], clients[1], n_calls, random.Random(0)))
        outcome = decide(log.evidence("rival"), len(looks(DEFAULT_LADDER[SCREEN].max_pairs)))
        if outcome != "unclear":
            break
    return f"verified, {outcome}"


def baseline(shape: str, given: list[str], incumbent: str, say: Callable[[str], None]) -> dict[str, Any]:
    """A fresh Python for every candidate, one after the other."""
    taken, told = [], Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kbtui-baseline-") as folder:
        rival = Path(folder) / "rival.py"
        rival.write_text(incumbent)
        for i, source in enumerate(given):
            path = Path(folder) / f"candidate{i}.py"
            path.write_text(source)
            env = os.environ | {"TRITON_CACHE_DIR": f"{folder}/cache", "KBTUI_DEVICE": "cuda"}
            command = [sys.executable, __file__, "--shape", shape, "--one", str(path), "--rival", str(rival)]
            began = time.perf_counter()
            done = subprocess.run(command, env=env, capture_output=True, text=True)
            taken.append(time.perf_counter() - began)
            told[(done.stdout.strip() or done.stderr.strip()[-200:]).splitlines()[-1]] += 1
    found = {
        "candidates": len(given), "s_a_candidate": round(statistics.fmean(taken), 3),
        "median_s": round(statistics.median(taken), 3), "verdicts": dict(told),
    }  # fmt: skip
    say(f"a process each: {json.dumps(found)}")
    return found


def about(device: DeviceSpec) -> dict[str, Any]:
    query = "name,driver_version,clocks.sm,clocks.mem,power.limit"
    try:
        state = subprocess.run(
            ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True
        ).stdout.strip()
    except OSError:
        state = "no nvidia-smi"
    return {
        "command": f"python benchmarks/screening.py {' '.join(sys.argv[1:])}",
        "date": time.strftime("%Y-%m-%d"),
        "device": device.name,
        "nvidia_smi": state,
        "machine": f"{cores()} cores, Linux {platform.release()}, Python {platform.python_version()}",
        "queues_a_context": os.environ.get(QUEUES, "as kbtui sets them"),
    }


def keep(out: Path | None, found: dict[str, Any]) -> None:
    if out:
        out.write_text(json.dumps(found, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--shape", default="4096x16384")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--baseline", type=int, default=12, help="candidates in a process each")
    parser.add_argument("--spares", type=int, help="warm children kept; by the GPU's memory unless said")
    parser.add_argument("--at-once", type=int, help="of them that warm up side by side; by the cores unless said")
    parser.add_argument("--at-most", type=float, default=3600.0, help="seconds after which no other is screened")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rival", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(screen_here(options.shape, options.one, options.rival))
        return 0
    problem = problem_at(options.shape)
    first = problem.kernel_source or ""

    def say(text: str) -> None:
        print(text, flush=True)

    with tempfile.TemporaryDirectory(prefix="kbtui-screening-") as folder:
        device = CudaDevice(options.device, Path(folder), spares=options.spares, spares_at_once=options.at_once)
        try:
            began = time.perf_counter()
            device.open(problem)
            say(f"opened in {time.perf_counter() - began:.1f} s")
            given = sources(options.candidates, device.spec, problem, options.seed)
            found = about(device.spec)
            found["screening"] = screen(device, given, Opponent("first", first), say, options.at_most)
        finally:
            device.close()
    if options.baseline:
        keep(options.out, found)  # what is had is had
        found["process_per_candidate"] = baseline(options.shape, given[: options.baseline], first, say)
    keep(options.out, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
