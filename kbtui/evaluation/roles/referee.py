"""Effects: the trusted role that makes inputs, knows what is expected, and judges what candidates left in the mailbox.

No candidate's code runs here, and nothing expected ever lies in memory that a candidate maps. A seed makes the same
inputs again, so the inputs in shared memory are checked bit for bit against fresh ones.
"""

import contextlib
import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.problem import Problem
from kbtui.evaluation.process import Attached
from kbtui.evaluation.reference import LoadedReference, load_reference
from kbtui.evaluation.roles import oracle
from kbtui.evaluation.roles.arena import Arena, CpuArena, CudaArena, tensor_at
from kbtui.evaluation.roles.known import Known
from kbtui.evaluation.roles.layout import Argument, Constant, Layout, Slot, end_of_guard, place
from kbtui.evaluation.roles.nudge import nudge, nudged
from kbtui.evaluation.roles.outputs import as_outputs
from kbtui.evaluation.roles.poison import is_poison, poison

DEVICE_VARIABLE = "KBTUI_DEVICE"
#: Arena spare for alignment and the mailbox of shapes whose outputs were not foreseen.
_ROOM = 1 << 20
#: What torch may keep cached here between shapes: candidates need memory too.
_CACHE_KEPT = 8 << 30
#: Part of the device's memory that inputs and answers kept for the next candidate may take.
_KNOWN_SHARE, _KNOWN_BYTES_ON_CPU = 12, 64 << 20


class Referee:
    """One problem. ``fds``: on the CPU, the arena's memfd."""

    def __init__(self, fds: tuple[int, ...]) -> None:
        torch.set_grad_enabled(False)
        _exact_arithmetic()
        self._device = os.environ.get(DEVICE_VARIABLE, "cpu")
        self._arena: Arena | None = CpuArena(fds[0]) if fds else None
        self._reference: LoadedReference | None = None
        self._shape: dict[str, Any] = {}
        self._layout = Layout((), ())
        self._seeds: list[int] = []
        self._expected: dict[int, list[oracle.Expected]] = {}
        self._last: list[torch.Tensor] = []
        self._nudges: list[str] = []
        self._known = Known(0)

    def open(self, problem: dict[str, Any]) -> None:
        """Import the reference. Raises what it raises."""
        self._reference = load_reference(from_plain(Problem, problem))
        self._known = Known(_room_for_known(self._device))

    def bytes_needed(self, shapes: list[dict[str, Any]], copies: int) -> int:
        """Arena bytes for the largest of these shapes; inputs are made on ``meta`` where the problem allows it."""
        return max((self._bytes_of(s, copies) for s in shapes), default=0) + _ROOM

    def make_arena(self, n_bytes: int) -> Attached:
        """Allocate device memory for inputs and mailbox; the payload is its handle. A smaller arena is kept."""
        if not isinstance(self._arena, CudaArena) or self._arena.n_bytes < n_bytes:
            self._arena = CudaArena.allocate(n_bytes)
        return Attached(self._arena.n_bytes, self._arena.handle)

    def prepare(self, shape: dict[str, Any], distribution: str, seeds: list[int]) -> dict[str, Any]:
        """Put one copy of the inputs a seed into the arena and poison the mailbox; returns the layout.

        One seed is a question of the gate, which the next candidate will be asked too: its answer is kept.
        """
        self._forget()
        self._shape, self._seeds = {**shape, "distribution": distribution}, list(seeds)
        copies, end = [], 0
        for seed in seeds:
            inputs = self._inputs(seed)
            slots, end = _slots_of(inputs, end)
            copies.append(slots)
            self._fill(slots, inputs)
        outputs, _ = place(self._output_sizes(seeds[0]), end)
        self._layout = Layout(tuple(copies), outputs)
        self.clear()
        return {"layout": self._layout.to_plain(), "context": to_plain(self._loaded.context_of(_dims(shape)))}

    def refill(self, seeds: list[int]) -> None:
        """New values at the same addresses, and a poisoned mailbox."""
        self._expected.clear()
        self._nudges.clear()
        self._seeds = list(seeds)
        for slots, seed in zip(self._layout.copies, seeds, strict=True):
            self._fill(slots, self._inputs(seed))
        self.clear()

    def nudge(self, seed: str) -> None:
        """Change a part of every copy's inputs in place, and a poisoned mailbox."""
        self._expected.clear()
        self._nudges.append(seed)
        for slots in self._layout.copies:
            nudge([tensor_at(self._mapped, s) for s in slots if isinstance(s, Slot)], seed)
        self.clear()

    def clear(self) -> None:
        """Poison the mailbox, so that an old answer cannot be judged twice."""
        for slot in self._layout.outputs:
            poison(tensor_at(self._mapped, slot))
        self._wait()

    def judge(self, copy: int, repeat: bool = False, during: str = "") -> dict[str, Any]:
        """Errors of the mailbox's outputs for copy ``copy`` of the inputs; with ``repeat``, whether they are the same
        as at the last judgement, bit for bit. ``during``: the nudge under which the output was computed and which was
        undone since. The mailbox is poisoned afterwards."""
        got = [tensor_at(self._mapped, slot).clone() for slot in self._layout.outputs]
        self._wait()
        inputs = self._inputs(self._seeds[copy])
        modified = [i for i, a in enumerate(self._layout.copies[copy]) if not _same(self._mapped, a, inputs[i])]
        if during:
            self._expected.clear()
            inputs = nudged(inputs, during)
        expected = self._expected_of(copy, inputs)
        if during:
            self._expected.clear()
        del inputs
        errors = [asdict(oracle.measure(g, e)) for g, e in zip(got, expected, strict=True)]
        same = self._same_as_last(got) if repeat else None
        self._last = got if sum(g.numel() for g in got) < oracle.CHUNK else []
        self.clear()
        return {"errors": errors, "modified": modified, "same": same}

    def _same_as_last(self, got: list[torch.Tensor]) -> bool | None:
        if not self._last:
            return None
        return all(_same_bits(a, b) for a, b in zip(got, self._last, strict=True))

    def sound(self) -> bool:
        """Whether the device still answers here; a sticky CUDA error raises."""
        self._wait()
        return True

    def release(self) -> None:
        """Give memory back between shapes."""
        self._forget()
        self._known.clear()
        if self._device == "cuda":
            torch.cuda.empty_cache()

    def operations(self, shape: dict[str, Any], distribution: str) -> list[dict[str, Any]]:
        """The reference's tensor operations on a small shape, for the family."""
        from kbtui.evaluation.roles.tracing import traced_operations

        inputs = self._loaded.make_inputs(_dims(shape), 0, "cpu", distribution, **_dtype(shape))
        return traced_operations(self._loaded.reference, inputs)

    @property
    def _mapped(self) -> Arena:
        if self._arena is None:
            raise RuntimeError("no arena is mapped")
        return self._arena

    @property
    def _loaded(self) -> LoadedReference:
        if self._reference is None:
            raise RuntimeError("no problem is open")
        return self._reference

    def _inputs(self, seed: int) -> tuple[Any, ...]:
        """What lies in the arena for this seed, nudges included. Not to be written to."""
        known = self._seeds == [seed]
        made = self._known.inputs(self._question(seed), lambda: self._made(seed)) if known else self._made(seed)
        for nudge_seed in self._nudges:
            made = nudged(made, nudge_seed)
        return made

    def _made(self, seed: int, device: str | None = None) -> tuple[Any, ...]:
        shape = self._shape
        made = self._loaded.make_inputs(
            _dims(shape), seed, device or self._device, shape["distribution"], **_dtype(shape)
        )
        return tuple(x.contiguous() if isinstance(x, torch.Tensor) else x for x in made)

    def _question(self, seed: int) -> tuple[Any, ...]:
        shape = self._shape
        return (tuple(_dims(shape).items()), shape["dtype"], shape["distribution"], seed)

    def _fill(self, slots: tuple[Argument, ...], inputs: tuple[Any, ...]) -> None:
        for slot, value in zip(slots, inputs, strict=True):
            if isinstance(slot, Slot):
                tensor_at(self._mapped, slot).copy_(value)
                poison(_guard(self._mapped, slot))
        self._wait()

    def _expected_of(self, copy: int, inputs: tuple[Any, ...]) -> list[oracle.Expected]:
        if copy not in self._expected:
            self._expected.clear()
            self._expected[copy] = self._answered(copy, inputs)
        return self._expected[copy]

    def _answered(self, copy: int, inputs: tuple[Any, ...]) -> list[oracle.Expected]:
        question = self._question(self._seeds[copy])
        if question in self._known and inputs is self._known.inputs(question, lambda: inputs):
            return self._known.expected(question, lambda copies: oracle.expect(self._loaded.reference, copies))
        return oracle.expect(self._loaded.reference, inputs)

    def _output_sizes(self, seed: int) -> list[tuple[tuple[int, ...], str]]:
        """The reference's outputs on copy 0; kept, for it is judged against soon."""
        expected = self._expected_of(0, self._inputs(seed))
        return [(tuple(e.own.shape), str(e.own.dtype).removeprefix("torch.")) for e in expected]

    def _bytes_of(self, shape: dict[str, Any], copies: int) -> int:
        self._shape = {**shape, "distribution": shape["distribution"]}
        inputs = self._made_small(shape)
        _, end = _slots_of(inputs, 0)
        outputs = as_outputs(self._loaded.reference(*inputs))
        _, whole = place([(tuple(o.shape), str(o.dtype).removeprefix("torch.")) for o in outputs], end * copies)
        return whole

    def _made_small(self, shape: dict[str, Any]) -> tuple[Any, ...]:
        try:
            inputs = self._made(0, "meta")
            self._loaded.reference(*inputs)
            return inputs
        except Exception:
            # A problem whose inputs or reference cannot do without values is made in full, one shape at a time.
            return self._made(0)

    def _forget(self) -> None:
        self._expected.clear()
        self._nudges.clear()
        self._last = []
        if self._device == "cuda" and torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > _CACHE_KEPT:
            torch.cuda.empty_cache()

    def _wait(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    referee = Referee(fds)
    names = (
        "open", "bytes_needed", "make_arena", "prepare", "refill", "nudge", "clear", "judge", "sound", "release",
        "operations",
    )  # fmt: skip
    return {name: getattr(referee, name) for name in names}


def _room_for_known(device: str) -> int:
    """Bytes that kept questions may take."""
    if device != "cuda":
        return _KNOWN_BYTES_ON_CPU
    return int(torch.cuda.get_device_properties(0).total_memory // _KNOWN_SHARE)


def _exact_arithmetic() -> None:
    """The reference's own error is that of its dtype: no TF32, no half-precision accumulation."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def _dims(shape: dict[str, Any]) -> dict[str, int]:
    return {str(name): int(size) for name, size in shape["dims"]}


def _dtype(shape: dict[str, Any]) -> dict[str, str]:
    return {"dtype": shape["dtype"]}


def _slots_of(inputs: tuple[Any, ...], start: int) -> tuple[tuple[Argument, ...], int]:
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    slots, end = place([(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in tensors], start)
    following = iter(slots)
    return tuple(next(following) if isinstance(x, torch.Tensor) else Constant(x) for x in inputs), end


def _same(arena: Arena, argument: Argument, value: Any) -> bool:
    if not isinstance(argument, Slot):
        return True
    untouched = bool(is_poison(_guard(arena, argument)).all())
    return untouched and _same_bits(tensor_at(arena, argument), value)


def _guard(arena: Arena, slot: Slot) -> torch.Tensor:
    """The free bytes after a tensor, from the first that 8 divides: poison has whole words."""
    begin = -(-(slot.offset + slot.n_bytes) // 8) * 8
    return arena.bytes(begin, end_of_guard(slot) - begin).view(torch.int64)


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit, eight bytes at a time where both can be seen so."""
    with contextlib.suppress(RuntimeError):
        return torch.equal(_words(one, torch.int64), _words(other, torch.int64))
    return torch.equal(_words(one, torch.uint8), _words(other, torch.uint8))


def _words(tensor: torch.Tensor, word: torch.dtype) -> torch.Tensor:
    """Raises RuntimeError where its bytes do not divide into such words."""
    return tensor.reshape(-1).view(word) if tensor.numel() else tensor.reshape(-1)
