"""One of an autotuned kernel's configurations, chosen in the open: the decorator goes, its values join the launch."""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import argument, code_of, dotted, values_of, with_keyword

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name, kernel in source.kernels.items():
        decorator = next((d for d in kernel.decorators if dotted(d.decorator).endswith("autotune")), None)
        if decorator is None or not isinstance(decorator.decorator, cst.Call):
            continue
        launches = [launch.call for launch in source.launches if launch.kernel == name]
        for number, config in enumerate(_configs(source, decorator.decorator), 1):
            values = _values(config)
            if values is None or not launches:
                continue
            changes: dict[cst.CSTNode, Replacement] = dict.fromkeys(launches, _setter(values))
            code = source.code_with({**changes, decorator: cst.RemoveFromParent()})
            params = tuple((key, code_of(value)) for key, value in values.items())
            chosen = ", ".join(f"{key}={value}" for key, value in params)
            yield Edit(code, f"autotune of {name} frozen at configuration {number} ({chosen})", params)


def _configs(source: Source, autotune: cst.Call) -> list[cst.Call]:
    """The configurations written out in a list, at the decorator or in a module constant."""
    configs = argument(autotune, "configs", 0)
    if isinstance(configs, cst.Name):
        bound = values_of(source.module, configs.value)
        configs = bound[0] if len(bound) == 1 else None
    if not isinstance(configs, cst.List):
        return []
    return [e.value for e in configs.elements if m.matches(e.value, m.Call()) and isinstance(e.value, cst.Call)]


def _values(config: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """A configuration's constants and options; None where its constants are not a literal dict."""
    constants = argument(config, "kwargs", 0)
    if not isinstance(constants, cst.Dict):
        return None
    values: dict[str, cst.BaseExpression] = {}
    for element in constants.elements:
        if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
            return None
        values[str(element.key.evaluated_value)] = element.value
    options = {option: argument(config, option) for option in _OPTIONS}
    return values | {option: value for option, value in options.items() if value is not None}


def _setter(values: dict[str, cst.BaseExpression]) -> Replacement:
    def set_all(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        for name, value in values.items():
            call = with_keyword(call, name, value.deep_clone())
        return call

    return set_all


REWRITE = Rewrite(
    "freeze_autotune",
    "a kernel under @triton.autotune with its configurations written out",
    (Bottleneck.UNKNOWN, Bottleneck.LAUNCH),
    ("freeze_autotune",),
    _edits,
)
