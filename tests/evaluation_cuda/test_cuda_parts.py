import contextlib
import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.candidate import source_sha
from kbtui.errors import DeviceError, UsageError
from kbtui.evaluation.devices import open_device
from kbtui.evaluation.devices.cuda_chip import has_data_sheet, spec_of, visible_device
from kbtui.evaluation.devices.cuda_match import clocks_agree
from kbtui.evaluation.devices.cuda_opened import lately
from kbtui.evaluation.devices.cuda_sides import Side, Sides
from kbtui.evaluation.devices.triton_cache import copy_cache
from kbtui.evaluation.gpu_lock import GpuLock, Turn
from kbtui.evaluation.nvml import GpuState, parent_of, throttle_reasons
from kbtui.evaluation.roles import cuda_driver
from kbtui.evaluation.roles.arena import LARGE_PAGE, whole_pages
from kbtui.evaluation.roles.bench import lead_s


@pytest.mark.parametrize(
    ("index", "environ", "expected"),
    [(1, {}, "1"), (0, {"CUDA_VISIBLE_DEVICES": "3,5"}, "3"), (1, {"CUDA_VISIBLE_DEVICES": "3, GPU-ab"}, "GPU-ab")],
)
def test_a_device_index_counts_within_what_is_visible(index: int, environ: dict[str, str], expected: str) -> None:
    assert visible_device(index, environ) == expected


def test_an_index_beyond_what_is_visible_is_refused() -> None:
    with pytest.raises(DeviceError, match="lists 1 GPUs"):
        visible_device(1, {"CUDA_VISIBLE_DEVICES": "0"})


def test_a_spec_takes_limits_from_the_device_and_rates_from_the_data_sheet() -> None:
    read = {"name": "NVIDIA H200", "arch": 90, "n_sms": 132, "l2_bytes": 60 << 20, "sm_clock_mhz": 0, "uuid": "GPU-1"}
    spec = spec_of("cuda:0", read)
    assert (spec.key, spec.clock, spec.l2_bytes, spec.dram_gb_s) == ("cuda:0", "measured", 60 << 20, 4800)
    assert spec.sm_clock_mhz > 0
    assert has_data_sheet(spec.name)
    assert not has_data_sheet("NVIDIA B200")


def test_an_unknown_device_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no device 'tpu'"):
        open_device("tpu", tmp_path)


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="cuda:0 cannot be used"):
        open_device("cuda:0", tmp_path)


def test_a_copied_cache_is_found_where_it_was_copied_to(tmp_path: Path) -> None:
    entry = tmp_path / "from" / "abc"
    entry.mkdir(parents=True)
    (entry / "k.cubin").write_bytes(b"\x7fELF")
    (entry / "__grp__k.json").write_text(json.dumps({"child_paths": {"k.cubin": str(entry / "k.cubin")}}))
    (entry / "link").symlink_to("/etc/passwd")
    (tmp_path / "to").mkdir()
    copy_cache(tmp_path / "from", tmp_path / "to")
    group = json.loads((tmp_path / "to" / "abc" / "__grp__k.json").read_text())
    assert Path(group["child_paths"]["k.cubin"]).read_bytes() == b"\x7fELF"
    assert group["child_paths"]["k.cubin"].startswith(str(tmp_path / "to"))
    assert not (tmp_path / "to" / "abc" / "link").exists()


def test_a_cache_that_is_launched_from_needs_no_text_of_its_kernels(tmp_path: Path) -> None:
    entry = tmp_path / "from" / "abc"
    entry.mkdir(parents=True)
    for suffix in ("cubin", "json", "ttir", "ttgir", "llir", "ptx", "source"):
        (entry / f"k.{suffix}").write_text(suffix)
    (tmp_path / "to").mkdir()
    copy_cache(tmp_path / "from", tmp_path / "to", texts=False)
    assert sorted(f.name for f in (tmp_path / "to" / "abc").iterdir()) == ["k.cubin", "k.json"]


def test_the_lock_names_its_owner_and_is_dropped_when_the_owner_dies(tmp_path: Path) -> None:
    lock = GpuLock("GPU-1", tmp_path)
    assert lock.owner() is None
    text = (
        "import sys; from pathlib import Path; from kbtui.evaluation.gpu_lock import GpuLock\n"
        f"with GpuLock('GPU-1', Path({str(tmp_path)!r})).held(): print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    assert lock.owner() == holder.pid
    with pytest.raises(DeviceError, match=f"process {holder.pid} holds the GPU"), lock.held(timeout_s=0.05):
        pass
    holder.kill()
    holder.wait()
    with lock.held(timeout_s=1.0):
        assert lock.owner() == os.getpid()
    assert lock.owner() is None


def test_who_stands_aside_has_the_gpu_no_more_and_takes_it_back(tmp_path: Path) -> None:
    turn, other = Turn(GpuLock("GPU-1", tmp_path)), GpuLock("GPU-1", tmp_path)
    with turn:
        assert other.owner() == os.getpid()
        before = turn.held_s
        with turn.aside(), other.held(timeout_s=1.0):
            assert turn.held_s > before
            told = turn.held_s
        assert other.owner() == os.getpid()
        assert turn.held_s == told, "what it stood aside is not counted"
    assert other.owner() is None
    assert turn.held_s > told


def test_who_cannot_take_it_back_says_so_and_holds_nothing(tmp_path: Path) -> None:
    turn, other = Turn(GpuLock("GPU-1", tmp_path), timeout_s=0.05), GpuLock("GPU-1", tmp_path)
    with contextlib.ExitStack() as others, pytest.raises(DeviceError, match="holds the GPU"), turn, turn.aside():
        others.enter_context(other.held())
    assert other.owner() is None


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_who_is_told_to_end_while_it_stands_aside_waits_for_nobody(tmp_path: Path, ending: type[BaseException]) -> None:
    turn, other = Turn(GpuLock("GPU-1", tmp_path), timeout_s=0.05), GpuLock("GPU-1", tmp_path)

    def told_to_end(others: contextlib.ExitStack) -> None:
        with turn, turn.aside():
            others.enter_context(other.held())
            raise ending

    with contextlib.ExitStack() as others:
        with pytest.raises(ending):
            told_to_end(others)
        assert other.owner() == os.getpid(), "what the other holds is not released"
    assert other.owner() is None
    with turn:
        assert other.owner() == os.getpid(), "it may have a turn again"


def test_who_fails_while_it_stands_aside_takes_the_gpu_back_first(tmp_path: Path) -> None:
    turn, other = Turn(GpuLock("GPU-1", tmp_path)), GpuLock("GPU-1", tmp_path)
    with turn:
        with pytest.raises(ZeroDivisionError), turn.aside():
            raise ZeroDivisionError
        assert other.owner() == os.getpid()
    assert other.owner() is None


def test_only_throttling_that_spoils_a_timing_counts() -> None:
    idle, power_cap, thermal = 0x1, 0x4, 0x20
    assert throttle_reasons(idle | power_cap) == ()
    assert throttle_reasons(thermal | power_cap) == ("software thermal slowdown",)
    assert GpuState(1980, 3201, 300.0, 60, (), ()).trouble() is None
    assert "shared with process 7" in (GpuState(1980, 3201, 300.0, 60, (), (7,)).trouble() or "")


def test_a_parent_is_read_from_proc() -> None:
    assert parent_of(os.getpid()) == os.getppid()
    assert parent_of(2**22 + 1) is None


class FakeCuda:
    """libcuda with one allocation: enough to see that arguments arrive as the driver wants them."""

    def __init__(self) -> None:
        self.opened: bytes = b""

    def cuMemAlloc_v2(self, address: object, n_bytes: ctypes.c_size_t) -> int:  # noqa: N802
        address._obj.value = 0x7F00 + n_bytes.value  # type: ignore[attr-defined]
        return 0

    def cuIpcGetMemHandle(self, handle: object, address: ctypes.c_uint64) -> int:  # noqa: N802
        handle._obj.reserved[0] = address.value % 251  # type: ignore[attr-defined]
        return 0

    def cuIpcOpenMemHandle_v2(self, address: object, handle: cuda_driver.IpcHandle, flags: ctypes.c_uint) -> int:  # noqa: N802
        self.opened = bytes(handle.reserved)
        address._obj.value = 0x9000  # type: ignore[attr-defined]
        return 0

    def cuMemFree_v2(self, address: ctypes.c_uint64) -> int:  # noqa: N802
        return 700

    def cuGetErrorName(self, status: int, text: object) -> int:  # noqa: N802
        text._obj.value = b"CUDA_ERROR_ILLEGAL_ADDRESS"  # type: ignore[attr-defined]
        return 0


def test_driver_calls_pass_handles_by_value_and_name_their_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCuda()
    monkeypatch.setattr(cuda_driver, "library", lambda: fake)
    address = cuda_driver.allocate(256)
    handle = cuda_driver.export_handle(address)
    assert (address, len(handle)) == (0x7F00 + 256, cuda_driver.HANDLE_BYTES)
    assert cuda_driver.open_handle(handle) == 0x9000
    assert fake.opened == handle
    with pytest.raises(cuda_driver.DriverError, match="cuMemFree_v2: CUDA_ERROR_ILLEGAL_ADDRESS"):
        cuda_driver.free(address)


def test_a_reading_says_what_the_gpu_was_at() -> None:
    state = GpuState(1980, 3201, 312.46, 61, (), ())
    assert state.reading() == {"sm_mhz": 1980, "memory_mhz": 3201, "w": 312.5, "c": 61}


@pytest.mark.parametrize(
    ("slope_us", "events_us", "device_us", "n_calls", "agree"),
    [
        (104.0, 100.0, 100.0, 300, True),
        (107.0, 100.0, 100.0, 300, False),
        (100.0, 50.0, 50.0, 300, False),
        (90.0, 100.0, 100.0, 300, True),
        (8.0, 7.0, 7.0, 3000, False),
        (7.4, 7.0, 7.0, 3000, True),
        (130.0, 100.0, 100.0, 12, True),
        (107.0, 106.0, 101.0, 300, True),  # it warmed up between the batches
        (100.0, 100.0, 75.0, 300, False),  # the short batch claimed to take no time
    ],
)
def test_the_engines_clock_bears_out_events_within_five_per_cent_and_a_wake_up(
    slope_us: float, events_us: float, device_us: float, n_calls: int, agree: bool
) -> None:
    assert clocks_agree(slope_us, events_us, device_us, n_calls) is agree


@given(st.floats(1e-6, 1e-2), st.floats(0, 1e-2), st.integers(1, 200))
def test_a_lead_keeps_the_host_ahead_at_every_call(queue_s: float, call_s: float, n_calls: int) -> None:
    """Call i is queued at (i + 1) queue_s; the device gets to it after the lead and i calls before it."""
    lead = lead_s(queue_s, call_s, n_calls)
    assert all((i + 1) * queue_s <= lead + i * call_s + 1e-12 for i in range(n_calls))
    assert lead <= n_calls * queue_s + 1e-12


@given(st.integers(1, 1 << 40))
def test_an_arena_is_made_of_whole_large_pages(n_bytes: int) -> None:
    assert n_bytes <= whole_pages(n_bytes) < n_bytes + LARGE_PAGE
    assert whole_pages(n_bytes) % LARGE_PAGE == 0


def test_a_reading_of_a_moment_ago_is_not_taken_again() -> None:
    now, asked = [0.0], []
    read = lately(lambda: asked.append(now[0]) or f"read at {now[0]}", 0.02, lambda: now[0])  # type: ignore[func-returns-value]
    assert [read(), read()] == ["read at 0.0"] * 2
    now[0] = 0.05
    assert read() == "read at 0.05"
    assert asked == [0.0, 0.05]


class FakeZygote:
    def __init__(self) -> None:
        self.buried: list[object] = []

    def bury(self, worker: object) -> None:
        self.buried.append(worker)


def test_the_incumbent_that_is_met_again_and_again_outlives_newer_leaders() -> None:
    zygote = FakeZygote()
    sides = Sides(zygote, None, None, None, 0, 1.0)  # type: ignore[arg-type]
    incumbent, *leaders = [
        Side(name, source_sha(name), SimpleNamespace(alive=True, name=name), None)  # type: ignore[arg-type]
        for name in ("incumbent", "one", "two", "three")
    ]
    sides.keep(incumbent)
    for leader in leaders:
        assert sides.kept("c0001", "incumbent") is incumbent
        sides.keep(leader)
    assert [worker.name for worker in zygote.buried] == ["one", "two"]  # type: ignore[attr-defined]
    assert sides.keeps(incumbent)
