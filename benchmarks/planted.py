"""Kernels that are slow in one known way: does the diagnosis say which, and does its first hint cure it?

    python benchmarks/planted.py --device cuda:0 --out DIR [--only NAME,NAME] [--no-counters] [--no-remedies]
    python benchmarks/planted.py --again planted.json --out DIR [--compile]

With `--device cuda:0`: measures each plant, profiles it with Nsight Compute where that can be had, diagnoses it with
counters and without, applies the first hint's rewrites or playbook entries (four at most), checks their answers
against a float64 oracle and times them against the plant in turns. With `--device model:h200`: the same on modelled
times, answers checked under the interpreter. With `--again`: today's rules on kept figures, with no GPU; `--compile`
has the compiler's part (registers, instructions) made anew too. Effects: children; DIR gets planted.json, planted.txt
and ncu's pages.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "planted")]

from pages import split, trimmed  # noqa: E402
from suite import Plant, Remedy, Workbench, first_hint, load_plants, remedies  # noqa: E402

from kbtui.cores import cores  # noqa: E402
from kbtui.domain.codec import from_plain, to_plain  # noqa: E402
from kbtui.domain.device import DATA_SHEETS, DeviceSpec, closest_data_sheet  # noqa: E402
from kbtui.domain.measurement import Clock  # noqa: E402
from kbtui.domain.problem import TOLERANCE_FLOOR  # noqa: E402
from kbtui.domain.profile import KernelResources, Profile  # noqa: E402
from kbtui.evaluation.compile.report import CompileReport  # noqa: E402
from kbtui.evaluation.devices.triton_cache import copy_cache  # noqa: E402
from kbtui.evaluation.gate.interpreter import InterpreterGate  # noqa: E402
from kbtui.evaluation.modelled.time import ModelledTime  # noqa: E402
from kbtui.evaluation.profiling import metrics, permission  # noqa: E402
from kbtui.evaluation.profiling.diagnose import diagnose  # noqa: E402
from kbtui.evaluation.profiling.integrity import notes_on  # noqa: E402
from kbtui.evaluation.profiling.ncu import run_bounded  # noqa: E402
from kbtui.evaluation.profiling.ncu_csv import parse_raw_page, profile_of  # noqa: E402

GOOD_GAIN = 1.3
SEED = 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="model:h200")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--only", default="")
    parser.add_argument("--no-counters", action="store_true")
    parser.add_argument("--no-remedies", action="store_true")
    parser.add_argument("--again", type=Path, help="a kept planted.json: diagnose its figures anew, with no GPU")
    parser.add_argument("--compile", action="store_true", help="with --again: compile the plants anew, on the CPU")
    parser.add_argument("--gpu-timeout", type=float, default=150.0)
    given = parser.parse_args()
    plants = tuple(p for p in load_plants() if not given.only or p.name in given.only.split(","))
    if given.again is not None:
        return again(json.loads(given.again.read_text()), plants, given.out, given.compile)
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.1f} s] {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        device = described(given.device)
        with Workbench(device, Path(folder), max(1, cores() - 2)) as bench:
            suite = Suite(plants, device, bench, Path(folder), given.gpu_timeout)
            run = about(given.device)
            rows = suite.run(not given.no_counters, given.out, say)
            keep(rows, device, given.out, run)
            if not given.no_remedies:
                suite.cured(rows, say)
    keep(rows, device, given.out, run)
    print(table(rows, device))
    return 0


def about(key: str) -> dict[str, Any]:
    """When, by which command and on what the figures were measured."""
    versions = ", ".join(f"{name} {_version(name)}" for name in ("torch", "triton"))
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    command = f"python benchmarks/planted.py --device {key}"
    machine = f"{_driver()}, {python}, {versions}" if key.startswith("cuda") else f"{key}, {python}, {versions}"
    return {"command": command, "date": time.strftime("%Y-%m-%d"), "machine": machine, "notes": []}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"


def _driver() -> str:
    """The GPU's name and driver, as nvidia-smi has them."""
    asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return "a GPU"
    return told[0].replace(", ", ", driver ") if told else "a GPU"


def again(kept: dict[str, Any], plants: tuple[Plant, ...], out: Path, compile_anew: bool) -> int:
    """Today's rules on yesterday's figures: times, resources, traces and counters as kept.

    What was measured of the remedies stays beside the hint of that day; ``hint_now`` is the first one today. A plant
    that has changed since is left out.
    """
    device = from_plain(DeviceSpec, kept["device"])
    known = {row["name"]: row for row in kept["plants"] if not row["plant"].get("fault")}
    out.mkdir(parents=True, exist_ok=True)
    same = [(p, known[p.name]) for p in plants if p.name in known and known[p.name]["shape"] == p.shape.name]
    if compile_anew:
        compiled = recompiled([p for p, _ in same], device)
        same = [(p, {**row, "resources": compiled[p.name]}) for p, row in same]
    rows = [{**row, **anew(plant, row, device)} for plant, row in same]
    keep(rows, device, out, kept.get("run"))
    print(table(rows, device))
    return 0


def recompiled(plants: list[Plant], device: DeviceSpec) -> dict[str, Any]:
    """Resources of each plant by this machine's compiler, for that chip: no GPU is needed for them."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        absent = replace(device, clock=Clock.MODELLED)
        with Workbench(absent, Path(folder), max(1, cores() - 1)) as bench:
            return {p.name: to_plain(bench.compiler(p).submit(p.source).result().resources) for p in plants}


def anew(plant: Plant, row: dict[str, Any], device: DeviceSpec) -> dict[str, Any]:
    """A row's diagnoses, and the hint that comes first by them."""
    traced = from_plain(ModelledTime, row["traced"])
    resources = from_plain(tuple[KernelResources, ...], row["resources"])
    known = (plant.problem.spec, device, plant.shape, row["time_us"], resources)
    without = diagnose(*known, None, traced, row["n_launches"])
    profile = from_plain(Profile, row["profile"]) if row["profile"] else None
    counted = profile is not None and profile.not_profiled is None
    counters = diagnose(*known, profile, None, row["n_launches"]) if counted else None
    told = _told(plant, counters) if counters else None
    hint = first_hint(plant, counters or without, device)
    return {"without": _told(plant, without), "counters": told, "hint_now": hint.id, "unseen": plant.unseen}


def keep(rows: list[dict[str, Any]], device: DeviceSpec, out: Path, run: dict[str, Any] | None = None) -> None:
    """What is known so far; ``run``: what a person wrote of when and where it was measured."""
    head = json.dumps({"device": to_plain(device), **({"run": run} if run else {})}, indent=1)
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    (out / "planted.json").write_text(f'{head.removesuffix("}").rstrip()},\n "plants": [\n{lines}\n]}}\n')
    (out / "planted.txt").write_text(headed(table(rows, device), run))


def headed(text: str, run: dict[str, Any] | None) -> str:
    """The table below what was written of the run."""
    if run is None:
        return text
    about = (f"Measured {run['date']} by: {run['command']}", run["machine"], *run["notes"])
    return "".join(f"{line}\n" for line in (*about, "", *text.splitlines()))


def described(key: str) -> DeviceSpec:
    """The chip, in a process that ends before anything is measured."""
    if key.startswith("model:"):
        return DATA_SHEETS[key.removeprefix("model:")]
    asked = (
        "import torch,json;p=torch.cuda.get_device_properties(0);"
        "print(json.dumps([p.name,p.major*10+p.minor,p.multi_processor_count]))"
    )
    name, arch, n_sms = json.loads(subprocess.check_output([sys.executable, "-c", asked], text=True))
    sheet = closest_data_sheet(name, arch)
    return replace(sheet, key=key, name=name, arch=arch, n_sms=n_sms, clock=Clock.MEASURED, launch_us=4.0)


class Suite:
    """Every plant through compiling, measuring, profiling, diagnosing and curing."""

    def __init__(
        self, plants: tuple[Plant, ...], device: DeviceSpec, bench: Workbench, folder: Path, gpu_timeout_s: float
    ) -> None:
        self.plants, self.device, self.bench, self.folder = plants, device, bench, folder
        self.gpu_timeout_s = gpu_timeout_s
        self.on_gpu = device.clock is Clock.MEASURED

    def run(self, counters: bool, out: Path, say: Any) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(max_workers=cores()) as threads:
            reports = dict(zip((p.name for p in self.plants), threads.map(self.compiled, self.plants), strict=True))
            say("compiled")
            traces = dict(zip((p.name for p in self.plants), threads.map(self.bench.traced, self.plants), strict=True))
            say("traced")
        measured = self.measured({p.name: {"plant": p.source} for p in self.plants}) if self.on_gpu else {}
        say("measured")
        times = {
            p.name: measured.get(p.name, {}).get("plant", {}).get("us", traces[p.name].time_us) for p in self.plants
        }
        profiles = self.profiled(reports, times, out) if self.on_gpu and counters else {}
        say("profiled")
        rows = [self.row(p, reports[p.name], traces[p.name], times[p.name], profiles.get(p.name)) for p in self.plants]
        for row in rows:
            row["plant"] = measured.get(row["name"], {}).get("plant", {})
        return rows

    def compiled(self, plant: Plant) -> CompileReport:
        report = self.bench.compiler(plant).submit(plant.source).result()
        if not report.verdict.ok:
            print(f"!! {plant.name} does not compile: {report.verdict.detail}", flush=True)
        return report

    def measured(self, sources: dict[str, dict[str, str]]) -> dict[str, Any]:
        """Verdicts and times of named sources by plant, on the GPU, in one child."""
        by_name = {p.name: p for p in self.plants}
        cache = self._merged(sources)
        jobs = [self._job(by_name[name], named) for name, named in sources.items()]
        asked, told = self.folder / "jobs.json", self.folder / "told.json"
        asked.write_text(json.dumps({"cache": str(cache), "jobs": jobs}))
        told.write_text("{}")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, str(HERE / "planted" / "on_gpu.py"), str(asked), str(told)]
        try:
            subprocess.run(command, env=environment, timeout=self.gpu_timeout_s, check=False)
        except subprocess.TimeoutExpired:
            print("!! the GPU child took too long; what it had done is kept", flush=True)
        answers: dict[str, Any] = json.loads(told.read_text())
        for name, answer in answers.items():
            if "error" in answer:
                print(f"!! {name}: {answer['error']}", flush=True)
        return answers

    def _merged(self, sources: dict[str, dict[str, str]]) -> Path:
        """One Triton cache with all their compiled kernels."""
        cache = self.folder / "triton"
        cache.mkdir(exist_ok=True)
        by_name = {p.name: p for p in self.plants}
        for name, named in sources.items():
            for source in named.values():
                copy_cache(self.bench.compiler(by_name[name]).cache_of(source), cache)
        return cache

    def _job(self, plant: Plant, sources: dict[str, str]) -> dict[str, Any]:
        spec = plant.problem.spec
        dtype = spec.dtype_of(plant.shape)
        floor = spec.tolerance.floor if dtype == spec.dtype else TOLERANCE_FLOOR[dtype]
        plain = {"problem": to_plain(plant.problem), "shape": to_plain(plant.shape)}
        return {"name": plant.name, **plain, "sources": sources, "floor": floor}

    def profiled(self, reports: dict[str, CompileReport], times: dict[str, float], out: Path) -> dict[str, Profile]:
        """ncu around one process that calls every plant once: its start is most of what a profile takes."""
        able = permission.counters()
        if able.why_not is not None:
            return {p.name: Profile(p.shape.name, not_profiled=able.why_not) for p in self.plants}
        cache = self._merged({p.name: {"plant": p.source} for p in self.plants})
        asked, told, report = (self.folder / name for name in ("profile.json", "profiled.json", "planted.ncu-rep"))
        jobs = [self._job(p, {"plant": p.source}) for p in self.plants]
        asked.write_text(json.dumps({"cache": str(cache), "jobs": jobs}))
        told.write_text("{}")
        command = [
            str(able.ncu), "--target-processes", "all", "--clock-control", "none", "--profile-from-start", "off",
            "--force-overwrite", "--metrics", ",".join(metrics.chosen(self.device.arch)), "--export", str(report),
            sys.executable, str(HERE / "planted" / "on_gpu.py"), str(asked), str(told), "profile",
        ]  # fmt: skip
        ran = run_bounded(command, self.gpu_timeout_s, self.folder)
        if not report.exists():
            print(f"!! ncu: {ran.output[-1500:]}", flush=True)
            return {}
        shutil.copy(report, out)
        exported = [str(able.ncu), "--import", str(report), "--page", "raw", "--csv", "--print-units", "base"]
        page = run_bounded(exported, 60.0, self.folder).output
        done = [p for p in self.plants if p.name in json.loads(told.read_text())]
        counts = [len(reports[p.name].launches_of(p.shape.name)) for p in done]
        pages = split(page, counts)
        return {
            p.name: self._read(p, own, reports[p.name], times[p.name], out) for p, own in zip(done, pages, strict=True)
        }

    def _read(self, plant: Plant, page: str, report: CompileReport, time_us: float, out: Path) -> Profile:
        """A plant's part of the report, checked for its kernels, bytes and time as any profile is."""
        page = trimmed(page, self.device.arch)
        (out / "pages").mkdir(exist_ok=True)
        (out / "pages" / f"{plant.name}.csv").write_text(page)
        launches = parse_raw_page(page)
        if not launches:
            return Profile(plant.shape.name, not_profiled="ncu saw no kernel of it")
        profile = profile_of(plant.shape.name, launches)
        kernels = tuple(dict.fromkeys(r.kernel for r in report.resources))
        return replace(profile, notes=notes_on(profile, plant.problem.spec, plant.shape, kernels, time_us))

    def row(
        self, plant: Plant, report: CompileReport, traced: ModelledTime, time_us: float, profile: Profile | None
    ) -> dict[str, Any]:
        n_launches = float(len(report.launches_of(plant.shape.name))) or None
        known = (plant.problem.spec, self.device, plant.shape, time_us, report.resources)
        without = diagnose(*known, None, traced, n_launches)
        counted = profile is not None and profile.not_profiled is None
        counters = diagnose(*known, profile, None, n_launches) if counted else None
        hint = first_hint(plant, counters or without, self.device)
        return {
            "name": plant.name, "shape": plant.shape.name, "expected": [b.value for b in plant.expected],
            "unseen": plant.unseen,
            "time_us": time_us, "n_launches": n_launches, "resources": to_plain(report.resources),
            "traced": to_plain(traced), "profile": to_plain(profile) if profile else None,
            "without": _told(plant, without), "counters": _told(plant, counters) if counters else None,
            "hint": hint.id, "space": hint.space.value,
            "remedies": [to_plain(r) for r in remedies(hint, plant, self.device)], "best": None,
        }  # fmt: skip

    def cured(self, rows: list[dict[str, Any]], say: Any) -> None:
        """Verdict and gain of every remedy, into the rows; the best that is right is the row's gain."""
        by_name = {p.name: p for p in self.plants}
        jobs = [(row, by_name[row["name"]], i, Remedy(**r)) for row in rows for i, r in enumerate(row["remedies"])]
        with ThreadPoolExecutor(max_workers=cores()) as threads:
            reports = list(threads.map(lambda j: self.bench.compiler(j[1]).submit(j[3].source).result(), jobs))
        say("remedies compiled")
        fine = [job for job, report in zip(jobs, reports, strict=True) if report.verdict.ok]
        if self.on_gpu:
            sources = {row["name"]: {"plant": by_name[row["name"]].source} for row in rows}
            for row, _, i, remedy in fine:
                sources[row["name"]][str(i)] = remedy.source
            told = self.measured(sources)
        else:
            told = self.modelled(fine)
        say("remedies measured")
        for row in rows:
            for i, remedy in enumerate(row["remedies"]):
                remedy |= told.get(row["name"], {}).get(str(i), {"fault": "it does not compile"})
            right = [r for r in row["remedies"] if r.get("fault") is None and "ratio" in r]
            row["best"] = max(right, key=lambda r: r["ratio"], default=None)

    def modelled(self, jobs: list[tuple[dict[str, Any], Plant, int, Remedy]]) -> dict[str, Any]:
        """Ratios by the model; answers checked by the first stage of the gate under the interpreter."""
        told: dict[str, Any] = {}
        for row, plant, i, remedy in jobs:
            gate = InterpreterGate(self.bench.interpreting, plant.problem, chip=self.device)
            verdict = gate.check(remedy.source, 1, SEED)
            gate.close()
            now = self.bench.traced(replace(plant, source=remedy.source)).time_us
            ratio = row["time_us"] / now
            fault = None if verdict.ok else f"{verdict.reason}: {verdict.detail}"
            told.setdefault(row["name"], {})[str(i)] = {"fault": fault, "us": now, "ratio": ratio}
        return told


def _told(plant: Plant, diagnosis: Any) -> dict[str, Any]:
    return {**to_plain(diagnosis), "right": plant.named_by(diagnosis)}


def table(rows: list[dict[str, Any]], device: DeviceSpec) -> str:
    """What a person reads: one line a plant, and the counts."""
    lines = [f"{device.name} ({device.clock.value} times)", ""]
    lines.append(f"{'plant':24} {'us':>9} {'with counters':30} {'without':30} {'first hint':30} gain")
    for row in rows:
        best = row["best"]
        interval = f" [{best['low']:.2f}-{best['high']:.2f}]" if best and "low" in best else ""
        gain = f"{best['ratio']:.2f}x{interval} by {best['operator']}" if best else "none"
        lines.append(
            f"{row['name']:24} {row['time_us']:9.1f} {_first(row['counters']):30} {_first(row['without']):30} "
            f"{row['hint']:30} {gain}{_now(row)}"
        )
    lines += ["", _counts("", rows)]
    unseen = [r for r in rows if r.get("unseen")]
    lines += [_counts("of those set after the rules were last changed: ", unseen)] if unseen else []
    return "\n".join(lines) + "\n"


def _counts(whose: str, rows: list[dict[str, Any]]) -> str:
    counted = [r for r in rows if r["counters"]]
    gained = sum(bool(r["best"] and r["best"]["ratio"] >= GOOD_GAIN) for r in rows)
    return (
        f"{whose}named with counters {sum(r['counters']['right'] for r in counted)}/{len(counted)}, "
        f"without {sum(r['without']['right'] for r in rows)}/{len(rows)}, "
        f"at least {GOOD_GAIN}x after the first hint {gained}/{len(rows)}"
    )


def _now(row: dict[str, Any]) -> str:
    """The first hint by today's diagnosis, where it is another than the one that was carried out."""
    now = row.get("hint_now", row["hint"])
    return "" if now == row["hint"] else f"; first now: {now}"


def _first(told: dict[str, Any] | None) -> str:
    if told is None:
        return "-"
    first = told["findings"][0]
    return f"{'ok' if told['right'] else 'NO'} {first['bottleneck']} {first['weight']:.2f}"


if __name__ == "__main__":
    sys.exit(main())
