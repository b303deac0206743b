"""What is asked of a reference before it is believed, on a small shape. Runs in the vetting role only."""

import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from kbtui.domain.problem import Problem, ProblemFormat, Shape
from kbtui.domain.vetting import Complaint, Flaw
from kbtui.evaluation.reference import LoadedReference, load_reference
from kbtui.evaluation.roles.outputs import as_outputs

_SEEDS = (0, 1)


class QuestionError(Exception):
    """A question had a bad answer."""

    def __init__(self, complaint: Complaint) -> None:
        super().__init__(str(complaint))
        self.complaint = complaint


def load(problem: Problem) -> LoadedReference:
    """The reference, imported. Raises QuestionError."""
    with_kernelbench = problem.format is ProblemFormat.KERNELBENCH
    try:
        return load_reference(problem)
    except AttributeError as error:
        missing = "Model" if with_kernelbench else "reference(*inputs) and make_inputs(...)"
        raise _question(Flaw.REFERENCE_RAISES, problem, error, f"define {missing} there") from None
    except Exception as error:
        raise _question(Flaw.REFERENCE_RAISES, problem, error, "correct it") from None


def examine(problem: Problem, loaded: LoadedReference, shape: Shape, device: str) -> Iterator[Complaint | str]:
    """Complaints and, as text, notes. Raises QuestionError where there is nothing more to ask."""
    spec = problem.spec
    dtype = spec.dtype_of(shape)

    def make(seed: int, distribution: str) -> tuple[Any, ...]:
        return loaded.make_inputs(shape.as_dict(), seed, device, distribution, dtype=dtype)

    drawn = {}
    for distribution in spec.distributions:
        drawn[distribution] = _asked(problem, "make_inputs", partial(make, 0, distribution))
        _check_inputs(drawn[distribution], problem)
    yield from _of_inputs(make, drawn, problem, dtype)
    for distribution, inputs in drawn.items():
        yield from _of_reference(loaded, inputs, problem, f"{shape.name}, {distribution}")


def _check_inputs(inputs: tuple[Any, ...], problem: Problem) -> None:
    for i, x in enumerate(inputs):
        if not (x is None or isinstance(x, torch.Tensor | bool | int | float | str)):
            what = f"make_inputs returns a {type(x).__name__} as input {i}"
            raise QuestionError(Complaint(Flaw.BAD_INPUTS, what, "inputs are tensors, numbers, text or None"))
    if not any(isinstance(x, torch.Tensor) for x in inputs):
        raise QuestionError(Complaint(Flaw.BAD_INPUTS, "make_inputs returns no tensor", "return at least one"))


def _of_inputs(
    make: Callable[[int, str], tuple[Any, ...]], drawn: dict[str, tuple[Any, ...]], problem: Problem, dtype: str
) -> Iterator[Complaint | str]:
    first, *others = drawn
    source = "get_inputs" if problem.format is ProblemFormat.KERNELBENCH else "make_inputs"
    if not same(make(0, first), drawn[first]):
        do = "draw everything with the generator that is passed in"
        yield Complaint(Flaw.BAD_INPUTS, f"{source} gives other values for the same seed", do)
    elif same(make(1, first), drawn[first]):
        do = "draw them at random, or any kernel that keeps its answer passes"
        yield Complaint(Flaw.BAD_INPUTS, f"{source} gives the same values for every seed", do)
    alike = [name for name in others if same(drawn[name], drawn[first])]
    if alike:
        yield f"{', '.join(alike)} draw the same values as {first}: make_inputs does not look at the distribution"
    floats = {str(x.dtype)[6:] for x in drawn[first] if isinstance(x, torch.Tensor) and x.is_floating_point()}
    if floats and dtype not in floats:
        do = f'make them in the dtype that is passed in, or set dtype = "{min(floats)}"'
        yield Complaint(Flaw.BAD_INPUTS, f"inputs are {', '.join(sorted(floats))}, the problem says {dtype}", do)
    if any(isinstance(x, torch.Tensor) and not torch.isfinite(x).all() for x in drawn[first] if _is_float(x)):
        yield f"inputs hold NaN or Inf already in {first}"


def _of_reference(
    loaded: LoadedReference, inputs: tuple[Any, ...], problem: Problem, where: str
) -> Iterator[Complaint | str]:
    _check_arity(loaded.reference, inputs, problem)
    before = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    answer = _asked(problem, "the reference", lambda: as_outputs(loaded.reference(*inputs)), f" ({where})")
    for i, y in enumerate(answer):
        if not isinstance(y, torch.Tensor):
            what = f"the reference returns a {type(y).__name__}" + (f" as output {i}" if len(answer) > 1 else "")
            raise QuestionError(Complaint(Flaw.BAD_OUTPUT, what, "return one tensor, or a tuple of them"))
        if y.numel() == 0:
            raise QuestionError(Complaint(Flaw.BAD_OUTPUT, f"output {i} is empty ({where})", "compute something"))
    written = next((i for i, (x, y) in enumerate(zip(before, inputs, strict=True)) if not same((x,), (y,))), None)
    if written is not None:
        what = f"the reference writes to its input {written} ({where})"
        raise QuestionError(Complaint(Flaw.INPUT_MODIFIED, what, "let it compute on a copy, and return the result"))
    answer = [y.clone() for y in answer]
    if not same(answer, as_outputs(loaded.reference(*inputs))):
        what = f"the reference gives two answers to the same inputs ({where})"
        raise QuestionError(Complaint(Flaw.NOT_DETERMINISTIC, what, "leave out dropout and what else is random"))
    if not any(torch.isfinite(y).any() for y in answer):
        yield f"every answer is NaN or Inf ({where}): no value is compared there"


def _check_arity(reference: Callable[..., Any], inputs: tuple[Any, ...], problem: Problem) -> None:
    try:
        inspect.signature(reference).bind(*inputs)
    except TypeError:
        names = list(inspect.signature(reference).parameters)
        what = f"make_inputs returns {len(inputs)} inputs, the reference takes {len(names)}"
        comma = "," if len(names) == 1 else ""
        do = f"return ({', '.join(names)}{comma}) from make_inputs" if names else "let the reference take the inputs"
        raise QuestionError(Complaint(Flaw.BAD_INPUTS, what, do)) from None


def same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Bit for bit, NaN included."""
    return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
        if x.shape != y.shape or x.dtype != y.dtype:
            return False
        return bool(torch.equal(x, y) or torch.allclose(x, y, rtol=0.0, atol=0.0, equal_nan=True))
    return bool(type(x) is type(y) and x == y)


def _is_float(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def _asked(problem: Problem, what: str, ask: Callable[[], Any], where: str = "") -> Any:
    try:
        return ask()
    except Exception as error:
        raise _question(Flaw.REFERENCE_RAISES, problem, error, "correct it", what, where) from None


def _question(
    flaw: Flaw, problem: Problem, error: Exception, do: str, who: str = "the reference", where: str = ""
) -> QuestionError:
    message = " ".join(str(error).split())[:200] or "no message"
    told = f"{who} of {problem.spec.name} raised {type(error).__name__}: {message}{_line_of(error, problem)}{where}"
    return QuestionError(Complaint(flaw, told, do))


def _line_of(error: Exception, problem: Problem) -> str:
    """``, at reference.py line 12``: the innermost frame in the problem's own files."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(problem.path)]
    if isinstance(error, SyntaxError) and error.filename and error.filename.startswith(problem.path):
        return f", at {error.filename.rpartition('/')[2]} line {error.lineno}"
    return f", at {frames[-1].filename.rpartition('/')[2]} line {frames[-1].lineno}" if frames else ""
