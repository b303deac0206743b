"""Matrix-vector product, the long dimension split among programs that add into the answer with atomics.

y_i = sum_p sum_{k in part p} A_ik b_k, the sum over parts by atomic additions into zeros: no second kernel, but the
order of additions, and with it the last bit, may differ from call to call.
"""

import torch
import triton
import triton.language as tl

ROWS = 1
TILE = 4096
NUM_WARPS = 8
PROGRAMS_PER_SM = 4
STAGES = 1
N_SMS = 132


@triton.jit
def add_part_of_rows(
    matrix_ptr, vector_ptr, out_ptr, matrix_row, matrix_col, vector_step, n_rows, n_cols, part_cols, n_parts,
    ROWS: tl.constexpr, TILE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0) % n_parts
    rows = (tl.program_id(0) // n_parts).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    row_ptrs = matrix_ptr + rows[:, None] * matrix_row
    stop = tl.minimum((part + 1) * part_cols, n_cols)
    products = tl.zeros((ROWS, TILE), tl.float32)
    for start in tl.range(part * part_cols, stop, TILE, num_stages=STAGES):
        cols = start + tl.arange(0, TILE)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < stop)
        a = tl.load(row_ptrs + cols[None, :] * matrix_col, mask=mask, other=0.0, eviction_policy="evict_first")
        b = tl.load(vector_ptr + cols * vector_step, mask=cols < stop, other=0.0, eviction_policy="evict_last")
        products += a.to(tl.float32) * b.to(tl.float32)[None, :]
    tl.atomic_add(out_ptr + rows, tl.sum(products, axis=1), mask=rows < n_rows)


def kernel_function(matrix, vector):
    n_rows, n_cols = matrix.shape
    # Sums of parts are added in fp32 whatever the dtype.
    total = torch.zeros((n_rows, *vector.shape[1:]), dtype=torch.float32, device=matrix.device)
    tile = min(TILE, triton.next_power_of_2(n_cols))
    row_blocks = triton.cdiv(n_rows, ROWS)
    wanted_parts = max(1, N_SMS * PROGRAMS_PER_SM // row_blocks)
    part_cols = triton.cdiv(triton.cdiv(n_cols, wanted_parts), tile) * tile
    n_parts = triton.cdiv(n_cols, part_cols)
    add_part_of_rows[(row_blocks * n_parts,)](
        matrix, vector, total, matrix.stride(0), matrix.stride(1), vector.stride(0), n_rows, n_cols, part_cols,
        n_parts, ROWS=ROWS, TILE=tile, STAGES=STAGES, num_warps=NUM_WARPS,
    )  # fmt: skip
    return total.to(matrix.dtype)
