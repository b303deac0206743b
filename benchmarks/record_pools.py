"""Record pools for --device replay:POOL on a device: many unlike candidates a sample, each at full fidelity.

usage: python benchmarks/record_pools.py [--device cuda:0] [--samples NAME,NAME] [--seconds 540] [--candidates 42]

One command that resumes: it goes on where the last call stopped, takes the samples in turn (one that was begun before
the others, until --seconds are over) and writes a pool as soon as a sample has all of its candidates; the same call
again and again ends with all pools written. A call that is killed loses the candidate it was at. Calls on two GPUs of
one machine, each with samples of its own, go side by side. Nothing is pruned: every candidate climbs to the confirm
rung, through every stage of the gate, unless it is found wrong, which is kept too. One in twenty is profiled. Half of
the questions to a generator come with hints, half without, so that a replay can tell what hints are worth.

What makes it cheap, and leaves the record what a run would have left: all candidates are asked the gate's questions of
one seed, as those of one run are, so that the referee knows the answers; what comes next compiles ahead for every
stage of the gate; on a GPU another candidate is evaluated while one grows old for the gate's last question; a candidate
clearly behind the fastest gets the fewest pairs; and a confirmation takes turns with the first kernel alone, because a
replay draws the times of either side by itself. One in sixteen meets the best so far and PyTorch too, as a confirmation
of a run does: what that costs more, a replay adds to the others.

Effects: the device; one file of JSON lines a sample in --work, appended to after each candidate; pools in --out.
"""

import argparse
import re
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.recording.questions import is_complete
from benchmarks.recording.recorder import Recorder
from benchmarks.recording.recording import Recording
from benchmarks.recording.speeds import speed_of
from kbtui.domain.evaluation import ProblemReport
from kbtui.domain.pool import PoolHeader
from kbtui.domain.problem import Problem
from kbtui.engine.ports import Device
from kbtui.errors import KbtuiError
from kbtui.evaluation.devices import open_device
from kbtui.evaluation.devices.cuda import CudaDevice
from kbtui.evaluation.devices.environment import environment_of
from kbtui.generation import make_generators
from kbtui.pool_file import write_pool
from kbtui.problems import load_problem, sample_names
from kbtui.scheduler.state import problem_sha

ROOT = Path(__file__).parents[1]
GENERATORS = ("playbook", "rewrites")
#: Candidates under way at a time on a GPU: one has it, the other grows old without it or waits for its compilers.
UNDER_WAY = 2


def header_of(device: Device, problem: Problem, name: str, report: ProblemReport, open_wall_s: float) -> PoolHeader:
    facts = environment_of(device.spec)
    driver = next((value for key, value in facts if "driver" in key), "none")
    at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    return PoolHeader(replace(problem, path=name), problem_sha(problem), device.spec, driver, facts, at,
                      f"record-{name}", 0, report, open_wall_s, ())  # fmt: skip


def record(options: argparse.Namespace, name: str, until: float) -> bool:
    """One sample for the time left; whether its pool is complete. Raises KbtuiError where it cannot be recorded."""
    problem = load_problem(name)
    recording = Recording.read(options.work / f"{name}.jsonl")
    with tempfile.TemporaryDirectory(prefix="kbtui-record-") as scratch:
        device = open_device(options.device, Path(scratch))
        try:
            _check_same(recording, device, problem)
            began = time.monotonic()
            report = device.open(problem)
            if recording.header is None:
                recording.append("header", header_of(device, problem, name, report, time.monotonic() - began))
            at_once = UNDER_WAY if isinstance(device, CudaDevice) else 1
            recorder = Recorder(device, problem, make_generators(GENERATORS), recording, report, _say, at_once)
            recorder.run(options.candidates, lambda: until - time.monotonic())
        finally:
            device.close()
    if not is_complete(recording, options.candidates, GENERATORS):
        return False
    keep_pool(recording, name, options.out)
    return True


def keep_pool(recording: Recording, name: str, folder: Path) -> None:
    pool = recording.pool()
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{name}-{_slug(pool.header.device.name)}-full.jsonl.gz"
    write_pool(out, pool)
    speeds = [s for c in pool.candidates if (s := speed_of(c))]
    failed = sum(not c.highest.outcome.verdict.ok for c in pool.candidates)
    _say(f"{out}: {len(pool.candidates)} candidates, {failed} found wrong, mean {fmean(speeds or [0.0]):.2f}x")


def _check_same(recording: Recording, device: Device, problem: Problem) -> None:
    header = recording.header
    if header is not None and (header.device.name, header.problem_sha) != (device.spec.name, problem_sha(problem)):
        raise SystemExit(f"{recording.path} is of {header.device.name} or of another problem: move it away first")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower().removeprefix("nvidia ")).strip("-")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--samples", default=",".join(sample_names()), help="default: all six")
    parser.add_argument("--seconds", type=float, default=540.0, help="begin no candidate that may not end within these")
    parser.add_argument("--candidates", type=int, default=42, help="of each sample")
    parser.add_argument("--work", type=Path, default=ROOT / "benchmarks/pools/recording")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/pools")
    options = parser.parse_args(words)
    options.work.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + options.seconds
    names = options.samples.split(",")
    found = {n: Recording.read(options.work / f"{n}.jsonl") for n in names}
    complete = [n for n in names if is_complete(found[n], options.candidates, GENERATORS)]
    for name in complete:  # a call that was killed may have left it without a pool
        keep_pool(found[name], name, options.out)
    left = sorted((n for n in names if n not in complete), key=lambda n: (-len(found[n].candidates), names.index(n)))
    done = len(complete)
    for name in left:
        if time.monotonic() >= until:
            break
        try:
            done += record(options, name, until)
        except KbtuiError as error:
            _say(f"{name}: {error}")
    _say(f"{done} of {len(names)} pools are complete" + ("" if done == len(names) else "; call again to go on"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
