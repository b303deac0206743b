from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.profile import KernelResources
from kbtui.evaluation.modelled.time import ModelledTime, model_time
from kbtui.evaluation.modelled.trace import CallTrace, DotTrace, LaunchTrace, TensorTraffic, TorchOp

A100, H200 = DATA_SHEETS["a100"], DATA_SHEETS["h200"]
ROWS, ROW_BYTES = 4096, 65536.0


def _tensor(number: int, **changes: float) -> TensorTraffic:
    return replace(TensorTraffic(number, ROWS * ROW_BYTES), **changes)


def _read(passes: float = 1.0) -> TensorTraffic:
    sectors = ROW_BYTES / 32
    return _tensor(0, load_bytes=ROW_BYTES * passes, load_sectors=sectors * passes, unique_load_sectors=sectors)


WRITTEN = _tensor(1, store_bytes=ROW_BYTES, store_sectors=ROW_BYTES / 32, unique_store_sectors=ROW_BYTES / 32)
SOFTMAX = LaunchTrace("k", (ROWS, 1, 1), 16, 3, (_read(), WRITTEN), phases=1.0, phase_bytes=ROW_BYTES, reductions=2.0,
                      alu_ops=2e5, sfu_ops=16384.0)  # fmt: skip
COMPILED = KernelResources("k", "s", (ROWS, 1, 1), 16, 3, 52, 0, 128, 0.5, "registers")


def _time(launch: LaunchTrace, resources: KernelResources | None = COMPILED, bound_us: float = 1.0) -> ModelledTime:
    known = {"k": resources} if resources else {}
    return model_time(CallTrace("s", (launch,)), known, A100, bound_us)


def test_a_streaming_kernel_takes_about_its_bytes_over_the_bandwidth() -> None:
    bound_us = 2 * ROWS * ROW_BYTES / (A100.dram_gb_s * 1e3)
    assert 1.05 * bound_us < _time(SOFTMAX).time_us < 1.35 * bound_us


def test_the_same_kernel_is_within_a_tenth_of_what_an_h200_measured() -> None:
    """134.3-135.5 us: a row softmax of 4096 x 16384 float32, one row a program, 16 warps, on one H200."""
    compiled = replace(COMPILED, registers=57)
    modelled = model_time(CallTrace("s", (SOFTMAX,)), {"k": compiled}, H200, 111.8)
    assert modelled.time_us == pytest.approx(134.9, rel=0.10)


def test_three_passes_are_slower_than_one() -> None:
    three = replace(SOFTMAX, tensors=(_read(3.0), WRITTEN), phases=3.0)
    assert _time(three).time_us > 1.1 * _time(SOFTMAX).time_us


def test_one_program_for_everything_is_many_times_slower() -> None:
    one = replace(SOFTMAX, grid=(1, 1, 1), tensors=tuple(_scaled(t, ROWS) for t in SOFTMAX.tensors), phases=4096.0,
                  alu_ops=2e5 * ROWS, sfu_ops=16384.0 * ROWS, reductions=2.0 * ROWS)  # fmt: skip
    assert _time(one).time_us > 20 * _time(SOFTMAX).time_us


def _scaled(tensor: TensorTraffic, factor: float) -> TensorTraffic:
    names = (
        "load_bytes",
        "load_sectors",
        "unique_load_sectors",
        "store_bytes",
        "store_sectors",
        "unique_store_sectors",
    )
    return replace(tensor, **{name: getattr(tensor, name) * factor for name in names})


def test_spilled_registers_cost_time() -> None:
    spilling = replace(COMPILED, spill_bytes=2000, registers=255)
    assert _time(SOFTMAX, spilling).time_us > 1.1 * _time(SOFTMAX).time_us


def test_uncoalesced_access_is_slower() -> None:
    scattered = _tensor(0, load_bytes=ROW_BYTES, load_sectors=ROW_BYTES / 4, unique_load_sectors=ROW_BYTES / 4)
    assert _time(replace(SOFTMAX, tensors=(scattered, WRITTEN))).time_us > 1.3 * _time(SOFTMAX).time_us


def test_more_launches_and_torch_operations_cost_time() -> None:
    twice = model_time(CallTrace("s", (replace(SOFTMAX, count=2.0),)), {"k": COMPILED}, A100, 1.0)
    assert twice.time_us > 1.9 * (_time(SOFTMAX).time_us - A100.launch_us)
    copied = model_time(CallTrace("s", (SOFTMAX,), (TorchOp("clone", 5e8),)), {"k": COMPILED}, A100, 1.0)
    assert copied.time_us > _time(SOFTMAX).time_us + 5e8 / (A100.dram_gb_s * 1e3)


def _matmul(m: int, n: int, k: int, num_warps: int) -> LaunchTrace:
    """4096^3 in float16 with a tile of m x n x k."""
    size, steps = 4096, 4096 // k
    a = TensorTraffic(0, size * size * 2.0, *_loads(m * size * 2))
    b = TensorTraffic(1, size * size * 2.0, *_loads(n * size * 2))
    dot = DotTrace(m, n, k, "fp16", "tf32", float(steps))
    grid = (size // m * size // n, 1, 1)
    return LaunchTrace("k", grid, num_warps, 3, (a, b), (dot,), phases=float(steps), overlap=2.5)


def _loads(n_bytes: float) -> tuple[float, float, float]:
    return n_bytes, n_bytes / 32, n_bytes / 32


def test_small_tiles_of_a_product_are_slower_than_large_ones() -> None:
    compiled = replace(COMPILED, mma=True, occupancy=0.25)
    large, small = _time(_matmul(128, 128, 32, 8), compiled), _time(_matmul(16, 16, 32, 4), compiled)
    assert small.time_us > 3 * large.time_us


def test_a_product_without_tensor_cores_is_slower() -> None:
    tensor, plain = replace(COMPILED, mma=True, occupancy=0.25), replace(COMPILED, mma=False, occupancy=0.25)
    assert _time(_matmul(128, 128, 32, 8), plain).time_us > 4 * _time(_matmul(128, 128, 32, 8), tensor).time_us


launches = st.builds(
    LaunchTrace,
    kernel=st.just("k"),
    grid=st.tuples(st.integers(1, 100_000), st.integers(1, 4), st.just(1)),
    num_warps=st.sampled_from([1, 2, 4, 8, 16, 32]),
    num_stages=st.integers(1, 5),
    tensors=st.just((_read(), WRITTEN)),
    phases=st.floats(0, 1e4),
    overlap=st.floats(1, 4),
    reductions=st.floats(0, 1e3),
    alu_ops=st.floats(0, 1e8),
    sfu_ops=st.floats(0, 1e8),
    local_trips=st.floats(1, 1e3),
)


@given(launch=launches, bound_us=st.floats(0.1, 1e5), spill=st.integers(0, 5000))
def test_no_modelled_time_is_under_the_bound_and_all_are_finite(
    launch: LaunchTrace, bound_us: float, spill: int
) -> None:
    found = _time(launch, replace(COMPILED, spill_bytes=spill), bound_us)
    assert bound_us <= found.time_us < float("inf")
    assert found == _time(launch, replace(COMPILED, spill_bytes=spill), bound_us)


@given(launch=launches, extra=st.floats(1.0, 10.0))
def test_more_arithmetic_is_never_faster(launch: LaunchTrace, extra: float) -> None:
    more = replace(launch, alu_ops=launch.alu_ops * extra, sfu_ops=launch.sfu_ops * extra)
    assert _time(more).time_us >= _time(launch).time_us * (1 - 1e-9)
