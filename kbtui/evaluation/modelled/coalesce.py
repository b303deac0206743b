"""How a block of addresses becomes warp-wide requests and 32-byte sectors. Pure; numpy only.

Triton gives each thread a vector along the block's contiguous dimension, as wide as alignment, contiguity and the
number of elements a thread holds allow (16 bytes at most), and consecutive threads consecutive vectors. A warp-wide
request then costs one transfer for each distinct 32-byte sector it touches (CUDA C++ Best Practices Guide,
"Coalesced Access to Global Memory").
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kbtui.evaluation.modelled.trace import SECTOR_BYTES

Addresses = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_LANES = 32
_WIDEST = 16
_SECTOR_SHIFT = np.uint64(SECTOR_BYTES.bit_length() - 1)


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of one load or store by one program.

    Attributes:
        n_bytes: bytes asked for.
        n_requests: warp-wide requests.
        n_sectors: sectors moved, counted request by request.
        sectors: the distinct sectors, sorted.
        vector_bytes: bytes a thread moves in one request.
    """

    n_bytes: int
    n_requests: int
    n_sectors: int
    sectors: Addresses
    vector_bytes: int


def requests_of(addresses: Addresses, mask: Mask, item_bytes: int, n_threads: int) -> Requests:
    """Requests for a block of byte addresses of any shape; masked-off elements cost nothing."""
    addresses, mask = np.broadcast_arrays(np.asarray(addresses), np.asarray(mask))
    if not mask.any():
        return Requests(0, 0, 0, np.empty(0, np.uint64), item_bytes)
    addresses, mask = _fastest_last(addresses, mask, item_bytes)
    vector = _vector_items(addresses, mask, item_bytes, n_threads)
    ids, active = _by_warp(addresses.reshape(-1), mask.reshape(-1), _LANES * vector)
    n_sectors = int(np.count_nonzero(_first_of_its_request(ids, active)))
    n_requests = int(active.any(axis=1).sum())
    return Requests(int(mask.sum()) * item_bytes, n_requests, n_sectors, np.unique(ids[active]), vector * item_bytes)


def _fastest_last(addresses: Any, mask: Any, item_bytes: int) -> tuple[Any, Any]:
    """Transpose so that a contiguous dimension, where there is one, comes last."""
    for axis in range(addresses.ndim - 1, -1, -1):
        if addresses.shape[axis] > 1 and _step(addresses, axis) == item_bytes:
            return np.moveaxis(addresses, axis, -1), np.moveaxis(mask, axis, -1)
    return addresses, mask


def _step(addresses: Any, axis: int) -> int:
    first = [0] * addresses.ndim
    second = list(first)
    second[axis] = 1
    return int(addresses[tuple(second)]) - int(addresses[tuple(first)])


def _vector_items(addresses: Any, mask: Any, item_bytes: int, n_threads: int) -> int:
    """Elements a thread moves at once."""
    if addresses.ndim == 0 or addresses.shape[-1] == 1 or _step(addresses, addresses.ndim - 1) != item_bytes:
        return 1
    width = addresses.shape[-1]
    vector = max(1, min(_WIDEST // item_bytes, width, addresses.size // max(n_threads, 1)))
    vector = 1 << (vector.bit_length() - 1)
    starts = addresses[..., 0]
    held = mask.sum(axis=-1)
    while vector > 1 and (width % vector or np.any(starts % (vector * item_bytes)) or np.any(held % vector)):
        vector //= 2
    return int(vector)


def _by_warp(addresses: Any, mask: Any, group: int) -> tuple[Any, Any]:
    """Sector numbers and mask, one row for each warp-wide request."""
    n_groups = -(-addresses.size // group)
    ids = np.zeros(n_groups * group, np.uint64)
    active = np.zeros(n_groups * group, np.bool_)
    ids[: addresses.size] = addresses >> _SECTOR_SHIFT
    active[: mask.size] = mask
    return ids.reshape(n_groups, group), active.reshape(n_groups, group)


def _first_of_its_request(ids: Any, active: Any) -> Any:
    """Where a sector is met for the first time in its request; rows are sorted only if they have to be."""
    nowhere = np.iinfo(np.uint64).max
    ids = np.where(active, ids, nowhere)
    if np.any(ids[:, 1:] < ids[:, :-1]):
        ids = np.sort(ids, axis=1)
    first = np.ones(ids.shape, np.bool_)
    first[:, 1:] = ids[:, 1:] != ids[:, :-1]
    return first & (ids != nowhere)
