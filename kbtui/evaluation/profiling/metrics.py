"""The Nsight Compute metrics that kbtui reads, and what each is for. Pure.

Names and meanings: Nsight Compute documentation, "Profiling Guide" (metrics reference and stall reasons). A chip or
version that lacks one leaves it out; nothing here may be required.
"""

#: Launches of one call that are profiled: each is replayed some twenty times.
MAX_LAUNCHES = 64

DURATION = "gpu__time_duration.sum"
SM_PCT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_PCT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_PCT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
L2_PCT = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
L1_PCT = "l1tex__throughput.avg.pct_of_peak_sustained_active"
DRAM_READ = "dram__bytes_read.sum"
DRAM_WRITE = "dram__bytes_write.sum"
L2_HIT = "lts__t_sector_hit_rate.pct"
L1_HIT = "l1tex__t_sector_hit_rate.pct"
ACHIEVED_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct"
ISSUE_ACTIVE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
REGISTERS = "launch__registers_per_thread"
SHARED = "launch__shared_mem_per_block"
GRID = "launch__grid_size"
BLOCK = "launch__block_size"
WAVES = "launch__waves_per_multiprocessor"
LIMIT_REGISTERS = "launch__occupancy_limit_registers"
LIMIT_SHARED = "launch__occupancy_limit_shared_mem"
LIMIT_WARPS = "launch__occupancy_limit_warps"
LIMIT_BLOCKS = "launch__occupancy_limit_blocks"
LOAD_EFFICIENCY = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
STORE_EFFICIENCY = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"
SECTORS_PER_LOAD = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"
SECTORS_PER_STORE = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"
GLOBAL_LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
GLOBAL_STORE_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
LOCAL_LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"
LOCAL_STORE_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"
BANK_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
SHARED_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
TENSOR_PCT = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
TENSOR_INSTRUCTIONS = "sm__inst_executed_pipe_tensor.sum"
FMA_PCT = "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"
ALU_PCT = "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active"
XU_PCT = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"
LSU_PCT = "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active"
INTEGER_INSTRUCTIONS = "smsp__sass_thread_inst_executed_op_integer_pred_on.sum"
FP32_INSTRUCTIONS = "smsp__sass_thread_inst_executed_op_fp32_pred_on.sum"
FP16_INSTRUCTIONS = "smsp__sass_thread_inst_executed_op_fp16_pred_on.sum"
#: Pipes that calculate; what loads, stores and shuffles go through is none of them.
ARITHMETIC_PIPES = (FMA_PCT, ALU_PCT, XU_PCT, TENSOR_PCT)
#: Cycles an SM had work, mean over the SMs, and cycles from the first to the last: their quotient is 1 without a tail.
SM_CYCLES_ACTIVE = "sm__cycles_active.avg"
SM_CYCLES_ELAPSED = "sm__cycles_elapsed.max"

#: Why a warp did not issue, as shown on the bottleneck pane.
STALLS = (
    "long_scoreboard", "short_scoreboard", "barrier", "wait", "math_pipe_throttle", "mio_throttle", "lg_throttle",
    "tex_throttle", "drain", "membar", "not_selected", "selected", "no_instruction", "dispatch_stall",
    "branch_resolving", "sleeping", "imc_miss", "misc", "gmma",
)  # fmt: skip

#: What a stall reason means, for who has not read ncu's manual; ``selected`` is no stall.
STALL_WORDS = {
    "long_scoreboard": "waits for device memory or L2",
    "short_scoreboard": "shared memory, special units",
    "barrier": "waits for the block's warps",
    "wait": "the last instruction's latency",
    "math_pipe_throttle": "the arithmetic unit is busy",
    "mio_throttle": "the shared-memory queue is full",
    "lg_throttle": "the load/store queue is full",
    "tex_throttle": "the texture queue is full",
    "drain": "its last stores are on their way",
    "membar": "waits for a memory fence",
    "not_selected": "ready, another warp was chosen",
    "selected": "issued: no stall",
    "no_instruction": "its code is not there yet",
    "dispatch_stall": "the dispatcher is busy",
    "branch_resolving": "waits for a branch",
    "imc_miss": "misses the constant cache",
    "gmma": "waits for the tensor core",
}

#: Stall reasons by the first compute capability that has them.
_STALLS_SINCE = {"gmma": 90}
#: Metrics by the first compute capability that has them.
_SINCE = {FP16_INSTRUCTIONS: 75}


def stall_metric(reason: str) -> str:
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


_ALWAYS: tuple[str, ...] = (
    DURATION, SM_PCT, MEMORY_PCT, DRAM_PCT, L2_PCT, L1_PCT, DRAM_READ, DRAM_WRITE, L2_HIT, L1_HIT,
    ACHIEVED_OCCUPANCY, THEORETICAL_OCCUPANCY, ISSUE_ACTIVE, REGISTERS, SHARED, GRID, BLOCK, WAVES,
    LIMIT_REGISTERS, LIMIT_SHARED, LIMIT_WARPS, LIMIT_BLOCKS, LOAD_EFFICIENCY, STORE_EFFICIENCY, SECTORS_PER_LOAD,
    SECTORS_PER_STORE, GLOBAL_LOAD_SECTORS, GLOBAL_STORE_SECTORS, LOCAL_LOAD_SECTORS, LOCAL_STORE_SECTORS,
    BANK_CONFLICTS, SHARED_WAVEFRONTS, TENSOR_PCT, TENSOR_INSTRUCTIONS, FMA_PCT, ALU_PCT, XU_PCT, LSU_PCT,
    INTEGER_INSTRUCTIONS, FP32_INSTRUCTIONS, FP16_INSTRUCTIONS, SM_CYCLES_ACTIVE, SM_CYCLES_ELAPSED,
)  # fmt: skip


def chosen(arch: int) -> tuple[str, ...]:
    """What is asked of ncu on a chip of this compute capability (90 for 9.0), in a stable order."""
    stalls = (stall_metric(reason) for reason in STALLS if _STALLS_SINCE.get(reason, 0) <= arch)
    return (*(name for name in _ALWAYS if _SINCE.get(name, 0) <= arch), *stalls)


#: Metrics that add up over a candidate's launches; all others are averaged, weighted by each launch's time.
SUMMED: frozenset[str] = frozenset(
    {
        DURATION, DRAM_READ, DRAM_WRITE, GLOBAL_LOAD_SECTORS, GLOBAL_STORE_SECTORS, LOCAL_LOAD_SECTORS,
        LOCAL_STORE_SECTORS, BANK_CONFLICTS, SHARED_WAVEFRONTS, TENSOR_INSTRUCTIONS, INTEGER_INSTRUCTIONS,
        FP32_INSTRUCTIONS, FP16_INSTRUCTIONS,
    }
)  # fmt: skip

#: Everything that is asked for on some architecture.
KNOWN: frozenset[str] = frozenset({*_ALWAYS, *map(stall_metric, STALLS)})
