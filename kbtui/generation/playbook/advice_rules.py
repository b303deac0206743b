"""Rules of what suits a size, one a family. Pure; constants are limits of the chips or measured, as they say.

Times behind an order are those of ``benchmarks/pools`` and ``benchmarks/results`` (one H200, 2026-11-30).
"""

from collections.abc import Mapping

from kbtui.domain.device import DeviceSpec
from kbtui.generation.playbook.advice import OTHERS, Rule, Size, Suit
from kbtui.generation.playbook.constants import Value

#: fp32 values that a program may hold: half of an SM's 64 Ki registers, the rest is for addresses and temporaries.
HELD_ELEMENTS = 32768
#: Values a thread may hold: a quarter of its 255 registers, so that two or three of each value can be live.
HELD_A_THREAD = 64
#: Bytes an SM takes from L2 in a clock (Hopper and Ampere alike, measured by many).
SM_BYTES_A_CLOCK = 64
#: Threads of a warp.
WARP = 32
#: A row below this does not fill a program of four warps with 16 bytes a thread.
SHORT_ROW_BYTES = 2048
#: Pixels of a strip: 256 bytes of fp32, two whole cache lines a channel.
STRIP_PIXELS = 64
#: Rows of the smallest tensor-core product.
TENSOR_ROWS = 16
#: Features of 64 queries that the registers of eight warps hold in fp32, beside the weights.
HELD_FEATURES = 256
#: Keys whose weights a program of attention_described can hold in registers.
HELD_KEYS = 512
#: Bytes of k that a program of a sliced product takes at a time, and how many of them it asks for ahead.
SLICE_BYTES, SLICE_STAGES = 128, 5
#: The tile of a product that keeps Hopper's tensor cores busy, and the least one worth a program.
WIDE_M, WIDE_N, LEAST_TILE = 128, 256, 1024


def power_of_2(n: int) -> int:
    """The least power of two that is no less than n."""
    return 1 << max(n - 1, 0).bit_length()


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def clamp(low: int, n: int, high: int) -> int:
    return max(low, min(n, high))


def second_launch_pays(row_bytes: int, programs: int, device: DeviceSpec) -> bool:
    """Whether to split: half of the SMs are idle, and one takes longer over its row than another launch does."""
    alone_us = row_bytes / (SM_BYTES_A_CLOCK * device.sm_clock_mhz)
    return 2 * programs <= device.n_sms and alone_us > device.launch_us


def row_softmax(size: Size, device: DeviceSpec) -> tuple[Suit, ...]:
    rows, cols = size.dims
    tile = power_of_2(cols)
    held, few = tile <= HELD_ELEMENTS, rows <= device.n_sms
    online = {"TILE": clamp(1024, tile, HELD_ELEMENTS), "NUM_WARPS": clamp(4, tile // 1024, 16)}
    suits = {
        "online_tiles": _suit("softmax_online_tiles", online, TILE=tile),
        "online_lanes": _suit("softmax_online_lanes", {}, TILE=tile),
        "multi_pass": _suit("softmax_multi_pass", {}, TILE=tile),
        # Few rows: nobody waits for an SM, so threads take less each. One row a program needs no loads ahead.
        "one_row": Suit("softmax_one_row", {"ELEMENTS_PER_THREAD": 8 if few else 16}, _idle_of_one_row(tile)),
        "several_rows": Suit("softmax_several_rows", {}, frozenset({"ELEMENTS_PER_THREAD"} if not held else ())),
        "persistent": Suit("softmax_persistent", {"STAGES": 1} if few else {} if held else {"PROGRAMS_PER_SM": 1}),
        "partly_resident": Suit("softmax_partly_resident"),
        "split_row": _suit("softmax_split_row", {}, TILE=tile),
        "split_atomic": _suit("softmax_split_atomic", {}, TILE=tile),
    }
    # Held rows are read once. Longer ones are read twice, the second time from cache: the fewer bytes are at work on
    # the chip, the more of them are still there, so wide tiles and few programs lead.
    held_first = ("one_row", "several_rows", "persistent")
    walked = ("online_tiles", "persistent", "partly_resident", "online_lanes", "one_row", "multi_pass", "several_rows")
    order: tuple[str, ...]
    if second_launch_pays(cols * size.item_bytes, rows, device):
        order = ("split_row", "split_atomic", *walked)
    elif not held:
        order = (*walked, "split_row", "split_atomic")
    elif cols * size.item_bytes < SHORT_ROW_BYTES:
        order = ("several_rows", "one_row", "persistent", *walked, "split_row", "split_atomic")
    elif few:
        order = (*held_first, *walked, "split_row", "split_atomic")
    else:
        order = ("online_tiles", *held_first, "multi_pass", *walked, "split_row", "split_atomic")
    return tuple(suits[name] for name in dict.fromkeys(order))


def _idle_of_one_row(tile: int) -> frozenset[str]:
    """A row that every MAX_TILE holds meets no wide tile; one that none holds meets nothing else."""
    if tile <= 16384:
        return frozenset({"MAX_TILE", "WIDE_TILE"})
    return frozenset({"MAX_TILE", "ELEMENTS_PER_THREAD", "MAX_WARPS"} if tile > 65536 else ())


def mat_vec(size: Size, device: DeviceSpec) -> tuple[Suit, ...]:
    rows, cols = size.dims
    tile = power_of_2(cols)
    suits = {
        "one_row": _suit("matvec_one_row", _row_of_loads(size, device), TILE=tile),
        "persistent": _suit("matvec_persistent", {}, TILE=tile),
        "split_k": _suit("matvec_split_k", {}, TILE=tile),
        "split_k_atomic": _suit("matvec_split_k_atomic", {}, TILE=tile),
        "row_block": _suit("matvec_row_block", {}, TILE=tile),
    }
    splits = ("split_k", "split_k_atomic")
    if cols * size.item_bytes < SHORT_ROW_BYTES:
        order = ("row_block", "one_row", "persistent", *splits)
    elif rows < device.n_sms:
        order = (*splits, "persistent", "one_row", "row_block")
    else:
        # A program a row and nobody idle: splits come close, their second kernel being launched early.
        order = ("one_row", *splits, "persistent", "row_block")
    return tuple(suits[name] for name in order)


def _row_of_loads(size: Size, device: DeviceSpec) -> dict[str, Value]:
    """A program a row: its warps, and a tile of 16-byte loads for them.

    Where an SM gets two rows at most, one program fills it with loads, two a thread. Where it gets more, one load a
    thread leaves registers for all warps that an SM holds, and the loads of one row cover the sum of another: at 2,048
    rows of 16,384 that is 1.11 times as fast as the first kernel, two loads a thread 1.08, other structures 1.08
    (``results/six/mat_vec-2048x16384-fp32.bundle``). A short row gets fewer warps, not narrower loads.
    """
    rows, cols = size.dims
    warps, loads = (32, 2) if rows <= 2 * device.n_sms else (16, 1)
    elements = loads * 16 // size.item_bytes
    tile = clamp(1024, power_of_2(cols), warps * WARP * elements)
    return {"NUM_WARPS": clamp(4, tile // (WARP * elements), warps), "TILE": tile}


def channel_rms_norm(size: Size, device: DeviceSpec) -> tuple[Suit, ...]:
    images, n_channels, height, width = size.dims
    channels, pixels = power_of_2(n_channels), height * width
    # Few threads with much to load each: more of the tile is asked for before anybody waits, and sums need no barrier.
    strip = {"TILE_ELEMENTS": clamp(2048, channels * STRIP_PIXELS, HELD_ELEMENTS), "ELEMENTS_PER_THREAD": HELD_A_THREAD}
    across = strip | {"ELEMENTS_PER_THREAD": HELD_A_THREAD // 4}
    # With loads ahead, shared memory holds the tiles of all programs of an SM besides.
    ahead = strip | {"TILE_ELEMENTS": clamp(2048, channels * STRIP_PIXELS, HELD_ELEMENTS // 2)}
    suits = {
        "pixel_strip": Suit("channel_rms_pixel_strip", strip),
        "flat_pixels": Suit("channel_rms_flat_pixels", across),
        "persistent": Suit("channel_rms_persistent", ahead),
        "looped": Suit("channel_rms_looped"),
        "split_channels": Suit("channel_rms_split_channels"),
        "split_atomic": Suit("channel_rms_split_atomic"),
    }
    held = channels * 8 <= HELD_ELEMENTS
    splits = ("split_channels", "split_atomic")
    strip_bytes = n_channels * STRIP_PIXELS * size.item_bytes
    if second_launch_pays(strip_bytes, images * ceil_div(pixels, STRIP_PIXELS), device):
        order = (*splits, "pixel_strip", "flat_pixels", "persistent", "looped")
    elif not held:
        order = ("looped", *splits, "pixel_strip", "flat_pixels", "persistent")
    elif pixels < STRIP_PIXELS:
        order = ("flat_pixels", "pixel_strip", "persistent", "looped", *splits)
    else:
        order = ("pixel_strip", "flat_pixels", "persistent", "looped", *splits)
    return tuple(suits[name] for name in order)


def linear_relu_div(size: Size, device: DeviceSpec) -> tuple[Suit, ...]:
    n_batch, n_in, n_out = size.dims
    wide = 2 * ceil_div(n_batch, WIDE_M) * ceil_div(n_out, WIDE_N) > device.n_sms
    few = n_batch * n_out <= LEAST_TILE * device.n_sms
    described = device.arch >= 90
    narrow = frozenset() if wide and described else frozenset({"WIDE_STAGES"})
    sliced_idle = frozenset({"BLOCK_M", "BLOCK_N", "MIN_TILE", "SLICES", "K_BYTES", "STAGES"})
    # A slice that is no longer than its loads run ahead waits for them once, and never overlaps them with products.
    pieces = ceil_div(n_in * size.item_bytes, SLICE_BYTES)
    deep = pieces >= 8 * 2 * SLICE_STAGES
    suits = {
        "grouped_tiles": Suit("linear_grouped_tiles"),
        # The least tile, and as many parts of k as give each SM four programs, for a chain of products is latency.
        "split_k": Suit(
            "linear_split_k", {"PROGRAMS_PER_SM": 4, "BLOCK_N": TENSOR_ROWS, "NUM_WARPS": 4} if few else {}
        ),
        # Of tiles of 512 elements, 32 by 16 was faster than 16 by 32 (10.6 us against 11.2).
        "sliced_k": Suit(
            "linear_sliced_k",
            {"SLICES": 8 if deep else 4} | ({"BLOCK_N": TENSOR_ROWS} if few and not deep else {}),
            sliced_idle if wide and described else narrow,
        ),
        "split_k_sliced": Suit("linear_split_k_sliced", {"SLICES": 4} if few else {}),
        # Few rows leave each program a narrow strip: longer pieces of k keep as many bytes in flight.
        "small_batch": Suit("linear_small_batch", {"K_BYTES": 512} if few else {}),
        "persistent": Suit("linear_persistent"),
        "tensor_descriptor": Suit("linear_tensor_descriptor", {"STAGES": 4} if wide and size.item_bytes == 2 else {}),
    }
    splits = (*(("sliced_k", "split_k") if deep else ("split_k", "sliced_k")), "split_k_sliced", "small_batch")
    tiles = ("grouped_tiles", "persistent", "tensor_descriptor")
    if few:
        order = (*splits, *tiles)
    elif wide and described:
        # Sliced k loads wide tiles through descriptors, too.
        order = ("tensor_descriptor", "sliced_k", "persistent", "grouped_tiles", "split_k", *splits[2:])
    else:
        order = (*tiles, *splits)
    return tuple(suits[name] for name in order)


def conv(size: Size, device: DeviceSpec) -> tuple[Suit, ...]:
    _, c_in, c_out, _, _, groups = size.dims
    channels = min(c_in, c_out) // max(groups, 1)
    # With half as many bytes to load a program's columns are enough work for two warps; three programs an SM walk
    # down more blocks each (36.5 and 77.8 us on two shapes, four 42.9 and 80.1).
    half = size.item_bytes == 2
    banded = Suit("conv_banded_product", {"NUM_WARPS": 2, "PROGRAMS_PER_SM": 3} if half else {})
    products = (Suit("conv_implicit_product"), Suit("conv_channels_last"))
    direct = (Suit("conv_row_block"), Suit(OTHERS))
    # A tensor core's 16 rows are two of the image's with eight channels: in bands nothing of them is padding, and one
    # pass of half precision is cheap, with four channels still (77.8 us, direct sums 82.0). fp32's three passes cost
    # what direct sums do with eight; fewer multiply by zeros.
    if channels >= TENSOR_ROWS:
        return (*products, *direct, banded)
    if half and 4 * channels >= TENSOR_ROWS:
        return (banded, *direct, *products)
    if 2 * channels >= TENSOR_ROWS:
        return (direct[0], banded, direct[1], *products)
    return (*direct, banded, *products)


def attention(size: Size, device: DeviceSpec) -> tuple[Suit, ...]:
    n_keys, head_dim = size.dims[-2:]
    # A program cannot hold the answer's features: pieces of them would compute the weights anew each.
    wide = head_dim > HELD_FEATURES
    # Measured fastest at every width of a head in fp16; what it takes through pointers has others before it.
    described = device.arch >= 90 and size.item_bytes == 2
    first = (Suit("attention_described", {}, _idle_of_described(n_keys, head_dim)),) if described else ()
    others = ("attention_two_products", OTHERS) if wide else (OTHERS, "attention_two_products")
    return (*first, *(Suit(name) for name in others))


def _idle_of_described(n_keys: int, head_dim: int) -> frozenset[str]:
    """It has parameters of their own for heads of up to 64 features, of up to 128, and of more; and over few keys."""
    tiles = {f"_{name}" for name in ("M", "N", "WARPS", "STAGES", "REGISTERS")}
    narrow, middle = ({f"{width}{name}" for name in tiles} for width in ("NARROW", "MIDDLE"))
    held = {"PIECE", "WIDE_STAGES", "HELD_VALUES", "HELD_STAGES"}
    walked = {"WIDE_M", "SPAN", "PIECE", "KEYS", "VALUES", "WIDE_WARPS", "WIDE_STAGES", "PROGRAMS_PER_SM",
              "STORE_STAGES"}  # fmt: skip
    # Holding few keys' weights was measured fastest by an eighth: how they would be walked is not searched.
    wide = held if n_keys <= HELD_KEYS else walked
    acting = narrow if head_dim <= 64 else middle if head_dim <= 128 else wide
    return frozenset((narrow | middle | held | walked) - acting)


def _suit(entry: str, start: Mapping[str, Value], **widest: int) -> Suit:
    return Suit(entry, start, frozenset(), widest)


#: By family: the rule, and how many dims its sizes have.
RULES: Mapping[str, tuple[Rule, int]] = {
    "row_softmax": (row_softmax, 2),
    "mat_vec": (mat_vec, 2),
    "channel_rms_norm": (channel_rms_norm, 4),
    "linear_relu_div": (linear_relu_div, 3),
    "conv": (conv, 6),
    "attention": (attention, 4),
}
