"""Effects: runs Nsight Compute around one verified candidate, in a folder of its own, bounded in time.

The profiled program is ``profiling.runner``: the same inputs as the measurement, warmed, then one call inside a
profiler range. Clocks are left alone (``--clock-control none``); caches are flushed between replays (ncu's default),
which is the cold L2 of the measurement.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kbtui.domain.candidate import Attachment
from kbtui.domain.codec import to_plain
from kbtui.domain.problem import Problem, Shape
from kbtui.domain.profile import Profile
from kbtui.evaluation.devices.triton_cache import copy_cache
from kbtui.evaluation.process.sandbox import SandboxPolicy, clean_environment
from kbtui.evaluation.profiling import metrics, permission
from kbtui.evaluation.profiling.integrity import notes_on
from kbtui.evaluation.profiling.ncu_csv import parse_raw_page, profile_of

#: ncu dies with the thread that started it; the runner dies with ncu (it asks for that itself).
_BOOT = "import ctypes,os,sys;ctypes.CDLL(None).prctl(1,9,0,0,0);os.execv(sys.argv[1],sys.argv[1:])"
_MISSING_METRIC = re.compile(r"[Ff]ailed to find metric[s]?:? *(?:regex:)?\[?([\w.,: ]+)")
_EXPORT_TIMEOUT_S = 60.0
_REPORT_BYTES_KEPT = 32 << 20
#: The driver's refusal of counters, by the ncu that met it: the next candidate would wait 10 s to hear the same.
_REFUSED: dict[Path, str] = {}


@dataclass(frozen=True, slots=True)
class NcuRun:
    """What one run of a command left: exit status (None after a timeout) and everything it wrote."""

    status: int | None
    output: str


Run = Callable[[Sequence[str], float, Path], NcuRun]


class Profiler:
    """Profiles verified candidates on one GPU. The caller holds the GPU's lock.

    Args:
        gpu: the device's index as CUDA counts it.
        scratch: where temporary folders are made.
        cache: Triton's cache with the candidate's compiled kernels, if there is one.
        confine: whether the runner sandboxes itself before it imports the candidate.
        arch: the chip's compute capability, 90 for 9.0; it says which metrics are asked for.
        counters, run: for tests.
    """

    def __init__(
        self,
        gpu: int,
        scratch: Path,
        cache: Path | None = None,
        timeout_s: float = 90.0,
        confine: bool = True,
        counters: permission.Counters | None = None,
        run: Run | None = None,
        arch: int = 90,
    ) -> None:
        self._gpu, self._scratch, self._cache = gpu, scratch, cache
        self._timeout_s, self._confine = timeout_s, confine
        self._counters = counters or permission.counters()
        if self._counters.why_not is None and self._counters.ncu in _REFUSED:
            self._counters = replace(self._counters, why_not=_REFUSED[self._counters.ncu])
        self._run = run or run_bounded
        self._metrics = list(metrics.chosen(arch))

    @property
    def why_not(self) -> str | None:
        """Why there can be no counters here; None as long as nothing is known to stand in the way."""
        return self._counters.why_not

    def profile(
        self,
        problem: Problem,
        source: str,
        shape: Shape,
        seed: int,
        kernels: Sequence[str] = (),
        measured_us: float | None = None,
    ) -> tuple[Profile, tuple[Attachment, ...]]:
        """Counters of one call on a shape, or a profile that says why there are none; never raises for ncu's sake.

        ``kernels`` are the names that the candidate launches and ``measured_us`` its time: where the profile
        disagrees, its ``notes`` say so. The report comes as an attachment that Nsight Compute's own viewer opens.
        """
        if self._counters.why_not is not None:
            return _none(shape, self._counters.why_not), ()
        self._scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="ncu-", dir=self._scratch) as folder:
            return self._profile_in(Path(folder), problem, source, shape, seed, kernels, measured_us)

    def _profile_in(
        self,
        folder: Path,
        problem: Problem,
        source: str,
        shape: Shape,
        seed: int,
        kernels: Sequence[str],
        measured_us: float | None,
    ) -> tuple[Profile, tuple[Attachment, ...]]:
        job, report = folder / "job.json", folder / "report.ncu-rep"
        # A copy: what runs under ncu writes to it, and nobody else may read what a candidate wrote.
        (folder / "triton").mkdir()
        if self._cache is not None:
            copy_cache(self._cache, folder / "triton")
        job.write_text(json.dumps(self._job(folder, problem, source, shape, seed)))
        ran = self._collect(report, job, folder)
        if not report.exists():
            return _none(shape, self._why_failed(ran)), ()
        page = self._run(self._export(report), _EXPORT_TIMEOUT_S, folder)
        attached = self._attachments(shape, report, page.output)
        try:
            launches = parse_raw_page(page.output)
        except ValueError as error:
            return _none(shape, f"ncu's report cannot be read: {error}"), attached
        if not launches:
            return _none(
                shape, permission.refusal_in(ran.output) or "ncu saw no kernel in the profiled range"
            ), attached
        profile = profile_of(shape.name, launches)
        return replace(profile, notes=notes_on(profile, problem.spec, shape, kernels, measured_us)), attached

    def _collect(self, report: Path, job: Path, folder: Path) -> NcuRun:
        """Run ncu; once more without the metrics that this version or chip says it does not have."""
        ran = self._run(self._command(report, job), self._timeout_s, folder)
        missing = set() if report.exists() else _missing_metrics(ran.output)
        if missing & set(self._metrics):
            self._metrics = [m for m in self._metrics if m not in missing]
            ran = self._run(self._command(report, job), self._timeout_s, folder)
        return ran

    def _command(self, report: Path, job: Path) -> list[str]:
        return [
            str(self._counters.ncu), "--target-processes", "all", "--clock-control", "none",
            "--profile-from-start", "off", "--launch-count", str(metrics.MAX_LAUNCHES), "--force-overwrite",
            "--metrics", ",".join(self._metrics), "--export", str(report),
            sys.executable, "-m", "kbtui.evaluation.profiling.runner", str(job),
        ]  # fmt: skip

    def _export(self, report: Path) -> list[str]:
        return [str(self._counters.ncu), "--import", str(report), "--page", "raw", "--csv", "--print-units", "base"]

    def _job(self, folder: Path, problem: Problem, source: str, shape: Shape, seed: int) -> dict[str, object]:
        return {
            "problem": to_plain(problem), "source": source, "shape": to_plain(shape), "seed": seed, "gpu": self._gpu,
            "cache": str(folder / "triton"), "scratch": str(folder), "confine": self._confine,
        }  # fmt: skip

    def _why_failed(self, ran: NcuRun) -> str:
        if ran.status is None:
            return f"ncu did not end in {self._timeout_s:g} s and was stopped"
        known = permission.refusal_in(ran.output)
        if known is not None:
            if "ERR_NVGPUCTRPERM" in known and self._counters.ncu is not None:
                _REFUSED[self._counters.ncu] = known
                self._counters = replace(self._counters, why_not=known)
            return known
        lines = [line.strip() for line in ran.output.splitlines() if line.strip()]
        told = next(
            (line for line in reversed(lines) if "==ERROR==" in line), lines[-1] if lines else "it said nothing"
        )
        return f"ncu failed with status {ran.status}: {told[:200]}"

    def _attachments(self, shape: Shape, report: Path, page: str) -> tuple[Attachment, ...]:
        found = [Attachment(f"ncu-{shape.name}.csv", page.encode())]
        if report.stat().st_size <= _REPORT_BYTES_KEPT:
            found.append(Attachment(f"ncu-{shape.name}.ncu-rep", report.read_bytes()))
        return tuple(found)


def run_bounded(command: Sequence[str], timeout_s: float, cwd: Path) -> NcuRun:
    """Run a command in a session of its own and kill all of it at the end of its time."""
    environment = clean_environment(SandboxPolicy(), cwd, os.environ) | {"LC_ALL": "C", "PYTHONPATH": _python_path()}
    environment.pop("TRITON_INTERPRET", None)
    with subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", _BOOT, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
            return NcuRun(process.returncode, output.decode(errors="replace"))
        except subprocess.TimeoutExpired as expired:
            return NcuRun(None, (expired.output or b"").decode(errors="replace"))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _python_path() -> str:
    """This package's parent first: the program under ncu is the one that this engine knows."""
    return os.pathsep.join(filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH"))))


def _missing_metrics(output: str) -> set[str]:
    return {name.strip() for found in _MISSING_METRIC.findall(output) for name in found.split(",")}


def _none(shape: Shape, why: str) -> Profile:
    return Profile(shape.name, not_profiled=why)
