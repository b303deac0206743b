"""Does it cost bandwidth where an input lies? One row-reading kernel on memory got in several ways.

Run on a machine with an NVIDIA GPU, from the repository's root (under 30 s): ``python benchmarks/arena_bandwidth.py``.
On an H200, mat_vec 2048x131072 took 242 us on torch's own memory and 401 us (torch.mv 275 and 691) where inputs lay
in another process's cuMemAlloc arena of 2 GiB and a little, opened by CUDA IPC; with a size that large pages (2 MiB)
divide it takes 242 us there too. This tells the causes apart:

    torch          torch's caching allocator, this process
    cuMemAlloc     the arena as the referee has it, here in the process that owns it
    cuMemAlloc+N   the same, N bytes further on: not on a 2 MiB boundary, as a second tensor of the arena is
    ipc            another process's cuMemAlloc, opened here: what candidates read
    ipc alone      the same with the matrix in an allocation of its own, at its start
    ipc, odd       the same as ipc, its size no multiple of a large page, as the arena's once was
    vmm            cuMemCreate of the recommended granularity, mapped here
    vmm fd         the same, another process's, taken over through a file descriptor

Each is timed warm, cold (the L2 read full in between) and right after other addresses were touched (1 GiB of torch's,
which empties the TLB as a search's inputs in turns do). Prints a table, and JSON with the device's state to ``--out``.
"""

import argparse
import ctypes
import json
import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
import triton
import triton.language as tl

from kbtui.evaluation.roles import cuda_driver
from kbtui.evaluation.roles.arena import CudaArena
from kbtui.evaluation.roles.bench import Bench

ROWS, COLUMNS = 2048, 131072
N_BYTES = ROWS * COLUMNS * 4
ROOM = 4 << 20
#: An odd number of 512-byte steps: what lies before a second input.
SHIFT = 512 * 1025
N_CALLS = 15
#: CUmemAllocationProp and CUmemAccessDesc (cuda.h, 10.2 and later): pinned device memory, exportable as a descriptor.
PINNED, FILE_DESCRIPTOR, DEVICE, READ_WRITE, RECOMMENDED = 1, 1, 1, 3, 1


@triton.jit
def read_rows(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        total += tl.load(x_ptr + row * n_cols + start + at)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


class Location(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("id", ctypes.c_int)]


class Flags(ctypes.Structure):
    _fields_ = [
        ("compression", ctypes.c_ubyte), ("rdma", ctypes.c_ubyte), ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    ]  # fmt: skip


class Properties(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location), ("security", ctypes.c_void_p),
        ("flags", Flags),
    ]  # fmt: skip


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


def call(name: str, *arguments: Any) -> None:
    cuda_driver._call(name, *arguments)


def vmm_create(n_bytes: int) -> tuple[int, int]:
    """(handle, bytes) of physical memory in whole recommended granules."""
    wanted = Properties(PINNED, FILE_DESCRIPTOR, Location(DEVICE, 0))
    granule, handle = ctypes.c_size_t(), ctypes.c_uint64()
    call("cuMemGetAllocationGranularity", ctypes.byref(granule), ctypes.byref(wanted), ctypes.c_int(RECOMMENDED))
    whole = -(-n_bytes // granule.value) * granule.value
    call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(whole), ctypes.byref(wanted), ctypes.c_uint64(0))
    return int(handle.value), whole


def vmm_map(handle: int, n_bytes: int) -> CudaArena:
    """The memory at a fresh address. The address is aligned to 1 GiB, so that no page need be smaller than it can."""
    address, access = ctypes.c_uint64(), Access(Location(DEVICE, 0), READ_WRITE)
    size, zero = ctypes.c_size_t(n_bytes), ctypes.c_size_t(0)
    call("cuMemAddressReserve", ctypes.byref(address), size, ctypes.c_size_t(1 << 30), zero, ctypes.c_uint64(0))
    call("cuMemMap", address, size, zero, ctypes.c_uint64(handle), ctypes.c_uint64(0))
    call("cuMemSetAccess", address, size, ctypes.byref(access), ctypes.c_size_t(1))
    return CudaArena(int(address.value), n_bytes, b"")


def vmm_export(handle: int) -> int:
    fd = ctypes.c_int()
    call(
        "cuMemExportToShareableHandle", ctypes.byref(fd), ctypes.c_uint64(handle), ctypes.c_int(FILE_DESCRIPTOR),
        ctypes.c_uint64(0),
    )  # fmt: skip
    return int(fd.value)


def vmm_import(fd: int) -> int:
    handle = ctypes.c_uint64()
    call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(fd), ctypes.c_int(FILE_DESCRIPTOR))
    return int(handle.value)


def owner(control: socket.socket) -> None:
    """The other process: allocates what it is asked for, sends a handle, stays until the socket closes."""
    torch.zeros(1, device="cuda")
    kept: list[Any] = []
    while request := control.recv(64):
        if request == b"vmm":
            handle, n_bytes = vmm_create(N_BYTES)
            kept.append(vmm_map(handle, n_bytes))
            socket.send_fds(control, [str(n_bytes).encode()], [vmm_export(handle)])
        elif request.startswith(b"odd"):
            kept.append(cuda_driver.allocate(int(request[3:])))
            control.sendall(cuda_driver.export_handle(kept[-1]))
        else:
            kept.append(CudaArena.allocate(int(request)))
            control.sendall(kept[-1].handle)


@contextmanager
def another_process() -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    command = [sys.executable, __file__, "--owner", str(theirs.fileno())]
    with ours, subprocess.Popen(command, pass_fds=(theirs.fileno(),)) as process:
        theirs.close()
        yield ours
        ours.shutdown(socket.SHUT_RDWR)
        process.wait(20)


def ipc(control: socket.socket, n_bytes: int, how: str = "") -> CudaArena:
    control.sendall(f"{how}{n_bytes}".encode())
    return CudaArena.open(control.recv(cuda_driver.HANDLE_BYTES, socket.MSG_WAITALL), n_bytes)


def vmm_of(control: socket.socket) -> CudaArena:
    control.sendall(b"vmm")
    text, fds, _, _ = socket.recv_fds(control, 64, 1)
    return vmm_map(vmm_import(fds[0]), int(text))


def matrix(arena: CudaArena, offset: int = 0) -> torch.Tensor:
    return arena.bytes(offset, N_BYTES).view(torch.float32).view(ROWS, COLUMNS)


def timings(bench: Bench, x: torch.Tensor, elsewhere: torch.Tensor) -> dict[str, float]:
    """Medians in microseconds; ``eager`` is torch.mv, cold."""
    x.normal_()
    out, ones = torch.empty(ROWS, device="cuda"), torch.ones(COLUMNS, device="cuda")

    def rows(_: int) -> None:
        read_rows[(ROWS,)](x, out, COLUMNS, BLOCK=4096, num_warps=8)

    def median(call: Callable[[int], Any], between: Callable[[], Any]) -> float:
        flush, bench.flush = bench.flush, between  # type: ignore[method-assign]
        try:
            queue_s = bench.warm_up(call, 0.02)
            return statistics.median(bench.timed(call, N_CALLS, queue_s, -1, lambda _: None))
        finally:
            bench.flush = flush  # type: ignore[method-assign]

    return {
        "warm": median(rows, lambda: None),
        "cold": median(rows, bench.flush),
        "after others": median(rows, lambda: elsewhere.sum()),
        "eager": median(lambda _: torch.mv(x, ones, out=out), bench.flush),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--owner", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.owner is not None:
        owner(socket.socket(fileno=options.owner))
        return 0
    if not torch.cuda.is_available():
        print("no NVIDIA GPU here", file=sys.stderr)
        return 3
    bench, elsewhere, found = Bench(), torch.zeros(1 << 28, device="cuda"), {}
    with another_process() as control:
        kinds: dict[str, Callable[[], torch.Tensor]] = {
            "torch": lambda: torch.empty(ROWS, COLUMNS, device="cuda"),
            "cuMemAlloc": lambda: matrix(CudaArena.allocate(2 * N_BYTES + ROOM)),
            "cuMemAlloc+N": lambda: matrix(CudaArena.allocate(2 * N_BYTES + ROOM), SHIFT),
            "ipc": lambda: matrix(ipc(control, 2 * N_BYTES + ROOM), SHIFT),
            "ipc alone": lambda: matrix(ipc(control, N_BYTES)),
            "ipc, odd": lambda: matrix(ipc(control, 2 * N_BYTES + ROOM + SHIFT, "odd"), SHIFT),
            "vmm": lambda: matrix(vmm_map(*vmm_create(N_BYTES))),
            "vmm fd": lambda: matrix(vmm_of(control)),
        }
        for name, make in kinds.items():
            try:
                found[name] = timings(bench, make(), elsewhere)
            except (cuda_driver.DriverError, OSError) as error:
                print(f"{name:14s} {error}")
                continue
            told = "  ".join(f"{k} {us:7.1f} us {N_BYTES / us / 1e6:5.2f} TB/s" for k, us in found[name].items())
            print(f"{name:14s} {told}", flush=True)
    if options.out:
        state = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem", "--format=csv,noheader"],
            capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        versions = {"torch": torch.__version__, "triton": triton.__version__, "host": os.uname().release}
        options.out.write_text(json.dumps({"device": state, **versions, "us": found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
