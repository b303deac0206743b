"""The float64 answer, the reference's own error, and a candidate's error beside both. Runs in the referee only."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kbtui.evaluation.gate.tolerance import OWN_ELEMENT_FACTOR, OutputErrors
from kbtui.evaluation.roles.outputs import as_outputs
from kbtui.evaluation.roles.poison import is_poison

#: Elements compared at a time: double copies of a 1 GB output would not fit beside its inputs.
CHUNK = 1 << 25
#: Elements over which another pass costs nothing.
SMALL = 1 << 20
#: An oracle computed slice by slice must agree with the whole reference to this relative error.
SLICED_AGREEMENT = 0.05

Reference = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Expected:
    """One output: the float64 oracle and the reference in the problem's dtype, with its own error.

    ``squares`` is the sum of the oracle's squares where all of it, and of the reference's answer, is finite in the
    output's dtype too; None where something is not, and every position's kind must be compared.
    """

    oracle: torch.Tensor
    own: torch.Tensor
    own_rel_l2: float
    own_max_abs: float
    squares: float | None = None

    @property
    def n_bytes(self) -> int:
        return self.oracle.nbytes + self.own.nbytes


def expect(reference: Reference, inputs: Sequence[Any]) -> list[Expected]:
    """Oracle and own error of every output. Raises what the reference raises."""
    own = [o.contiguous() for o in as_outputs(reference(*inputs))]
    oracle = [o.contiguous() for o in oracle_outputs(reference, inputs, own)]
    return [_with_own_error(exact, mine) for exact, mine in zip(oracle, own, strict=True)]


def _with_own_error(exact: torch.Tensor, mine: torch.Tensor) -> Expected:
    squares = _squares(exact, mine)
    if squares and (apart := _apart(exact, mine)) is not None:
        difference, largest = apart
        return Expected(exact, mine, math.sqrt(difference / squares), largest, squares)
    norm = _Norms()
    for x, y in _chunks(exact, mine):
        norm.add(x, y.double(), torch.isfinite(x) & torch.isfinite(y))
    return Expected(exact, mine, norm.rel_l2, norm.max_abs, squares)


def _squares(exact: torch.Tensor, mine: torch.Tensor) -> float | None:
    total = 0.0
    for x, y in _chunks(exact, mine):
        if not bool((torch.isfinite(x.to(y.dtype)) & torch.isfinite(y)).all()):
            return None
        total += float(torch.linalg.vector_norm(x.double())) ** 2
    return total if math.isfinite(total) else None


def _apart(exact: torch.Tensor, value: torch.Tensor) -> tuple[float, float] | None:
    """(sum of squares, largest) of the difference; None where some of ``value`` is not finite, or nothing is there."""
    total = largest = 0.0
    for x, y in _chunks(exact, value):
        difference = x - y if x.is_floating_point() else x.double() - y.double()
        norms = torch.stack([torch.linalg.vector_norm(difference), torch.linalg.vector_norm(difference, math.inf)])
        two, most = norms.tolist()
        total, largest = total + two * two, max(largest, most)
    # A sum that is finite has finite terms, and NaN spoils it.
    return (total, largest) if exact.numel() and math.isfinite(total) else None


def oracle_outputs(reference: Reference, inputs: Sequence[Any], own: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The reference in float64; slice by slice along the first dimension, or on the CPU, where memory is short."""
    try:
        return as_outputs(reference(*[_double(x) for x in inputs]))
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
    sliced = _sliced(reference, inputs, own)
    if sliced is not None:
        return sliced
    on_host = as_outputs(reference(*[_double(x, "cpu") for x in inputs]))
    return [o.to(own[0].device) for o in on_host]


def measure(got: torch.Tensor, expected: Expected) -> OutputErrors:
    """Errors of one output; ``got`` is the referee's own copy."""
    return _measured_at_once(got, expected) or _measured_by_kind(got, expected)


def _measured_at_once(got: torch.Tensor, expected: Expected) -> OutputErrors | None:
    """Three passes where everything is finite, which it is as long as nothing is wrong; else None."""
    apart = _apart(expected.oracle, got) if expected.squares else None
    if apart is None or not expected.squares:
        return None
    difference, largest = apart
    n, worst = expected.oracle.numel(), _worst(got, expected, largest)
    return OutputErrors(
        math.sqrt(difference / expected.squares), largest, worst, math.sqrt(expected.squares / n),
        expected.own_rel_l2, expected.own_max_abs, 0, -1, 0, n, _there(expected, worst),
    )  # fmt: skip


def _worst(got: torch.Tensor, expected: Expected, largest: float) -> int:
    """Where the largest difference is, looked for only where it may be a fault: another pass over all of it."""
    if expected.oracle.numel() > SMALL and largest <= OWN_ELEMENT_FACTOR * expected.own_max_abs:
        return -1
    offset = 0
    for x, y in _chunks(expected.oracle, got):
        difference = (x.double() - y.double()).abs_()
        at = int(difference.argmax())
        if float(difference[at]) == largest:
            return offset + at
        offset += x.numel()
    return -1


def _measured_by_kind(got: torch.Tensor, expected: Expected) -> OutputErrors:
    norm = _Norms()
    wrong, first, unwritten, offset = 0, -1, 0, 0
    for exact, mine, theirs in _chunks(expected.oracle, expected.own, got):
        value = theirs.double()
        finite = torch.isfinite(exact) & torch.isfinite(value)
        norm.add(exact, value, finite)
        bad = _nonfinite_wrong(exact.to(mine.dtype), mine, theirs)
        n_bad = int(bad.sum())
        if n_bad:
            first = first if first >= 0 else offset + int(bad.int().argmax())
            unwritten += int((bad & is_poison(theirs)).sum()) if theirs.is_floating_point() else 0
            wrong += n_bad
        offset += exact.numel()
    return OutputErrors(
        norm.rel_l2, norm.max_abs, norm.worst, norm.rms, expected.own_rel_l2, expected.own_max_abs,
        wrong, first, unwritten, expected.oracle.numel(), _there(expected, norm.worst),
    )  # fmt: skip


def _there(expected: Expected, index: int) -> float:
    return abs(float(expected.oracle.reshape(-1)[index])) if index >= 0 else 0.0


def _nonfinite_wrong(exact: torch.Tensor, own: torch.Tensor, got: torch.Tensor) -> torch.Tensor:
    """Where the kind (finite, NaN, +Inf, -Inf) is neither the oracle's in the output's dtype nor the reference's."""
    return (_kind(got) != _kind(exact)) & (_kind(got) != _kind(own))


def _kind(x: torch.Tensor) -> torch.Tensor:
    if not x.is_floating_point():
        return torch.zeros_like(x, dtype=torch.int8)
    return torch.isnan(x).to(torch.int8) + 2 * torch.isposinf(x).to(torch.int8) + 3 * torch.isneginf(x).to(torch.int8)


class _Norms:
    """Sums over chunks: squared difference and squared oracle, largest difference and where."""

    def __init__(self) -> None:
        self._difference = self._oracle = self.max_abs = 0.0
        self._n = self._seen = 0
        self.worst = -1

    def add(self, exact: torch.Tensor, value: torch.Tensor, finite: torch.Tensor) -> None:
        exact = torch.where(finite, exact, 0.0)
        difference = torch.where(finite, value, 0.0).sub_(exact).abs_()
        self._difference += float(difference.square().sum())
        self._oracle += float(exact.square().sum())
        largest, index = difference.max(dim=0)
        if float(largest) > self.max_abs:
            self.max_abs, self.worst = float(largest), self._seen + int(index)
        self._n += int(finite.sum())
        self._seen += exact.numel()

    @property
    def rel_l2(self) -> float:
        if self._oracle > 0:
            return float((self._difference / self._oracle) ** 0.5)
        return 0.0 if self._difference == 0 else float("inf")

    @property
    def rms(self) -> float:
        return float((self._oracle / self._n) ** 0.5) if self._n else 0.0


def _double(x: Any, device: str | None = None) -> Any:
    if isinstance(x, torch.Tensor):
        return x.to(device=device or x.device, dtype=torch.float64 if x.is_floating_point() else x.dtype)
    return x


def _sliced(reference: Reference, inputs: Sequence[Any], own: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    """One row of the leading dimension at a time, if that is the same function: checked against ``own``."""
    n = own[0].shape[0] if own[0].dim() else 0
    batched = [isinstance(x, torch.Tensor) and x.dim() == own[0].dim() and x.shape[0] == n for x in inputs]
    if n < 2 or not any(batched) or any(o.dim() == 0 or o.shape[0] != n for o in own):
        return None
    oracle = [torch.empty(o.shape, dtype=torch.float64, device=o.device) for o in own]
    for i in range(n):
        part = [_double(x[i : i + 1] if b else x) for x, b in zip(inputs, batched, strict=True)]
        for whole, piece in zip(oracle, as_outputs(reference(*part)), strict=True):
            whole[i : i + 1] = piece
    for whole, mine in zip(oracle, own, strict=True):
        norm = _Norms()
        for x, y in _chunks(whole, mine):
            norm.add(x, y.double(), torch.isfinite(x) & torch.isfinite(y))
        if norm.rel_l2 > SLICED_AGREEMENT:
            return None
    return oracle


def _chunks(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    flat = [t.reshape(-1) for t in tensors]
    for start in range(0, flat[0].numel(), CHUNK):
        yield tuple(f[start : start + CHUNK] for f in flat)
