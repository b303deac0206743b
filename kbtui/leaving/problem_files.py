"""Effects: finds a run's problem on this machine as the run used it, and reads the files its reference needs."""

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kbtui.domain.problem import Problem, ProblemFormat
from kbtui.errors import UsageError
from kbtui.problems import kernelbench_file, load_problem
from kbtui.scheduler.state import RunState, problem_sha

_SAMPLES = "sample_kernels"


@dataclass(frozen=True, slots=True)
class ProblemFiles:
    """``files``: by path below the problem's folder in the export; ``reference``: which of them is the reference."""

    problem: Problem
    reference: str
    files: dict[str, str]


def find_problem(state: RunState, first_source: str | None, given: str | None) -> Problem:
    """The problem at ``given``, else where the run had it, else the sample of its name; its SHA-256 must be the run's.

    Raises UsageError saying what was found instead.
    """
    started = state.started
    assert started is not None
    places = [given] if given else list(dict.fromkeys((started.problem_path, started.problem)))
    said = []
    for place in places:
        try:
            problem = load_problem(place)
        except UsageError as error:
            said.append(str(error))
            continue
        for variant in (problem, replace(problem, kernel_source=first_source)):
            if problem_sha(variant) == started.problem_sha:
                return variant
        replay = started.device.key.startswith("replay:")
        then = f"the pool that run {started.run} replays was recorded" if replay else f"run {started.run} began"
        said.append(f"the problem at {problem.path} has changed since {then}")
    raise UsageError(said[0], "name it as it was then: --problem PATH")


def read_problem_files(problem: Problem) -> ProblemFiles:
    """The declaration, the reference, and the modules beside it or of the samples that it imports."""
    path = Path(problem.path)
    if problem.format is ProblemFormat.KERNELBENCH:
        name = kernelbench_file(problem).name
        return ProblemFiles(problem, name, {name: problem.reference_source, **_declared(path)})
    files = {"reference.py": problem.reference_source}
    files["problem.toml"] = (path / "problem.toml").read_text(encoding="utf-8")
    waiting = [problem.reference_source]
    while waiting:
        for name, module in _modules_beside(waiting.pop(), path):
            if name not in files:
                files[name] = module.read_text(encoding="utf-8")
                waiting.append(files[name])
    return ProblemFiles(problem, "reference.py", files)


def _declared(path: Path) -> dict[str, str]:
    """What a folder declares for a file in KernelBench's format."""
    return {"problem.toml": (path / "problem.toml").read_text(encoding="utf-8")} if path.is_dir() else {}


def _modules_beside(source: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Modules a source imports that are the problem's own or the samples', by the path that makes them importable."""
    for name in _imported(source):
        top, _, rest = name.partition(".")
        root = _samples_folder() if top == _SAMPLES else folder / top
        if root is None:
            continue
        if top == _SAMPLES and rest and (root / f"{rest}.py").is_file():
            yield f"{_SAMPLES}/{rest}.py", root / f"{rest}.py"
        elif root.with_suffix(".py").is_file():
            yield f"{top}.py", root.with_suffix(".py")
        elif root.is_dir() and top != _SAMPLES:
            yield from ((str(p.relative_to(folder)), p) for p in sorted(root.rglob("*.py")))


def _imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str() as module, level=0, names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.ImportFrom(module=None, names=names):
                yield from (alias.name for alias in names)


def _samples_folder() -> Path | None:
    found = importlib.util.find_spec(_SAMPLES)
    return Path(found.origin).parent if found and found.origin else None
