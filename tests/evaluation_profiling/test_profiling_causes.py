"""Laws of the ranking: a cause is said before its symptom, and a unit limits only as far as warps wait for it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.measurement import Clock
from kbtui.domain.profile import Bottleneck, Evidence, KernelResources, Profile
from kbtui.evaluation.profiling import metrics
from kbtui.evaluation.profiling.case import Case, saturation
from kbtui.evaluation.profiling.counters import work_measured
from kbtui.evaluation.profiling.rules import findings
from kbtui.evaluation.profiling.work import Work

CHIP = replace(DATA_SHEETS["h200"], clock=Clock.MEASURED)
GIGABYTE = 1e9
STREAM_US = GIGABYTE / (CHIP.dram_gb_s * 1e3)
SHARE = st.floats(0.0, 1.0)
WAITS = ("long_scoreboard", "barrier", "short_scoreboard", "not_selected", "wait", "mio_throttle", "math_pipe_throttle")


@st.composite
def stalls(draw: st.DrawFn) -> tuple[tuple[str, float], ...]:
    """Reasons and their per cent, together 100."""
    parts = [draw(st.floats(0.01, 1.0)) for _ in WAITS]
    return tuple((name, 100.0 * part / sum(parts)) for name, part in zip(WAITS, parts, strict=True))


def streaming(work: Work, slower: float = 3.0) -> Case:
    """A problem that moves a gigabyte and hardly calculates, at so many times its bound."""
    return Case(CHIP, "float32", slower * STREAM_US, STREAM_US, GIGABYTE, GIGABYTE / 4, work)


def product(work: Work, time_us: float = 120.0) -> Case:
    """A half-precision product of 36 GFLOP on 40 MB."""
    return Case(CHIP, "float16", time_us, 36.0, 4e7, 3.6e10, work)


def weights(case: Case) -> dict[Bottleneck, float]:
    return {f.bottleneck: f.weight for f in findings(case)}


BASE = Work("counters", 1.0, 4.0, programs=8192.0, waves=20.0, dram_bytes=GIGABYTE, occupancy=1.0)


@given(busy=st.floats(0.4, 1.0), part=st.floats(0.5, 1.0), waits=stalls(), integer=st.booleans())
def test_busy_issue_slots_are_not_said_before_the_instructions_that_fill_them(
    busy: float, part: float, waits: tuple[tuple[str, float], ...], integer: bool
) -> None:
    share = max(0.4, busy * part)
    kind = {"integer_share": share} if integer else {"special_share": share}
    found = weights(streaming(replace(BASE, compute_share=busy, issue_share=busy, stalls=waits, **kind)))
    named = Bottleneck.INTEGER if integer else Bottleneck.SPECIAL
    assert found.get(Bottleneck.COMPUTE, 0.0) <= found.get(named, 0.0)


@given(waits=stalls(), busy=SHARE, special=SHARE, integer=SHARE, moved=st.floats(0.0, 1.0))
def test_the_more_warps_wait_for_memory_the_less_arithmetic_is_to_blame(
    waits: tuple[tuple[str, float], ...], busy: float, special: float, integer: float, moved: float
) -> None:
    work = replace(BASE, compute_share=busy, issue_share=busy, special_share=special, integer_share=integer)
    shifted = {name: pct * (1.0 - moved) for name, pct in waits}
    shifted["long_scoreboard"] += moved * sum(pct for _, pct in waits)
    before = weights(streaming(replace(work, stalls=waits)))
    after = weights(streaming(replace(work, stalls=tuple(shifted.items()))))
    for bottleneck in (Bottleneck.COMPUTE, Bottleneck.SPECIAL, Bottleneck.INTEGER):
        assert after.get(bottleneck, 0.0) <= before.get(bottleneck, 0.0) + 1e-3


@given(use=SHARE, more=SHARE)
def test_saturation_grows_with_use_and_half_a_unit_is_no_limit(use: float, more: float) -> None:
    assert saturation(min(use, more)) <= saturation(max(use, more))
    assert saturation(use) == (0.0 if use <= 0.5 else pytest.approx(min(1.0, (use - 0.5) / 0.3)))


@given(waits=stalls())
def test_a_barrier_of_a_product_gives_its_part_to_what_the_last_warp_waits_for(
    waits: tuple[tuple[str, float], ...],
) -> None:
    """Without it the warps would wait the same, only not there: the latency it hides is not counted twice."""
    work = replace(BASE, tensor_cores=True, sm_share=0.2, dram_bytes=4e7, stalls=waits)
    without = tuple((n, pct) for n, pct in waits if n != "barrier")
    scale = 100.0 / sum(pct for _, pct in without)
    plain = replace(work, stalls=tuple((n, pct * scale) for n, pct in without))
    found, expected = weights(product(work)), weights(product(plain))
    assert found.get(Bottleneck.LATENCY, 0.0) == pytest.approx(expected.get(Bottleneck.LATENCY, 0.0), abs=1e-3)


@given(efficiency=st.floats(0.0, 100.0), moved_gb=st.floats(0.1, 20.0))
def test_the_problems_own_bytes_are_asked_for_whatever_a_counter_says(efficiency: float, moved_gb: float) -> None:
    moved = moved_gb * GIGABYTE
    case = streaming(replace(BASE, asked_bytes=max(1.0, moved * efficiency / 100), moved_bytes=moved))
    assert case.sector_efficiency is not None
    assert min(1.0, GIGABYTE / moved) <= case.sector_efficiency + 1e-9
    assert case.sector_efficiency <= 1.0


def counted(**values: float) -> Profile:
    named = tuple(Evidence(getattr(metrics, name), value, "") for name, value in values.items())
    return Profile("s", named, (), ("k",))


TILE = KernelResources("k", "s", (448, 1, 1), 8, 3, 128, 0, 98304, 0.25, "registers", True, 16)
COPIES = replace(TILE, mix=(("async_copy", 24), ("load", 8)))
#: 1 GB loaded in whole sectors within 120 us.
LOADS = {"GLOBAL_LOAD_SECTORS": GIGABYTE / 32, "SECTORS_PER_LOAD": 16.0, "DURATION": 120_000.0, "L2_PCT": 25.0}


@given(l1_pct=st.floats(0.0, 100.0))
def test_shared_memory_is_no_cache_however_busy_the_store_they_share(l1_pct: float) -> None:
    work = work_measured(counted(**LOADS, L1_PCT=l1_pct), (TILE,), CHIP, 1.0)
    assert work.cache_share == pytest.approx(0.25)


def test_l1_counts_as_a_cache_by_what_it_does_for_global_memory() -> None:
    """Requests of one sector take a cycle each, as those of four do."""
    narrow = {**LOADS, "SECTORS_PER_LOAD": 1.0, "L2_PCT": 10.0}
    work = work_measured(counted(**narrow), (TILE,), CHIP, 1.0)
    cycles = 120e-6 * CHIP.sm_clock_mhz * 1e6 * CHIP.n_sms
    assert work.cache_share == pytest.approx(GIGABYTE / 32 / cycles)


@pytest.mark.parametrize("pct", [0.0, 4.0, 50.0, 100.0])
def test_bytes_that_the_counter_misses_of_asynchronous_copies_are_no_waste(pct: float) -> None:
    work = work_measured(counted(**LOADS, LOAD_EFFICIENCY=pct), (COPIES,), CHIP, 1.0)
    assert work.sector_efficiency == pytest.approx(1.0)
    assert work.load_bytes == pytest.approx(16.0)


def test_copies_of_four_bytes_a_lane_from_as_many_sectors_are_waste() -> None:
    strided = {**LOADS, "SECTORS_PER_LOAD": 32.0, "LOAD_EFFICIENCY": 6.25}
    work = work_measured(counted(**strided), (replace(COPIES, load_bytes_max=4),), CHIP, 1.0)
    assert work.sector_efficiency == pytest.approx(0.125)


def test_units_are_weighed_by_the_time_in_which_an_sm_has_work() -> None:
    half = {"SM_CYCLES_ACTIVE": 500.0, "SM_CYCLES_ELAPSED": 1000.0, "ISSUE_ACTIVE": 80.0, "XU_PCT": 60.0}
    work = work_measured(counted(**half), (TILE,), CHIP, 1.0)
    assert (work.issue_share, work.special_share, work.compute_share) == pytest.approx((0.4, 0.3, 0.3))


def test_a_loads_and_stores_pipe_is_not_arithmetic() -> None:
    work = work_measured(counted(SM_PCT=61.0, LSU_PCT=61.0, FMA_PCT=14.0, ALU_PCT=8.0), (TILE,), CHIP, 1.0)
    assert work.compute_share == pytest.approx(0.14)
    assert work.sm_share == pytest.approx(0.61)


def test_bandwidth_is_of_the_time_kernels_run_not_of_what_passes_beside_them() -> None:
    work = replace(BASE, kernels_us=1.05 * STREAM_US)
    found = findings(streaming(work, slower=1.8))
    assert found[0].bottleneck is Bottleneck.DRAM
