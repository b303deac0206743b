"""Integer options of a launch (``num_warps``, ``num_stages``, ``maxnreg``): finding and setting them. Pure."""

from collections.abc import Callable, Iterable, Iterator

import libcst as cst

from kbtui.generation.rewrites.rewrite import Edit
from kbtui.generation.rewrites.source import Launch, Replacement, Source, integers_behind
from kbtui.generation.rewrites.syntax import is_autotuned, param_names, with_keyword


def edits_of_option(
    source: Source,
    option: str,
    applies: Callable[[Launch], bool],
    steps: Callable[[int | None], Iterable[int]],
) -> Iterator[Edit]:
    """Edits that set one launch's option. ``steps`` gives new values for the present one (None: not an integer).

    An option bound to several integers (one a case) has them all scaled by the same factor.
    """
    for launch in source.launches:
        # An autotuned kernel takes its options from its configurations and refuses others.
        # One that a kernel has as a parameter of its own is that, whatever its name.
        kernel = source.kernels[launch.kernel]
        if not applies(launch) or is_autotuned(kernel) or option in param_names(kernel):
            continue
        integers = _present(source, launch, option)
        values = [int(i.value) for i in integers]
        for new in steps(max(values) if values else None):
            scaled = [max(1, value * new // max(values)) for value in values] if len(values) > 1 else [new]
            code = source.code_with(_changes(launch, option, integers, scaled))
            before = "/".join(map(str, values)) or ("as computed" if launch.keyword(option) else "default")
            after = "/".join(map(str, scaled))
            yield Edit(code, f"{option} {before} to {after} in {launch.kernel}", ((option, after),))


def _changes(
    launch: Launch, option: str, integers: list[cst.Integer], values: list[int]
) -> dict[cst.CSTNode, Replacement]:
    if len(integers) > 1:
        return {i: cst.Integer(str(v)) for i, v in zip(integers, values, strict=True)}
    return {launch.call: _setter(option, values[0])}


def _setter(option: str, value: int) -> Callable[[cst.CSTNode], cst.CSTNode]:
    return lambda call: with_keyword(cst.ensure_type(call, cst.Call), option, cst.Integer(str(value)))


def _present(source: Source, launch: Launch, option: str) -> list[cst.Integer]:
    arg = launch.keyword(option)
    return integers_behind(source, launch, arg.value) if arg is not None else []
