"""Effects: what vetting found, kept in the workspace by the hash of all it depends on."""

import hashlib
import importlib.util
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.problem import Problem, ProblemFormat
from kbtui.domain.vetting import Vetting

#: Another number where null kernels or their judgement change: what was kept before is not believed then.
VERSION = 1


def vetted(
    root: Path, problem: Problem, device_name: str, allclose: float | None, vet: Callable[[], Vetting]
) -> Vetting:
    """What was kept for this problem on this kind of device, or what ``vet`` finds now. A refusal is never kept."""
    kept = root / "cache" / "vetting" / f"{_key(problem, device_name, allclose)}.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        found: Vetting = from_plain(Vetting, json.loads(kept.read_text()))
        return found
    vetting = vet()
    if vetting.sound:
        _keep(kept, vetting)
    return vetting


def _keep(path: Path, vetting: Vetting) -> None:
    """Whole or not at all: another engine may read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(to_plain(vetting)))
    beside.replace(path)


def _key(problem: Problem, device_name: str, allclose: float | None) -> str:
    sources = [problem.reference_source, *_beside(problem), _distributions()]
    parts = (str(VERSION), device_name, str(allclose), repr(problem.spec), *sources)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _beside(problem: Problem) -> list[str]:
    """Modules that a reference may import; its kernel is no part of it."""
    if problem.format is not ProblemFormat.FOLDER:
        return []
    files = sorted(Path(problem.path).glob("*.py"))
    return [f.read_text(errors="replace") for f in files if f.name not in ("kernel.py", "reference.py")]


def _distributions() -> str:
    found = importlib.util.find_spec("sample_kernels.distributions")
    return Path(found.origin).read_text() if found and found.origin else ""
