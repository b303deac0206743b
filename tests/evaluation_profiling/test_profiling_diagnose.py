from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.device import DATA_SHEETS, DeviceSpec
from kbtui.domain.measurement import Clock
from kbtui.domain.problem import ProblemSpec, ShapeRole
from kbtui.domain.profile import Bottleneck, Diagnosis, Evidence, KernelResources, Profile
from kbtui.evaluation.profiling import metrics
from kbtui.evaluation.profiling.diagnose import diagnose
from kbtui.problems import load_problem

A100 = DATA_SHEETS["a100"]
MEASURED = replace(A100, key="cuda:0", name="NVIDIA A100-SXM4-80GB", clock=Clock.MEASURED)
SOFTMAX = load_problem("softmax").spec
LINEAR = load_problem("linear_relu_div").spec
ROW = KernelResources("k", "4096x16384", (4096, 1, 1), 16, 3, 52, 0, 128, 0.5, "registers")
BYTES = SOFTMAX.bytes_moved(SOFTMAX.shapes_of(ShapeRole.TUNE)[0])
BOUND_US = BYTES / (A100.dram_gb_s * 1e3)


def _diagnose(
    time_us: float,
    resources: KernelResources = ROW,
    spec: ProblemSpec = SOFTMAX,
    n_shape: int = 0,
    n_launches: int = 1,
    device: DeviceSpec = MEASURED,
    **counters: float,
) -> Diagnosis:
    shape = spec.shapes_of(ShapeRole.TUNE)[n_shape]
    named = tuple(Evidence(getattr(metrics, name), value, "") for name, value in counters.items() if name.isupper())
    stalls = tuple((name, value) for name, value in counters.items() if not name.isupper())
    profile = Profile(shape.name, named, stalls, ("k",)) if counters else None
    return diagnose(spec, device, shape, time_us, [resources], profile, n_launches=n_launches)


def _first(diagnosis: Diagnosis) -> Bottleneck:
    return diagnosis.findings[0].bottleneck


SECTORS = BYTES / 2 / 32
CLEAN = {
    "DRAM_READ": BYTES / 2, "DRAM_WRITE": BYTES / 2, "LOAD_EFFICIENCY": 100.0, "STORE_EFFICIENCY": 100.0,
    "GLOBAL_LOAD_SECTORS": SECTORS, "GLOBAL_STORE_SECTORS": SECTORS, "SM_PCT": 25.0, "THEORETICAL_OCCUPANCY": 50.0,
    "GRID": 4096.0, "WAVES": 19.0,
}  # fmt: skip


def test_a_kernel_near_the_bound_is_said_to_be_so_in_a_sentence() -> None:
    found = _diagnose(BOUND_US / 0.93, **CLEAN)
    assert _first(found) is Bottleneck.AT_BOUND
    assert found.sentence == "Memory bound: 93 % of the A100's 2.04 TB/s; 7 % left to the bound."
    assert found.source == "counters"


@pytest.mark.parametrize(
    ("bottleneck", "time_us", "counters"),
    [
        (Bottleneck.DRAM, BOUND_US / 0.7, {}),
        (Bottleneck.EXTRA_PASSES, BOUND_US * 2.3, {"DRAM_READ": 1.5 * BYTES}),
        (Bottleneck.UNCOALESCED, BOUND_US * 6, {"LOAD_EFFICIENCY": 12.5, "GLOBAL_LOAD_SECTORS": 8 * SECTORS}),
        (Bottleneck.SPILLS, BOUND_US * 4, {"LOCAL_LOAD_SECTORS": 6 * SECTORS, "LOCAL_STORE_SECTORS": 3 * SECTORS}),
        (Bottleneck.TOO_FEW_PROGRAMS, BOUND_US * 30, {"GRID": 4.0, "WAVES": 0.02}),
        (Bottleneck.BARRIER, BOUND_US * 5, {"barrier": 70.0, "long_scoreboard": 5.0}),
        (Bottleneck.BANK_CONFLICTS, BOUND_US * 5,
         {"BANK_CONFLICTS": 90.0, "SHARED_WAVEFRONTS": 100.0, "mio_throttle": 60.0}),
        (Bottleneck.LATENCY, BOUND_US * 6, {"long_scoreboard": 90.0}),
        (Bottleneck.OCCUPANCY_REGISTERS, BOUND_US * 5,
         {"THEORETICAL_OCCUPANCY": 6.0, "LIMIT_REGISTERS": 1.0, "LIMIT_SHARED": 8.0, "long_scoreboard": 20.0}),
        (Bottleneck.OCCUPANCY_SHARED, BOUND_US * 5,
         {"THEORETICAL_OCCUPANCY": 6.0, "LIMIT_REGISTERS": 4.0, "LIMIT_SHARED": 1.0, "long_scoreboard": 20.0}),
        (Bottleneck.COMPUTE, BOUND_US * 3, {"SM_PCT": 92.0}),
        (Bottleneck.NARROW, BOUND_US * 4, {"SECTORS_PER_LOAD": 4.0, "long_scoreboard": 90.0}),
        (Bottleneck.TAIL, BOUND_US * 2.2,
         {"GRID": 1.01 * 864, "WAVES": 1.01, "SM_CYCLES_ACTIVE": 520.0, "SM_CYCLES_ELAPSED": 1000.0}),
        (Bottleneck.SPECIAL, BOUND_US * 3, {"SM_PCT": 85.0, "XU_PCT": 85.0}),
        (Bottleneck.INTEGER, BOUND_US * 3,
         {"SM_PCT": 88.0, "ALU_PCT": 88.0, "ISSUE_ACTIVE": 90.0, "INTEGER_INSTRUCTIONS": 95.0,
          "FP32_INSTRUCTIONS": 5.0, "FP16_INSTRUCTIONS": 0.0}),
    ],
)  # fmt: skip
def test_counters_name_the_bottleneck(bottleneck: Bottleneck, time_us: float, counters: dict[str, float]) -> None:
    resources = replace(ROW, spill_bytes=2000) if bottleneck is Bottleneck.SPILLS else ROW
    found = _diagnose(time_us, resources, **{**CLEAN, **counters})
    assert _first(found) is bottleneck, found
    assert found.findings[0].evidence


@pytest.mark.parametrize(
    ("bottleneck", "time_us", "changes"),
    [
        (Bottleneck.AT_BOUND, BOUND_US * 1.08, {}),
        (Bottleneck.SPILLS, BOUND_US * 6, {"spill_bytes": 4000}),
        (Bottleneck.TOO_FEW_PROGRAMS, BOUND_US * 40, {"grid": (1, 1, 1)}),
        (Bottleneck.OCCUPANCY_REGISTERS, BOUND_US * 6, {"occupancy": 0.06}),
        (Bottleneck.OCCUPANCY_SHARED, BOUND_US * 6, {"occupancy": 0.06, "limiter": "shared memory"}),
        (Bottleneck.DRAM, BOUND_US * 1.5, {}),
    ],
)
def test_compiled_resources_alone_name_the_bottleneck(
    bottleneck: Bottleneck, time_us: float, changes: dict[str, object]
) -> None:
    found = _diagnose(time_us, replace(ROW, **changes))
    assert _first(found) is bottleneck, found
    assert found.source == "compiled"


def test_operands_fetched_again_are_cache_thrash_where_reuse_is_the_point() -> None:
    tile = KernelResources("k", "s", (2048, 1, 1), 8, 3, 128, 0, 32768, 0.25, "registers", mma=True)
    shape = LINEAR.shapes_of(ShapeRole.TUNE)[2]
    n_bytes = LINEAR.bytes_moved(shape)
    found = _diagnose(
        6 * n_bytes / (A100.dram_gb_s * 1e3) / 0.8, tile, LINEAR, n_shape=2, DRAM_READ=6 * n_bytes, SM_PCT=20.0,
        TENSOR_PCT=15.0, L2_PCT=75.0, GLOBAL_LOAD_SECTORS=40 * n_bytes / 32, LOAD_EFFICIENCY=100.0, GRID=2048.0,
        WAVES=20.0,
    )  # fmt: skip
    assert _first(found) is Bottleneck.CACHE, found
    assert "Cache thrash" in found.sentence


def test_spilled_registers_are_not_taken_for_passes_over_the_problems_data() -> None:
    found = _diagnose(
        BOUND_US * 6,
        **{**CLEAN, "DRAM_READ": 2.5 * BYTES, "DRAM_WRITE": 2 * BYTES, "LOCAL_LOAD_SECTORS": 5 * SECTORS,
           "LOCAL_STORE_SECTORS": 3 * SECTORS},
    )  # fmt: skip
    assert _first(found) is Bottleneck.SPILLS
    assert Bottleneck.EXTRA_PASSES not in [f.bottleneck for f in found.findings]


def test_a_few_instructions_in_the_tensor_pipe_are_no_use_of_tensor_cores() -> None:
    tile = KernelResources("k", "s", (2048, 1, 1), 8, 3, 128, 0, 32768, 0.25, "registers", mma=False)
    shape = LINEAR.shapes_of(ShapeRole.TUNE)[2]
    plain_us = LINEAR.flops(shape) / (A100.fp32_tflops * 1e6)
    found = _diagnose(1.3 * plain_us, tile, LINEAR, n_shape=2, TENSOR_PCT=0.04, TENSOR_INSTRUCTIONS=1e6, SM_PCT=70.0)
    assert _first(found) is Bottleneck.NO_TENSOR_CORES


def test_many_launches_are_launch_bound_whatever_each_of_them_leaves_idle() -> None:
    found = _diagnose(200.0, replace(ROW, grid=(1, 1, 1)), n_shape=1, n_launches=32)
    assert _first(found) is Bottleneck.LAUNCH
    assert "32 kernels" in found.sentence


def test_a_small_shape_is_launch_bound() -> None:
    found = _diagnose(6.8, replace(ROW, grid=(132, 1, 1)), n_shape=1, n_launches=2)
    assert _first(found) is Bottleneck.LAUNCH
    assert "2 kernels" in found.sentence


def test_a_product_on_cuda_cores_is_told_of_tensor_cores() -> None:
    tile = KernelResources("k", "s", (2048, 1, 1), 8, 3, 128, 0, 32768, 0.25, "registers", mma=False)
    shape = LINEAR.shapes_of(ShapeRole.TUNE)[2]
    plain_us = LINEAR.flops(shape) / (A100.fp32_tflops * 1e6)
    found = _diagnose(1.3 * plain_us, tile, LINEAR, n_shape=2)
    assert _first(found) is Bottleneck.NO_TENSOR_CORES
    assert "ensor cores are not used" in found.sentence


def test_headroom_is_against_the_problem_not_the_busy_unit() -> None:
    """97.8 % of the speed of light is no praise for a kernel that moves four times the bytes it needs."""
    found = _diagnose(BOUND_US * 4.3, **{**CLEAN, "DRAM_READ": 3.5 * BYTES, "DRAM_PCT": 97.8})
    assert _first(found) is Bottleneck.EXTRA_PASSES
    assert found.headroom == pytest.approx(4.3, rel=0.01)


def test_a_profile_that_was_not_made_counts_as_none() -> None:
    shape = SOFTMAX.shapes_of(ShapeRole.TUNE)[0]
    refused = Profile(shape.name, not_profiled="counters need permission")
    found = diagnose(SOFTMAX, MEASURED, shape, BOUND_US * 1.5, [ROW], refused)
    assert found.source == "compiled"


counter_names = [n for n in vars(metrics) if n.isupper() and isinstance(getattr(metrics, n), str)]


@given(
    time_us=st.floats(0.01, 1e7),
    counters=st.dictionaries(st.sampled_from(counter_names), st.floats(0, 1e13), max_size=12),
    stall=st.floats(0, 100),
    occupancy=st.floats(0, 1),
    spill=st.integers(0, 100_000),
    grid=st.integers(1, 10_000_000),
    n_shape=st.integers(0, 2),
    spec=st.sampled_from([SOFTMAX, LINEAR]),
)
def test_there_is_always_a_ranked_finding_and_a_sentence(
    time_us: float, counters: dict[str, float], stall: float, occupancy: float, spill: int, grid: int, n_shape: int,
    spec: ProblemSpec,
) -> None:  # fmt: skip
    resources = replace(ROW, occupancy=occupancy, spill_bytes=spill, grid=(grid, 1, 1))
    found = _diagnose(time_us, resources, spec, n_shape, **counters, **({"barrier": stall} if counters else {}))
    weights = [f.weight for f in found.findings]
    assert weights
    assert weights == sorted(weights, reverse=True)
    assert all(0.0 <= w <= 1.0 for w in weights)
    assert found.sentence.endswith(".")
    assert "nan" not in found.sentence
