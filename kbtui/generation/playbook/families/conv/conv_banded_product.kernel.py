"""Grouped convolution on tensor cores, several rows at once: the taps lie in bands of a small matrix.

y[(r, o), c] = sum_dx D_dx[(r, o), c + dx], D_dx[(r, o), c] = sum_(q, i) W_dx[(r, o), (q, i)] x[i, q, c], and
W_dx[(r, o), (q, i)] = w[o, i, q - r, dx] where q - r is a row of the kernel, else 0. Rows and channels of a block fill
a tile's left side even for a group of four channels, and its right side is x as it lies in memory: each pixel is loaded
once for a block, by whole vectors. Only the sums are shifted along the row, among the lanes of a warp; in half
precision split into even and odd columns, as a thread holds them in pairs: where the shift is odd, half of them change
names and half move. A program walks down some blocks with its bands at hand. Tensor cores: for fp32 in three TF32
passes (Ootomo and Yokota 2022, arXiv:2203.03341), sums in fp32. An Inf or NaN in x reaches the whole block, for it is
multiplied by zeros too.
"""

import torch
import triton
import triton.language as tl

STRIDE = 1
PADDING = 1
DILATION = 1
LEFT = 32
COLUMNS = 128
OUT_CHANNELS = 8
IN_CHANNELS = 16
PROGRAMS_PER_SM = 4
NUM_WARPS = 4
STAGES = 3
PRECISION = "tf32x3"
N_SMS = 132
# Of a column of pixels that a product takes; with twice as many, fp32's two parts of bands and pixels spill.
K_BYTES = 128


@triton.jit
def bands_of(
    w_ptr, first_out, first_in, dx, w_out, w_in, w_y, w_x, in_per_group, out_per_group, M: tl.constexpr,
    K: tl.constexpr, OUT: tl.constexpr, IN: tl.constexpr, KERNEL_H: tl.constexpr, STRIDE: tl.constexpr,
    DILATION: tl.constexpr,
):  # fmt: skip
    """W_dx, for output channels from first_out and input channels from first_in of the group."""
    m, k = tl.arange(0, M)[:, None], tl.arange(0, K)[None, :]
    out, channel = first_out + m % OUT, first_in + k % IN
    below = k // IN - (m // OUT) * STRIDE
    dy = below // DILATION
    inside = (below >= 0) & (dy < KERNEL_H) & (dy * DILATION == below)
    mask = inside & (out < out_per_group) & (channel < in_per_group)
    return tl.load(w_ptr + out * w_out + channel * w_in + dy * w_y + dx * w_x, mask=mask, other=0.0)


@triton.jit
def half_shifted(halves, by: tl.constexpr, M: tl.constexpr, PAIRS: tl.constexpr):
    """Of sums split into even and odd columns: those at columns 2 * pair + by, and zero past the ends."""
    half = halves[0] if by % 2 == 0 else halves[1]
    if by // 2 == 0:
        return half
    else:
        from_pair = tl.arange(0, PAIRS) + by // 2
        some = (from_pair >= 0) & (from_pair < PAIRS)
        index = tl.broadcast_to(tl.where(some, from_pair, 0)[None, :], (M, PAIRS))
        return tl.where(some[None, :], tl.gather(half, index, 1), 0.0)


@triton.jit
def banded_product(
    x_ptr, weight_ptr, out_ptr, x_image, x_channel, x_row, x_column, w_out, w_in, w_y, w_x,
    out_image, out_channel, out_row, out_column, height, width, out_h, out_w, n_groups, in_per_group, out_per_group,
    n_out_tiles, walks, column_tiles, blocks, IN_TILES: tl.constexpr, HALO: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, M: tl.constexpr, K: tl.constexpr, OUT: tl.constexpr, IN: tl.constexpr,
    KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    DILATION: tl.constexpr, STAGES: tl.constexpr, BY_PAIRS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % (walks * column_tiles)
    first_out = ((tl.program_id(0) // (walks * column_tiles)) % n_out_tiles) * OUT
    plane = tl.program_id(0) // (walks * column_tiles * n_out_tiles)
    group = plane % n_groups
    image = (plane // n_groups).to(tl.int64)
    x_group = x_ptr + image * x_image + (group * in_per_group).to(tl.int64) * x_channel
    w_group = weight_ptr + group * out_per_group * w_out
    out_group = out_ptr + image * out_image + (group * out_per_group + first_out).to(tl.int64) * out_channel
    # A lane is a column of x; where they are not all of the plane's, HALO on either side serve the others' sums alone.
    lanes = tl.arange(0, COLUMNS)
    x = (tile % column_tiles) * (COLUMNS - 2 * HALO) - HALO + lanes
    k = tl.arange(0, K)
    x_rows, channels = k // IN, k % IN
    m = tl.arange(0, M)
    rows, outs = m // OUT, m % OUT
    at = (tile % column_tiles) * ((COLUMNS - 2 * HALO) // STRIDE) - HALO // STRIDE + lanes
    stored = (lanes >= HALO // STRIDE) & (lanes < (COLUMNS - HALO) // STRIDE) & (at < out_w)
    out_mask = (rows < ROWS) & (first_out + outs < out_per_group)
    out_ptrs = out_group + (outs * out_channel + rows * out_row)[:, None] + (at * out_column)[None, :]
    bands = ()
    for dx in tl.static_range(KERNEL_W):
        bands = bands + (
            bands_of(w_group, first_out, 0, dx, w_out, w_in, w_y, w_x, in_per_group, out_per_group, M, K, OUT, IN,
                     KERNEL_H, STRIDE, DILATION),
        )  # fmt: skip
    first_block = (tile // column_tiles) * blocks
    for block in tl.range(first_block, tl.minimum(first_block + blocks, tl.cdiv(out_h, ROWS)), num_stages=STAGES):
        y = block * ROWS * STRIDE - PADDING + x_rows
        sums = ()
        for _ in tl.static_range(KERNEL_W):
            sums = sums + (tl.zeros((M, COLUMNS), tl.float32),)
        for first_in in range(0, IN_TILES * IN, IN):
            i = first_in + channels
            mask = ((y >= 0) & (y < height) & (i < in_per_group))[:, None] & ((x >= 0) & (x < width))[None, :]
            x_ptrs = x_group + (y * x_row + i * x_channel)[:, None] + (x * x_column)[None, :]
            pixels = tl.load(x_ptrs, mask=mask, other=0.0)
            added = ()
            for dx in tl.static_range(KERNEL_W):
                if IN_TILES == 1:
                    band = bands[dx]
                else:
                    band = bands_of(w_group, first_out, first_in, dx, w_out, w_in, w_y, w_x, in_per_group,
                                    out_per_group, M, K, OUT, IN, KERNEL_H, STRIDE, DILATION)  # fmt: skip
                added = added + (tl.dot(band, pixels, sums[dx], input_precision=PRECISION),)
            sums = added
        if BY_PAIRS:
            halves = tl.split(tl.reshape(sums[0], (M, COLUMNS // 2, 2)))
            even = half_shifted(halves, -PADDING, M, COLUMNS // 2)
            odd = half_shifted(halves, 1 - PADDING, M, COLUMNS // 2)
            for dx in tl.static_range(1, KERNEL_W):
                halves = tl.split(tl.reshape(sums[dx], (M, COLUMNS // 2, 2)))
                even += half_shifted(halves, dx * DILATION - PADDING, M, COLUMNS // 2)
                odd += half_shifted(halves, dx * DILATION - PADDING + 1, M, COLUMNS // 2)
            total = tl.reshape(tl.join(even, odd), (M, COLUMNS))
        else:
            total = tl.zeros((M, COLUMNS), tl.float32)
            for dx in tl.static_range(KERNEL_W):
                if STRIDE == 1 and dx * DILATION == PADDING:
                    total += sums[dx]
                else:
                    from_lane = lanes * STRIDE + dx * DILATION - PADDING
                    some = (from_lane >= 0) & (from_lane < COLUMNS)
                    index = tl.broadcast_to(tl.where(some, from_lane, 0)[None, :], (M, COLUMNS))
                    total += tl.where(some[None, :], tl.gather(sums[dx], index, 1), 0.0)
        mask = (out_mask & (block * ROWS + rows < out_h))[:, None] & stored[None, :]
        tl.store(out_ptrs + block * ROWS * out_row, total.to(out_ptr.dtype.element_ty), mask=mask)


def sizes_of(x, weight):
    """Images, channels, output size, kernel size and the group's channels."""
    n_images, c_in, height, width = x.shape
    c_out, in_per_group, kernel_h, kernel_w = weight.shape
    out_h = (height + 2 * PADDING - DILATION * (kernel_h - 1) - 1) // STRIDE + 1
    out_w = (width + 2 * PADDING - DILATION * (kernel_w - 1) - 1) // STRIDE + 1
    return n_images, height, width, c_out, c_in // in_per_group, out_h, out_w, kernel_h, kernel_w


def columns_of(width, out_w, kernel_w):
    """Columns of a tile, and how many on either side serve others' sums alone: none where one tile is a whole row."""
    reach = max(PADDING, (kernel_w - 1) * DILATION - PADDING)
    whole = triton.next_power_of_2(max(width, out_w * STRIDE))
    if whole <= COLUMNS:
        return max(16, whole), 0
    halo = 8 * STRIDE * triton.cdiv(reach, 8 * STRIDE)
    return max(COLUMNS, triton.next_power_of_2(4 * halo)), halo


def ins_of(in_per_group, kernel_h, most_k):
    """Input channels of a step: as many as leave room for the rows of one output row."""
    least_met = triton.next_power_of_2((kernel_h - 1) * DILATION + 1)
    return min(IN_CHANNELS, triton.next_power_of_2(in_per_group), max(1, most_k // least_met))


def rows_of(outs, ins, kernel_h, most_k):
    """Rows of a block, and the sides of its bands: the rows that it meets are a power of two."""
    rows, met = 1, triton.next_power_of_2((kernel_h - 1) * DILATION + 1)
    while met <= 64 and met * ins <= most_k:
        fitting = (met - (kernel_h - 1) * DILATION - 1) // STRIDE + 1
        if fitting > 1 and triton.next_power_of_2(fitting) * outs > LEFT:
            break
        rows, met = fitting, 2 * met
    met = triton.next_power_of_2((rows - 1) * STRIDE + (kernel_h - 1) * DILATION + 1)
    return rows, max(16, triton.next_power_of_2(rows) * outs), max(16, met * ins)


def kernel_function(x, weight):
    n_images, height, width, c_out, n_groups, out_h, out_w, kernel_h, kernel_w = sizes_of(x, weight)
    out = torch.empty((n_images, c_out, out_h, out_w), dtype=x.dtype, device=x.device)
    out_per_group, in_per_group = c_out // n_groups, weight.shape[1]
    columns, halo = columns_of(width, out_w, kernel_w)
    outs = min(OUT_CHANNELS, triton.next_power_of_2(out_per_group))
    most_k = K_BYTES // x.element_size()
    ins = ins_of(in_per_group, kernel_h, most_k)
    rows, m, k = rows_of(outs, ins, kernel_h, most_k)
    n_out_tiles, n_blocks = triton.cdiv(out_per_group, outs), triton.cdiv(out_h, rows)
    column_tiles = triton.cdiv(out_w * STRIDE, columns - 2 * halo)
    strips = n_images * n_groups * n_out_tiles * column_tiles
    walks = triton.cdiv(n_blocks, triton.cdiv(strips * n_blocks, N_SMS * PROGRAMS_PER_SM))
    # By pairs the sums take more registers: with fp32's three passes an SM would hold two programs rather than three.
    by_pairs = STRIDE == 1 and x.element_size() == 2
    # Bands that are loaded anew in each step, and where they lie, take the registers of more warps.
    in_tiles = triton.cdiv(in_per_group, ins)
    warps = NUM_WARPS if in_tiles == 1 else max(8, NUM_WARPS)
    banded_product[(strips * walks,)](
        x, weight, out, *x.stride(), *weight.stride(), *out.stride(), height, width, out_h, out_w, n_groups,
        in_per_group, out_per_group, n_out_tiles, walks, column_tiles, triton.cdiv(n_blocks, walks),
        IN_TILES=in_tiles, HALO=halo, ROWS=rows, COLUMNS=columns, M=m, K=k, OUT=outs, IN=ins,
        KERNEL_H=kernel_h, KERNEL_W=kernel_w, STRIDE=STRIDE, PADDING=PADDING, DILATION=DILATION, STAGES=STAGES,
        BY_PAIRS=by_pairs, PRECISION=PRECISION, num_warps=warps,
    )  # fmt: skip
    return out
