"""The cases of the six benchmarks, and each as a problem of its own: one shape to be timed, in one dtype.

Effects: reads ``cases.toml`` and the sample problems.
"""

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbtui.domain.problem import ShapeRole
from kbtui.errors import UsageError
from kbtui.problems import load_problem

CASES_FILE = Path(__file__).with_name("cases.toml")
_SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
_KEPT = ("summary", "family", "distributions", "bytes", "flops", "allowed_ops")


@dataclass(frozen=True, slots=True)
class Case:
    """One problem on one shape, with what was asked of it beforehand.

    Attributes:
        expert: an expert's speedup over PyTorch eager; ``expert_ms`` the time then, None where it was not noted.
        compiled: the better of torch.compile's modes there, over eager.
        ceiling: ``copy`` or ``read``, the bandwidth that the operation can have.
    """

    problem: str
    dtype: str
    shape: str
    expert: float
    compiled: float
    expert_ms: float | None = None
    ceiling: str = "copy"

    @property
    def name(self) -> str:
        """``softmax-4096x16384-fp32``: what its files are called, too."""
        return f"{self.problem}-{self.shape}-{_SHORT[self.dtype]}"

    @property
    def short_dtype(self) -> str:
        return _SHORT[self.dtype]


def load_cases(path: Path = CASES_FILE) -> tuple[Case, ...]:
    """In the order of the file. Raises TypeError on an unknown key."""
    return tuple(Case(**table) for table in tomllib.loads(path.read_text(encoding="utf-8"))["case"])


def in_turns(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The first of every problem, then the second of each: a call that ends early has seen all problems."""
    nth: dict[str, int] = {}
    order = []
    for case in cases:
        nth[case.problem] = nth.get(case.problem, -1) + 1
        order.append((nth[case.problem], case))
    return tuple(case for _, case in sorted(order, key=lambda one: one[0]))


def chosen(cases: Sequence[Case], words: Iterable[str]) -> tuple[Case, ...]:
    """The cases whose problem or name begins with one of the words; all where there are none. Raises UsageError."""
    wanted = tuple(words)
    for word in wanted:
        if not any(case.name.startswith(word) for case in cases):
            raise UsageError(f"no case begins with {word!r}", f"there are {', '.join(case.name for case in cases)}")
    return tuple(c for c in cases if not wanted or c.name.startswith(wanted))


def write_problem(case: Case, folder: Path) -> Path:
    """The case as a problem's folder, which ``kbtui`` takes as any other; unchanged files stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in problem_files(case).items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return folder


def problem_files(case: Case) -> dict[str, str]:
    """The sample with this shape alone to be timed, and every shape in this dtype."""
    sample = load_problem(case.problem)
    table = tomllib.loads((Path(sample.path) / "problem.toml").read_text(encoding="utf-8"))
    files = {"problem.toml": declaration(case, table), "reference.py": sample.reference_source}
    return files | ({"kernel.py": sample.kernel_source} if sample.kernel_source else {})


def declaration(case: Case, table: dict[str, Any]) -> str:
    """``problem.toml`` of a case, out of its sample's. Raises UsageError where the sample has no such shape."""
    lines = [f"name = {json.dumps(case.problem)}", f"dtype = {json.dumps(case.dtype)}"]
    lines += [f"{key} = {json.dumps(table[key])}" for key in _KEPT if key in table]
    for section in ("params", "tolerance"):
        if section in table:
            lines += ["", f"[{section}]", *(f"{k} = {json.dumps(v)}" for k, v in table[section].items())]
    timed = next((s for s in table["tune"] if _name(s) == case.shape), None)
    if timed is None:
        raise UsageError(f"{case.problem} has no shape {case.shape}", "mend benchmarks/six/cases.toml")
    lines += _shape(ShapeRole.TUNE, timed, case.shape)
    for role in (ShapeRole.HIDDEN, ShapeRole.PROXY):
        distinct = {tuple(s["dims"].items()): s for s in table.get(role.value, ())}
        for shape in distinct.values():
            lines += _shape(role, shape, None)
    return "\n".join(lines) + "\n"


def _name(shape: dict[str, Any]) -> str:
    return str(shape.get("name") or "x".join(str(size) for size in shape["dims"].values()))


def _shape(role: ShapeRole, shape: dict[str, Any], name: str | None) -> list[str]:
    dims = ", ".join(f"{key} = {size}" for key, size in shape["dims"].items())
    named = [f"name = {json.dumps(name)}", "from_rung = 1"] if name else []
    return ["", f"[[{role.value}]]", f"dims = {{ {dims} }}", *named]
