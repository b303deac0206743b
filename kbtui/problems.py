"""Problems from disk: a folder, a sample's name, or one file in KernelBench's format. Effects: reads files."""

import difflib
import importlib.util
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kbtui.domain.kernelbench import is_kernelbench, kernelbench_spec
from kbtui.domain.problem import (
    TOLERANCE_FLOOR,
    Problem,
    ProblemFormat,
    ProblemSpec,
    Shape,
    ShapeRole,
    Tolerance,
)
from kbtui.domain.rung import CONFIRM
from kbtui.errors import UsageError

DISTRIBUTIONS = ("normal", "wide", "offset", "tiny", "mixed", "structured")
_DECLARATION, _REFERENCE, _KERNEL = "problem.toml", "reference.py", "kernel.py"
#: The key that names a file in KernelBench's format in place of reference.py.
_KERNELBENCH = "kernelbench"

T = TypeVar("T")


def load_problem(path_or_name: str) -> Problem:
    """The problem at a path, or the sample of that name.

    Raises UsageError in one line: no such problem (the nearest sample is named), a missing key or file, a formula
    that is not arithmetic over the shape's sizes, or TOML that does not parse (with its line).
    """
    path = _resolve(path_or_name)
    return _load_file(path) if path.is_file() else _load_folder(path)


def sample_names() -> tuple[str, ...]:
    """Names of the problems that ship with kbtui."""
    return tuple(sorted(p.parent.name for p in _samples_folder().glob(f"*/{_DECLARATION}")))


def _samples_folder() -> Path:
    found = importlib.util.find_spec("sample_kernels")
    if found is None or found.origin is None:
        raise UsageError("the package sample_kernels is not installed", "reinstall kbtui")
    return Path(found.origin).parent


def _resolve(path_or_name: str) -> Path:
    if not path_or_name.strip():
        raise UsageError("no problem is named", f"the samples are {', '.join(sample_names())}")
    path = Path(path_or_name).expanduser()
    if path.name == _DECLARATION and path.is_file():
        return path.parent
    if path.exists():
        return path
    sample = _samples_folder() / path.name
    if str(path.parent) in (".", "sample_kernels") and (sample / _DECLARATION).is_file():
        return sample
    near = difflib.get_close_matches(path.stem, sample_names(), n=1, cutoff=0.5)
    do = f"did you mean {near[0]}?" if near else f"the samples are {', '.join(sample_names())}"
    raise UsageError(f"no such problem: {path_or_name}", do)


def _load_file(path: Path) -> Problem:
    source = _read(path)
    if not is_kernelbench(source):
        raise UsageError(
            f"{path} is not a problem", "give a folder with problem.toml, or a file with Model and get_inputs"
        )
    spec = kernelbench_spec(path.stem, source)
    return Problem(spec, ProblemFormat.KERNELBENCH, str(path.resolve()), source, None)


def _load_folder(folder: Path) -> Problem:
    if not (folder / _DECLARATION).is_file():
        raise UsageError(f"{folder} has no {_DECLARATION}", "a problem's folder holds problem.toml and reference.py")
    table = _table(folder / _DECLARATION)
    spec = parse_spec(table, str(folder / _DECLARATION))
    if _KERNELBENCH in table:
        return Problem(spec, ProblemFormat.KERNELBENCH, str(folder.resolve()), _model(folder, table), None)
    if not (folder / _REFERENCE).is_file():
        raise UsageError(f"{folder} has no {_REFERENCE}", "write reference(*inputs) and make_inputs(...) there")
    kernel = folder / _KERNEL
    return Problem(
        spec,
        ProblemFormat.FOLDER,
        str(folder.resolve()),
        _read(folder / _REFERENCE),
        _read(kernel) if kernel.is_file() else None,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}", "check the file") from None


def _model(folder: Path, table: Mapping[str, Any]) -> str:
    """The file in KernelBench's format that a folder declares inputs and tolerance for."""
    name = _Table(table, str(folder / _DECLARATION)).take(_KERNELBENCH, str)
    source = _read(folder / name)
    if Path(name).name != name or not is_kernelbench(source):
        raise UsageError(f"{folder / name} is not in KernelBench's format", f"{_KERNELBENCH} names a file beside it")
    return source


def kernelbench_file(problem: Problem) -> Path:
    """Where the file of a problem in KernelBench's format lies: the problem itself, or beside its problem.toml."""
    path = Path(problem.path)
    return path / str(_table(path / _DECLARATION)[_KERNELBENCH]) if path.is_dir() else path


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_read(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML: {error}", "mend that line") from None


@dataclass(frozen=True, slots=True)
class _Table:
    """A TOML table that says where it is when a key is missing or of another type."""

    plain: Mapping[str, Any]
    where: str

    def take(self, key: str, kind: type[T]) -> T:
        if key not in self.plain:
            raise UsageError(f"{self.where} lacks the key {key!r}", f"add {key} = {_EXAMPLES.get(key, '...')}")
        return self._checked(key, kind)

    def maybe(self, key: str, kind: type[T]) -> T | None:
        return self._checked(key, kind) if key in self.plain else None

    def _checked(self, key: str, kind: type[T]) -> T:
        value = self.plain[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise UsageError(f"{self.where}: {key} is {value!r}", f"it must be {_KIND_WORDS.get(kind, kind.__name__)}")
        return value

    def only(self, *known: str) -> None:
        for key in self.plain:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
                do = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
                raise UsageError(f"{self.where} has an unknown key {key!r}", do)


_EXAMPLES = {
    "name": '"softmax"',
    "dtype": '"float32"',
    "bytes": '"2 * rows * cols * itemsize"',
    "flops": '"5 * rows * cols"',
    "dims": "{ rows = 4096, cols = 16384 }",
}
_KIND_WORDS = {str: "text", int: "a whole number", float: "a number", dict: "a table", list: "a list"}
_ROLES = tuple(role.value for role in ShapeRole)


def parse_spec(plain: Mapping[str, Any], where: str) -> ProblemSpec:
    """A ProblemSpec from ``problem.toml`` already read as a table; ``where`` names it in errors (UsageError)."""
    table = _Table(plain, where)
    table.only(
        "name", "summary", "family", "dtype", "distributions", "target_speedup", "bytes", "flops",
        "tolerance", "allowed_ops", "params", _KERNELBENCH, *_ROLES,
    )  # fmt: skip
    dtype = _dtype(table.take("dtype", str), where)
    spec = ProblemSpec(
        name=table.take("name", str),
        summary=table.maybe("summary", str) or "",
        dtype=dtype,
        family=table.maybe("family", str),
        shapes=_shapes(table, dtype),
        distributions=_distributions(table),
        bytes_formula=table.take("bytes", str),
        flops_formula=table.take("flops", str),
        tolerance=_tolerance(table, dtype),
        allowed_ops=tuple(str(op) for op in table.maybe("allowed_ops", list) or ()),
        target_speedup=table.maybe("target_speedup", float),
        params=tuple((key, str(value)) for key, value in (table.maybe("params", dict) or {}).items()),
    )
    _check_formulas(spec, where)
    return spec


def _dtype(dtype: str, where: str) -> str:
    if dtype not in TOLERANCE_FLOOR:
        raise UsageError(f"{where}: dtype {dtype!r} is not supported", f"use one of {', '.join(TOLERANCE_FLOOR)}")
    return dtype


def _shapes(table: _Table, dtype: str) -> tuple[Shape, ...]:
    shapes = tuple(
        _shape(_Table(_as_table(plain, f"{table.where} [[{role}]]"), f"{table.where} [[{role}]] {i}"), ShapeRole(role))
        for role in _ROLES
        for i, plain in enumerate(table.maybe(role, list) or (), start=1)
    )
    timed_first = [s for s in shapes if s.role is ShapeRole.TUNE and s.from_rung <= 1]
    if not timed_first:
        raise UsageError(f"{table.where} has no [[tune]] shape with from_rung = 1", "name the shape to screen on")
    names = [s.name for s in shapes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{table.where} has two shapes named {twice}", "leave one out, or give it another name")
    return shapes


def _as_table(plain: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(plain, dict):
        raise UsageError(f"{where} is {plain!r}", "it must be a table with dims = { ... }")
    return plain


def _shape(table: _Table, role: ShapeRole) -> Shape:
    table.only("name", "dims", "from_rung", "dtype")
    dims = _Table(table.take("dims", dict), f"{table.where} dims")
    sizes = tuple((key, dims.take(key, int)) for key in dims.plain)
    if not sizes or any(size < 1 for _, size in sizes):
        raise UsageError(f"{dims.where} must be sizes of 1 and more", "e.g. dims = { rows = 16, cols = 1024 }")
    dtype = table.maybe("dtype", str)
    plain_name = "x".join(str(size) for _, size in sizes) + (f" {dtype}" if dtype else "")
    from_rung = table.maybe("from_rung", int)
    if from_rung is not None and not 1 <= from_rung <= CONFIRM:
        raise UsageError(f"{table.where}: from_rung is {from_rung}", f"rungs that time are 1 to {CONFIRM}")
    return Shape(
        name=table.maybe("name", str) or plain_name,
        dims=sizes,
        role=role,
        from_rung=1 if from_rung is None else from_rung,
        dtype=_dtype(dtype, table.where) if dtype else None,
    )


def _distributions(table: _Table) -> tuple[str, ...]:
    named = table.maybe("distributions", list)
    if named is None:
        return DISTRIBUTIONS
    if not named or not all(isinstance(name, str) for name in named):
        raise UsageError(f"{table.where}: distributions is {named!r}", f"name some of {', '.join(DISTRIBUTIONS)}")
    return tuple(named)


def _tolerance(table: _Table, dtype: str) -> Tolerance:
    given = _Table(table.maybe("tolerance", dict) or {}, f"{table.where} [tolerance]")
    given.only("floor", "element")
    floor, element = given.maybe("floor", float), given.maybe("element", float)
    if floor is not None and not 0 < floor < 1:
        raise UsageError(f"{given.where}: floor is {floor:g}", "it is a relative error between 0 and 1, such as 1e-6")
    if element is not None and not 0 < element < math.inf:
        raise UsageError(f"{given.where}: element is {element:g}", "it is a multiple of the error allowed on the whole")
    default = Tolerance(TOLERANCE_FLOOR[dtype])
    return Tolerance(floor or default.floor, element or default.element)


def _check_formulas(spec: ProblemSpec, where: str) -> None:
    _evaluates("bytes", spec.bytes_moved, spec.shapes, where)
    _evaluates("flops", spec.flops, spec.shapes, where)


def _evaluates(key: str, formula: Callable[[Shape], float], shapes: tuple[Shape, ...], where: str) -> None:
    for shape in shapes:
        try:
            if formula(shape) < 0:
                raise ValueError(f"it is negative for {shape.name}")
        except (ValueError, ZeroDivisionError, OverflowError) as error:
            raise UsageError(f"{where}: bad {key} formula: {error}", "mend the formula") from None
