"""Effects: what a baseline's child calls in place of a candidate, by name, on the device of its inputs.

``eager``, ``compile`` (torch.compile as it is), ``max-autotune`` and ``max-autotune-no-cudagraphs`` (its modes of those
names: with CUDA graphs every input is copied into the graph's own memory, inside the window), ``liger`` and
``flaggems`` (a public library's kernel for the same operation, if it is installed and has one), ``copy`` and ``read``
(no operation: bytes at the rate the memory gives them, for the bandwidth in the same turns).
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from kbtui.evaluation.baselines import CEILING_BYTES, CEILINGS, COMPILED, EAGER, LIBRARIES
from kbtui.evaluation.roles.candidate import device

Call = Callable[..., Any]

_CEILING_BYTES_ON_CPU = 1 << 22
#: A library's kernel of another operation is off by its whole norm; TF32 and half precision are not.
_SAME_OPERATION = 2e-2
_ROW = 1 << 16


def baseline_call(name: str, reference: Call, family: str | None) -> Call:
    """The callable of that name. Raises LookupError where there is none, ImportError where a library cannot load."""
    if name == EAGER:
        return reference
    if name in COMPILED:
        mode = COMPILED[name]
        return torch.compile(reference, mode=mode) if mode else torch.compile(reference)
    if name in LIBRARIES:
        return _checked(name, library_call(name, family), reference)
    if name in CEILINGS:
        return _ceiling(name)
    raise LookupError(f"no baseline is named {name!r}")


def library_call(name: str, family: str | None) -> Call:
    """A library's kernel for a family of operations, on the reference's own arguments.

    Raises LookupError where it has no such kernel, installed or not, or the problem names no family; ImportError where
    it is not installed or does not load here.
    """
    module = LIBRARIES[name]
    made = _KERNELS[name].get(family)
    if made is None and family is not None:
        raise LookupError(f"{module} has no kernel for this operation")
    try:
        loaded = importlib.import_module(module)
        if made is not None:
            return made(loaded)
    except ModuleNotFoundError as missing:
        what = f"{module} is not installed" if missing.name == module else f"{module} needs {missing.name}"
        raise ImportError(what) from missing
    raise LookupError(f"{module} is asked by the problem's family: name it in problem.toml")


def _liger_softmax(_: Any) -> Call:
    from liger_kernel.ops import LigerSoftmaxFunction  # type: ignore[import-not-found, unused-ignore]

    return lambda x: LigerSoftmaxFunction.apply(x)


def _flaggems_conv(gems: Any) -> Call:
    return lambda x, weight: gems.conv2d(x, weight, padding=1, groups=x.shape[1] // weight.shape[1])


#: By library and family, out of the imported module. Liger's RMSNorm and that of FlagGems are over the last dimensions
#: with a gain, Liger's linear layers end in losses: other operations. FlagGems' linear layer is three kernels in a row.
_KERNELS: Mapping[str, Mapping[str | None, Callable[[Any], Call]]] = {
    "liger": {"row_softmax": _liger_softmax},
    "flaggems": {
        "row_softmax": lambda gems: lambda x: gems.softmax(x, -1),
        "mat_vec": lambda gems: lambda matrix, vector: gems.mv(matrix, vector),
        "conv": _flaggems_conv,
        "linear_relu_div": lambda gems: lambda x, w, b: gems.true_divide(gems.relu(gems.addmm(b, x, w.t())), 2.0),
        "attention": lambda gems: lambda q, k, v: gems.scaled_dot_product_attention(q, k, v),
    },
}


def _checked(name: str, call: Call, reference: Call) -> Call:
    """The same call; its first answer is held against the reference's. Raises ArithmeticError where it is another."""
    seen: list[bool] = []

    def checked(*inputs: Any) -> Any:
        found = call(*inputs)
        if not seen:
            seen.append(True)
            expected = reference(*inputs)
            error = float((found.float() - expected.float()).norm() / expected.float().norm())
            if not error <= _SAME_OPERATION:
                raise ArithmeticError(f"{name} computes something else here: relative error {error:.2g}")
        return found

    return checked


def _ceiling(name: str) -> Call:
    """Half of the bytes copied to the other half; or all of them read, and a number a row written."""
    n_bytes = CEILING_BYTES if device() == "cuda" else _CEILING_BYTES_ON_CPU
    source = torch.ones(n_bytes // (8 if name == "copy" else 4), device=device())
    if name == "copy":
        target = torch.empty_like(source)
        return lambda *_: target.copy_(source)
    sums = torch.empty(source.numel() // _ROW, device=source.device)
    if device() == "cpu":
        return lambda *_: torch.sum(source.view(-1, _ROW), dim=1, out=sums)
    from kbtui.evaluation.roles.read_kernel import read_rows

    return lambda *_: read_rows(source, sums, _ROW)
