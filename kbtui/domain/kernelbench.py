"""Problems in KernelBench's format, read without running them: one file with Model, get_inputs, get_init_inputs.

The file's whole-number constants that its input functions mention are the shape's sizes, so a smaller shape is the
same file with other constants. Format: github.com/ScalingIntelligence/KernelBench.
"""

import ast
import math
from collections.abc import Mapping

from kbtui.domain.problem import (
    TOLERANCE_FLOOR,
    ProblemSpec,
    Shape,
    ShapeRole,
    Tolerance,
    evaluate_formula,
)

#: The one distribution of such a file: what its own get_inputs draws.
GIVEN = "given"

_MODEL, _INPUTS, _INIT = "Model", "get_inputs", "get_init_inputs"
_DRAWS = ("rand", "randn", "empty", "ones", "zeros")
_PROXY_ELEMENTS = 1 << 14
_PROXY_CAPS = (256, 128, 64, 32, 16, 8, 4, 2)


def is_kernelbench(source: str) -> bool:
    """Whether a file defines Model, get_inputs and get_init_inputs. False where it does not parse."""
    try:
        defined = _definitions(ast.parse(source))
    except SyntaxError:
        return False
    return {_MODEL, _INPUTS, _INIT} <= defined.keys()


def kernelbench_spec(name: str, source: str) -> ProblemSpec:
    """What such a file declares. Bytes are those of the inputs whose sizes can be read off: a lower bound.

    Hidden shapes change only sizes the model is not built from; proxies shrink all of them to what an interpreter
    runs. Raises ValueError where the file does not parse.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.msg}") from None
    definitions = _definitions(tree)
    constants = _constants(tree)
    of_inputs = _mentioned(definitions[_INPUTS], constants)
    of_model = _mentioned(definitions[_INIT], constants)
    dims = {key: size for key, size in constants.items() if key in of_inputs | of_model}
    dtype = _dtype(definitions[_INPUTS])
    return ProblemSpec(
        name=name,
        summary=_first_line(tree, definitions[_MODEL]) or f"{name}, a file in KernelBench's format",
        dtype=dtype,
        family=None,
        shapes=_shapes(dims, frozenset(of_inputs - of_model)),
        distributions=(GIVEN,),
        bytes_formula=_bytes_formula(definitions[_INPUTS], dims),
        flops_formula="0",
        tolerance=Tolerance(TOLERANCE_FLOOR[dtype]),
    )


def with_sizes(source: str, sizes: Mapping[str, int]) -> str:
    """The same file with its whole-number constants of these names set to other sizes."""
    tree = ast.parse(source)
    lines = source.splitlines()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=key)]) if key in sizes:
                lines[node.lineno - 1] = f"{key} = {sizes[key]}"
                for extra in range(node.lineno, node.end_lineno or node.lineno):
                    lines[extra] = ""
    return "\n".join(lines) + "\n"


def _definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    return {n.name: n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}


def _constants(tree: ast.Module) -> dict[str, int]:
    """Module-level whole numbers of 1 and more, arithmetic on earlier ones included."""
    found: dict[str, int] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=key)], value=value):
                size = _size(value, found)
                if size is not None:
                    found[key] = size
    return found


def _size(value: ast.expr, names: Mapping[str, int]) -> int | None:
    if isinstance(value, ast.Constant) and not (isinstance(value.value, int) and not isinstance(value.value, bool)):
        return None
    try:
        number = evaluate_formula(ast.unparse(value), {k: float(v) for k, v in names.items()})
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return int(number) if number >= 1 and number == int(number) else None


def _mentioned(function: ast.stmt, constants: Mapping[str, int]) -> set[str]:
    return {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and n.id in constants}


def _dtype(inputs: ast.stmt) -> str:
    named = {n.attr for n in ast.walk(inputs) if isinstance(n, ast.Attribute)}
    return next((d for d in ("float16", "bfloat16") if d in named), "float16" if "half" in named else "float32")


def _first_line(tree: ast.Module, model: ast.stmt) -> str | None:
    assert isinstance(model, ast.ClassDef)
    text = ast.get_docstring(model) or ast.get_docstring(tree)
    return text.strip().splitlines()[0] if text and text.strip() else None


def _shapes(dims: Mapping[str, int], free: frozenset[str]) -> tuple[Shape, ...]:
    """The file's own shape; where it names sizes, two hidden ones over the free sizes and a proxy as well."""
    given = _shape(dims, ShapeRole.TUNE)
    candidates = [
        _shape({k: min(v, 61) if k in free else v for k, v in dims.items()}, ShapeRole.HIDDEN),
        _shape({k: min(v, 128) + 1 if k in free else v for k, v in dims.items()}, ShapeRole.HIDDEN),
        _shape(_shrunk(dims), ShapeRole.PROXY),
    ]
    return (given, *(s for s in candidates if s.dims != given.dims or (s.role is ShapeRole.PROXY and s.dims)))


def _shape(dims: Mapping[str, int], role: ShapeRole) -> Shape:
    return Shape("x".join(map(str, dims.values())) or "as given", tuple(dims.items()), role)


def _shrunk(dims: Mapping[str, int]) -> dict[str, int]:
    """Sizes capped alike by a power of two: what divided what still does where they were powers of two."""
    capped = ({k: min(v, cap) for k, v in dims.items()} for cap in _PROXY_CAPS)
    return next((c for c in capped if math.prod(c.values()) <= _PROXY_ELEMENTS), dict.fromkeys(dims, 1))


def _bytes_formula(inputs: ast.stmt, dims: Mapping[str, int]) -> str:
    products = [p for n in ast.walk(inputs) if isinstance(n, ast.Call) and (p := _elements(n, dims))]
    return f"itemsize * ({' + '.join(products)})" if products else "0"


def _elements(call: ast.Call, dims: Mapping[str, int]) -> str | None:
    """Elements of the tensor that ``torch.rand(n, m)`` makes, as a formula; None for any other call."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in _DRAWS):
        return None
    sizes = [e for a in call.args for e in (a.elts if isinstance(a, ast.Tuple | ast.List) else [a])]
    formula = " * ".join(f"({ast.unparse(size)})" for size in sizes) or "1"
    try:
        evaluate_formula(formula, {k: float(v) for k, v in dims.items()})
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return formula
