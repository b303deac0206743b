"""Where the bytes of an answer come from: a launch or an operation that was seen must have written every one.

Another thread, NumPy, a C library and an operation outside torch's dispatch modes leave no trace there, but they leave
one in memory: its contents are not what the last launch or operation left. So contents are summed after each, and
compared before the next and at the end. Effects: reads tensors.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.multiprocessing import reductions
from torch.utils._python_dispatch import _disable_current_modes

FOREIGN = "memory that no launch and no allowed operation wrote"
REWRITTEN = "memory written between launches, out of sight"
COMPUTED_BY_HOST = "values from the host that differ from call to call"
#: torch has no types for it.
StorageWeakRef: Any = reductions.StorageWeakRef
_WORD = 4
#: Smaller ones may be sizes and strides, which differ with the shape.
_TABLE_BYTES = 256


class Provenance:
    """The memory one candidate works in. ``arena``: first byte and length of the inputs' memory, which is not its own.

    ``strangers`` collects what is wrong, as words. Memory that nobody was seen to make counts as wrong only between
    ``begin(strict=True)`` and ``end``: calls that nobody watched may have made some.
    """

    def __init__(self, device: str, arena: tuple[int, int]) -> None:
        self.strangers: list[str] = []
        self.inputs_written = False
        self._device, self._arena = device, arena
        self._known: dict[int, tuple[Any, int]] = {}
        self._inputs: list[tuple[torch.Tensor, int]] = []
        self._tables: dict[int, int] = {}
        self._strict = False

    def begin(self, inputs: Iterable[Any], strict: bool) -> None:
        self.strangers, self.inputs_written, self._strict = [], False, strict
        self._take_over()
        mine = [x for x in inputs if isinstance(x, torch.Tensor) and x.numel()]
        self._inputs = [(x, _sum_of(x)) for x in mine]

    def before(self, arguments: Any, from_host: bool = False) -> None:
        """An operation or a launch is about to read these. ``from_host``: constants that Python brings are new."""
        for storage in self._storages(arguments):
            known = self._living(storage.data_ptr())
            if known is None and from_host:
                self._from_host(storage)
            elif known is None:
                if self._strict:
                    self._note(FOREIGN)
            elif known[1] != _sum_of_storage(storage):
                self._note(REWRITTEN)

    def _from_host(self, storage: torch.UntypedStorage) -> None:
        """A table made by Python is the same in every call; an answer computed there is not."""
        found = _sum_of_storage(storage)
        if storage.nbytes() >= _TABLE_BYTES and self._tables.setdefault(storage.nbytes(), found) != found:
            self._note(COMPUTED_BY_HOST)

    def wrote(self, results: Any) -> None:
        for storage in self._storages(results):
            self._known[storage.data_ptr()] = (StorageWeakRef(storage), _sum_of_storage(storage))

    def launched(self, arguments: Any) -> None:
        """A launch may write through addresses of any memory, so all of it is looked at again."""
        self.wrote(arguments)
        self._take_over()

    def _take_over(self) -> None:
        """What memory holds now is what it was left with: a kept workspace changes in calls that nobody watches."""
        for address in tuple(self._known):
            storage = self._storage(address)
            if storage is None:
                del self._known[address]
            else:
                self._known[address] = (self._known[address][0], _sum_of_storage(storage))

    def look_at_inputs(self) -> None:
        """Who computes into an input and puts it back afterwards deceives the referee, who looks at the end."""
        self.inputs_written = self.inputs_written or any(_sum_of(x) != before for x, before in self._inputs)

    def end(self, outputs: Sequence[Any]) -> None:
        self.before([o for o in outputs if type(o) is torch.Tensor])
        self._inputs, self._strict = [], False

    def _note(self, what: str) -> None:
        if what not in self.strangers:
            self.strangers.append(what)

    def _storages(self, values: Any) -> Iterator[torch.UntypedStorage]:
        seen = set()
        for tensor in _tensors(values):
            if tensor.device.type != self._device or tensor.layout is not torch.strided:
                continue
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
            if storage.nbytes() and address not in seen and not self._in_arena(address):
                seen.add(address)
                yield storage

    def _in_arena(self, address: int) -> bool:
        return self._arena[0] <= address < self._arena[0] + self._arena[1]

    def _living(self, address: int) -> tuple[Any, int] | None:
        known = self._known.get(address)
        return None if known is None or known[0].expired() else known

    def _storage(self, address: int) -> Any:
        ref = self._known[address][0]
        return None if ref.expired() else torch.UntypedStorage._new_with_weak_ptr(ref.cdata)


def warm_sums(device: str) -> None:
    """torch loads its own kernels at their first use."""
    _sum_of(torch.zeros(64, dtype=torch.int32, device=device))
    _sum_of(torch.zeros(5, dtype=torch.uint8, device=device))


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    """Those among arguments, in lists, and below Triton's tensor descriptors."""
    match values:
        case torch.Tensor():
            yield values
        case tuple() | list():
            for value in values:
                yield from _tensors(value)
        case dict():
            yield from _tensors(list(values.values()))
        case _ if isinstance(getattr(values, "base", None), torch.Tensor):
            yield values.base


def _sum_of(tensor: torch.Tensor) -> int:
    with _disable_current_modes():
        flat = tensor.reshape(-1).view(torch.uint8)
        n = flat.numel() // _WORD * _WORD
        words = flat[:n].view(torch.int32) if flat.storage_offset() % _WORD == 0 else flat[:n]
        return int(words.sum(dtype=torch.int64)) + int(flat[n:].sum(dtype=torch.int64))


def _sum_of_storage(storage: torch.UntypedStorage) -> int:
    with _disable_current_modes():
        whole = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
        return _sum_of(whole)
