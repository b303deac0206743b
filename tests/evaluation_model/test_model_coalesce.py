import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.evaluation.modelled.coalesce import requests_of

BASE = 1 << 20


def _block(n: int, step_bytes: int, start: int = BASE) -> np.ndarray:
    return (start + step_bytes * np.arange(n)).astype(np.uint64)


def test_contiguous_floats_move_nothing_but_what_is_asked() -> None:
    found = requests_of(_block(1024, 4), np.True_, 4, n_threads=128)
    assert (found.n_bytes, found.n_sectors, found.vector_bytes) == (4096, 128, 16)
    assert found.n_requests == 1024 // (32 * 4)


def test_a_stride_of_a_sector_moves_eight_times_what_is_asked() -> None:
    found = requests_of(_block(1024, 32), np.True_, 4, n_threads=128)
    assert found.n_sectors == 1024
    assert found.vector_bytes == 4


def test_lanes_that_read_one_address_share_its_sector() -> None:
    found = requests_of(_block(64, 0), np.True_, 4, n_threads=32)
    assert found.n_sectors == 2
    assert found.sectors.size == 1


@pytest.mark.parametrize(("start", "width"), [(BASE, 16), (BASE + 8, 8), (BASE + 4, 4)])
def test_vectors_are_as_wide_as_the_alignment_allows(start: int, width: int) -> None:
    assert requests_of(_block(1024, 4, start), np.True_, 4, n_threads=64).vector_bytes == width


def test_vectors_are_no_wider_than_a_thread_has_elements() -> None:
    assert requests_of(_block(256, 4), np.True_, 4, n_threads=256).vector_bytes == 4


def test_a_mask_that_ends_inside_a_vector_narrows_it() -> None:
    mask = np.arange(1024) < 1021
    assert requests_of(_block(1024, 4), mask, 4, n_threads=128).vector_bytes == 4


def test_a_tile_is_read_along_its_contiguous_side_whichever_that_is() -> None:
    rows, columns = np.arange(32)[:, None], np.arange(64)[None, :]
    tile = (BASE + 4 * (rows * 4096 + columns)).astype(np.uint64)
    along, across = requests_of(tile, np.True_, 4, 128), requests_of(tile.T, np.True_, 4, 128)
    assert along.n_sectors == across.n_sectors == 32 * 64 * 4 // 32


def test_nothing_active_costs_nothing() -> None:
    found = requests_of(_block(32, 4), np.False_, 4, 32)
    assert (found.n_bytes, found.n_requests, found.n_sectors, found.sectors.size) == (0, 0, 0, 0)


@given(
    offsets=st.lists(st.integers(0, 4000), min_size=1, max_size=200),
    mask_bits=st.lists(st.booleans(), min_size=200, max_size=200),
    item=st.sampled_from([2, 4, 8]),
)
def test_sectors_are_never_fewer_than_the_distinct_ones_nor_more_than_the_lanes(
    offsets: list[int], mask_bits: list[bool], item: int
) -> None:
    addresses = BASE + item * np.array(offsets, np.uint64)
    mask = np.array(mask_bits[: len(offsets)])
    found = requests_of(addresses, mask, item, 32)
    distinct = {int(a) // 32 for a, m in zip(addresses, mask, strict=True) if m}
    assert set(found.sectors.tolist()) == distinct
    assert len(distinct) <= found.n_sectors <= int(mask.sum())
    assert found.n_bytes == item * int(mask.sum())
