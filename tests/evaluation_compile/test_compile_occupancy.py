"""The arithmetic of resident blocks, against figures of NVIDIA's calculator and as laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.device import DATA_SHEETS
from kbtui.evaluation.compile.listing import read_listing
from kbtui.evaluation.compile.occupancy import occupancy

A100 = DATA_SHEETS["a100"]
REGISTERS, SHARED, WARPS = st.integers(0, 255), st.integers(0, 166_912), st.sampled_from([1, 2, 4, 8, 16, 32])


@pytest.mark.parametrize(
    ("registers", "shared", "num_warps", "blocks", "limiter"),
    [
        (32, 0, 8, 8, "registers"),
        (16, 0, 4, 16, "warps"),
        (16, 0, 1, 32, "blocks"),
        (255, 0, 8, 1, "registers"),
        (64, 49152, 4, 3, "shared memory"),
        (32, 163 * 1024, 4, 1, "shared memory"),
        (32, 163 * 1024 + 1, 4, 0, "shared memory"),
    ],
)
def test_cases_of_compute_capability_8_0(
    registers: int, shared: int, num_warps: int, blocks: int, limiter: str
) -> None:
    got = occupancy(A100, registers=registers, shared_bytes=shared, num_warps=num_warps)
    assert (got.blocks, got.limiter, got.warps) == (blocks, limiter, blocks * num_warps)


@given(REGISTERS, SHARED, WARPS)
def test_what_is_resident_fits(registers: int, shared: int, num_warps: int) -> None:
    got = occupancy(A100, registers=registers, shared_bytes=shared, num_warps=num_warps)
    assert 0 <= got.fraction <= 1
    assert got.warps * 32 * registers <= A100.registers_per_sm
    assert got.blocks * shared <= A100.shared_per_sm


@given(REGISTERS, SHARED, WARPS)
def test_asking_for_more_never_fits_more(registers: int, shared: int, num_warps: int) -> None:
    less = occupancy(A100, registers=registers, shared_bytes=shared, num_warps=num_warps)
    more = occupancy(A100, registers=registers + 8, shared_bytes=shared + 1024, num_warps=num_warps)
    assert more.blocks <= less.blocks


def test_a_listing_adds_spills_and_takes_the_most_registers() -> None:
    log = """
ptxas info    : Function properties for helper
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers
ptxas info    : Function properties for main
    0 bytes stack frame, 8 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 96 registers, used 1 barriers
"""
    ptx = "\tld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];\n\tmma.sync.aligned.m16n8k16.row.col\n"
    got = read_listing(log, ptx)
    assert (got.registers, got.spill_bytes, got.mma, got.load_bytes_max) == (96, 24, True, 16)


def test_a_listing_sees_asynchronous_copies_and_nothing_where_there_is_nothing() -> None:
    copies = "cp.async.cg.shared.global [ %r36 + 0 ], [ %rd1 + 0 ], 0x10, %r37;"
    assert read_listing("", copies).load_bytes_max == 16
    assert read_listing("", "ret;").mma is False
