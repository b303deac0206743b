"""Answers of kernels that compute nothing, for one set of inputs. Runs in the vetting role only."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from kbtui.evaluation.vetting.lazy import Lazy, lazy_answers
from kbtui.evaluation.vetting.reductions import Reduction, doubled, in_double

#: Bits of mantissa kept of an input: what one-pass TF32 and fp16 keep of fp32, what fp8 (e4m3) keeps of fp16.
KEPT_BITS = {torch.float64: 10, torch.float32: 10, torch.float16: 3, torch.bfloat16: 3}
_MANTISSA_BITS = 52


def null_answers(
    reference: Callable[..., Any],
    inputs: Sequence[Any],
    answer: Sequence[torch.Tensor],
    others: Mapping[str, Sequence[Any]],
    reductions: Sequence[Reduction],
    names: Sequence[str],
) -> Iterator[Lazy]:
    """One after the other, for a few of them fit into memory at once. ``answer`` is the oracle's, in float64.

    ``others``: other inputs of the same sizes, by the null kernel's name that answers them instead. An output for which
    there is nothing to leave out (the mean of one element) is None.
    """
    function = in_double(reference)
    for name, make in _OF_ANSWER.items():
        yield Lazy(name, [make(y) if _can_differ(name, y) else None for y in answer])
    for i, x in enumerate(inputs):
        if isinstance(x, torch.Tensor) and any(x.shape == y.shape for y in answer):
            returned = [doubled(x) if x.shape == y.shape else None for y in answer]
            yield Lazy(f"{names[i] if i < len(names) else f'input {i}'} returned", returned)
    for name, other in others.items():
        yield Lazy(name, [*function(*other)])
    yield Lazy("rounded inputs", [*function(*map(_rounded, inputs))])
    yield from lazy_answers(function, list(map(doubled, inputs)), reductions, names)


def _uniform(y: torch.Tensor) -> torch.Tensor:
    return torch.full_like(y, 1.0 / y.shape[-1])


def _last_missing(y: torch.Tensor) -> torch.Tensor:
    missing = y.clone()
    missing[..., -1] = 0
    return missing


_OF_ANSWER: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "nan": lambda y: torch.full_like(y, float("nan")),
    "mean": lambda y: torch.full_like(y, float(_finite(y).mean())),
    "row means": lambda y: y.mean(-1, keepdim=True).expand_as(y).contiguous(),
    "uniform weights": _uniform,
    "first row": lambda y: y[:1].expand_as(y).contiguous(),
    "last column missing": _last_missing,
}


def _can_differ(name: str, y: torch.Tensor) -> bool:
    """Whether the null kernel leaves out any work there: the mean of one element is that element."""
    match name:
        case "mean":
            return y.numel() > 1
        case "row means" | "uniform weights" | "last column missing":
            return y.dim() > 0 and y.shape[-1] > 1
        case "first row":
            return y.dim() > 0 and y.shape[0] > 1
    return y.numel() > 0


def _finite(y: torch.Tensor) -> torch.Tensor:
    finite = y[torch.isfinite(y)]
    return finite if finite.numel() else torch.zeros(1, dtype=y.dtype, device=y.device)


def _rounded(x: Any) -> Any:
    """To the nearest value with fewer bits of mantissa and the same exponents."""
    if not (isinstance(x, torch.Tensor) and x.is_floating_point()):
        return x
    dropped = _MANTISSA_BITS - KEPT_BITS[x.dtype]
    bits = x.double().contiguous().view(torch.int64)
    half = 1 << (dropped - 1)
    return ((bits + half) & ~((1 << dropped) - 1)).view(torch.float64)
