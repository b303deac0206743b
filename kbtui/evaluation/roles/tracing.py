"""The tensor operations of a reference, traced with torch.fx on real inputs. Runs in the referee only."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx


def traced_operations(reference: Callable[..., Any], inputs: Sequence[Any]) -> list[dict[str, Any]]:
    """Name, tensor inputs' shapes, output shape and reduced dims of each operation. Raises what tracing raises."""
    tensors = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]

    def of_tensors(*given: torch.Tensor) -> Any:
        whole = list(inputs)
        for i, x in zip(tensors, given, strict=True):
            whole[i] = x
        return reference(*whole)

    graph = make_fx(of_tensors)(*[inputs[i] for i in tensors])
    return [_plain(node) for node in graph.graph.nodes if node.op == "call_function" and _shape(node) is not None]


def _plain(node: torch.fx.Node) -> dict[str, Any]:
    name = getattr(node.target, "_schema", None)
    name = name.name.split("::")[-1] if name is not None else str(node.target)
    shapes = [_shape(a) for a in node.all_input_nodes]
    return {
        "name": name,
        "inputs": [s for s in shapes if s is not None],
        "output": _shape(node),
        "dims": _dims(node),
    }


def _shape(node: torch.fx.Node) -> list[int] | None:
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    if isinstance(value, (tuple, list)):
        value = next((v for v in value if v is not None and hasattr(v, "shape")), None)
    return [int(n) for n in value.shape] if value is not None and hasattr(value, "shape") else None


def _dims(node: torch.fx.Node) -> list[int]:
    """The second argument where it is a dim or a list of dims, as in softmax, mean, sum and amax."""
    if len(node.args) < 2:
        return []
    dims = node.args[1]
    if isinstance(dims, int) and not isinstance(dims, bool):
        return [dims]
    return [int(d) for d in dims if isinstance(d, int)] if isinstance(dims, (list, tuple)) else []
