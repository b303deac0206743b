"""Effects: confines the calling process, for good. Applied by a child right after its fork, before any of its work.

Three layers, each reported: Landlock (files, abstract sockets, TCP), seccomp (system calls), limits (memory, CPU
seconds, file size). ``KBTUI_SANDBOX=off`` in the engine's environment leaves them out; every run is then stamped so.
"""

import contextlib
import ctypes
import importlib.util
import os
import resource
import site
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kbtui.errors import UsageError
from kbtui.evaluation.process import landlock, seccomp

SWITCH = "KBTUI_SANDBOX"
_GIB = 1 << 30
_MIB = 1 << 20
_KEPT_VARIABLES = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ", "CC", "CUDA_HOME", "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING", "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES", "TRITON_INTERPRET", "TRITON_LIBCUDA_PATH", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "PYTHONPATH", "PYTHONSAFEPATH", "PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Protection:
    """One layer of the sandbox on this machine. ``detail`` says what it covers, or why it is missing."""

    name: str
    enforced: bool
    detail: str


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What a child may do. Its own scratch directory is always writable and is its HOME, TMPDIR and cwd.

    Attributes:
        read, write: files and directory trees; ``write`` includes reading.
        exec: programs it may start; with none, it can neither start programs nor fork.
        network: sockets other than AF_UNIX.
        unix_sockets: AF_UNIX sockets until ``lock`` (CUDA's start needs them).
        memfd: anonymous files in memory, which count towards no limit.
        memory_bytes: of private memory (RLIMIT_DATA), also checked against its resident set while a call is waited for.
        cpu_s: seconds of CPU time, all threads together.
        file_bytes: largest file it may write, its log included.
        scratch_bytes: of its scratch directory, checked while a call is waited for.
        n_files: open files.
        n_processes: the user's processes, where it may fork (does not bind root).
        env: variables set in the child after everything but a short list is removed.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    exec: tuple[Path, ...] = ()
    network: bool = False
    unix_sockets: bool = False
    memfd: bool = False
    memory_bytes: int = 8 * _GIB
    cpu_s: int = 600
    file_bytes: int = 64 * _MIB
    scratch_bytes: int = 1 * _GIB
    n_files: int = 512
    n_processes: int | None = None
    env: tuple[tuple[str, str], ...] = field(default=())

    @property
    def folders(self) -> tuple[Path, ...]:
        """Directories beside its scratch that it may fill."""
        return tuple(p for p in self.write if p.parts[:2] not in (("/", "dev"), ("/", "proc")))


def cpu_policy(
    *,
    read: tuple[Path, ...] = (),
    write: tuple[Path, ...] = (),
    exec: tuple[Path, ...] = (),  # noqa: A002
    memory_bytes: int = 8 * _GIB,
    cpu_s: int = 600,
    env: tuple[tuple[str, str], ...] = (),
) -> SandboxPolicy:
    """For a child that needs Python, torch and Triton on the CPU and nothing else of this machine."""
    return SandboxPolicy(
        read=_python_paths() + _SYSTEM_READ + read,
        write=(*_NULL_DEVICES, *write),
        exec=exec,
        memory_bytes=memory_bytes,
        cpu_s=cpu_s,
        env=env,
    )


def cuda_policy(
    *,
    read: tuple[Path, ...] = (),
    write: tuple[Path, ...] = (),
    memory_bytes: int = 32 * _GIB,
    cpu_s: int = 600,
    env: tuple[tuple[str, str], ...] = (),
) -> SandboxPolicy:
    """For a child that runs kernels: the driver's devices, its description of the machine, its AF_UNIX sockets.

    Tried with driver 580 (CUDA 13.0): /dev/shm and anonymous files are not needed, not even for CUDA IPC.
    """
    return SandboxPolicy(
        read=_python_paths() + _SYSTEM_READ + _CUDA_READ + read,
        write=(*_NULL_DEVICES, *_cuda_devices(), Path("/proc/self/task"), *write),
        unix_sockets=True,
        memory_bytes=memory_bytes,
        cpu_s=cpu_s,
        n_files=4096,
        env=env,
    )


def switched_on(environ: "os._Environ[str] | dict[str, str]" = os.environ) -> bool:
    """Raises UsageError for a value of KBTUI_SANDBOX other than on and off."""
    value = environ.get(SWITCH, "on").lower()
    if value not in ("on", "off"):
        raise UsageError(f"{SWITCH}={value} is neither on nor off", f"set {SWITCH}=on, or remove it")
    return value == "on"


def apply(policy: SandboxPolicy, scratch: Path, *, scrub: bool = True) -> tuple[Protection, ...]:
    """Confine this process. A layer the kernel lacks is reported as not enforced; nothing is raised.

    ``scrub``: leave only harmless variables; False where the process was started with ``clean_environment``.
    """
    if scrub:
        settle(policy, scratch)
    with contextlib.suppress(OSError):
        os.chdir(scratch)
    return (_apply_limits(policy), _apply_landlock(policy, scratch), _apply_seccomp(policy))


def lock(policy: SandboxPolicy) -> tuple[Protection, ...]:
    """Take away what was needed to get ready, before anything of a candidate runs: what sockets the policy allowed."""
    machine = seccomp.this_machine()
    if not policy.unix_sockets or machine is None:
        return ()
    try:
        seccomp.install(seccomp.build_lock(machine))
    except OSError as error:
        return (Protection("lock", False, f"AF_UNIX sockets stay open to it: {error}"),)
    return (Protection("lock", True, "no socket once the driver is connected"),)


def settle(policy: SandboxPolicy, scratch: Path) -> None:
    """Only harmless variables, in memory too, and the scratch as working directory: also where nothing is confined."""
    clean = clean_environment(policy, scratch, os.environ)
    os.environ.clear()
    os.environ.update(clean)
    _wipe_first_environment()
    with contextlib.suppress(OSError):
        os.chdir(scratch)


def _wipe_first_environment() -> None:
    """What this process was started with stays readable in /proc/self/environ until its memory is overwritten."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
        # Fields 50 and 51 of proc_pid_stat(5); the list here starts with the third.
        begin, end = int(fields[47]), int(fields[48])
        if begin and end > begin:
            ctypes.memset(begin, 0, end - begin)


def probe(timeout_s: float = 10.0) -> tuple[Protection, ...]:
    """What this machine can enforce, found by confining a process that does nothing else."""
    if not switched_on():
        return (Protection("sandbox", False, f"{SWITCH}=off: candidates run unconfined; remove it to confine them"),)
    main = "from kbtui.evaluation.process.probe import main; main()"
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    with tempfile.TemporaryDirectory(prefix="kbtui-probe-") as scratch:
        command = [sys.executable, "-c", main, scratch]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, env=env)
        except subprocess.TimeoutExpired:
            return (Protection("sandbox", False, f"its probe did not end in {timeout_s:g} s"),)
    if answer.returncode:
        return (Protection("sandbox", False, f"its probe failed: {answer.stderr.strip()[-200:]}"),)
    lines = (line.split("\t") for line in answer.stdout.splitlines())
    return tuple(Protection(name, enforced == "1", detail) for name, enforced, detail in lines)


def _apply_limits(policy: SandboxPolicy) -> Protection:
    limits = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, policy.memory_bytes),
        (resource.RLIMIT_CPU, policy.cpu_s),
        (resource.RLIMIT_FSIZE, policy.file_bytes),
        (resource.RLIMIT_NOFILE, policy.n_files),
    ]
    if policy.n_processes is not None:
        limits.append((resource.RLIMIT_NPROC, policy.n_processes))
    for which, amount in limits:
        _, hard = resource.getrlimit(which)
        amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(which, (amount, amount))
    detail = f"{policy.memory_bytes >> 20} MiB of memory, {policy.cpu_s} CPU s, {policy.file_bytes >> 20} MiB a file"
    return Protection("limits", True, detail)


def _apply_landlock(policy: SandboxPolicy, scratch: Path) -> Protection:
    try:
        version = landlock.restrict(
            read=policy.read, write=(scratch, *policy.write), execute=policy.exec, network=policy.network
        )
    except OSError as error:
        return Protection("landlock", False, f"files are not confined: {error}; Linux 5.13 or later has Landlock")
    if version < 3:
        return Protection("landlock", False, f"version {version} lets files outside be truncated; Linux 6.2 does not")
    scope = "files, TCP, signals" if version >= 6 else "files"
    return Protection("landlock", True, f"version {version}: {scope}")


def _apply_seccomp(policy: SandboxPolicy) -> Protection:
    machine = seccomp.this_machine()
    if machine is None:
        return Protection("seccomp", False, f"no table of system calls for {os.uname().machine}")
    program = seccomp.build_filter(
        machine, os.getpid(), may_exec=bool(policy.exec), unix_sockets=policy.unix_sockets, memfd=policy.memfd
    )
    try:
        seccomp.install(program)
    except OSError as error:
        return Protection("seccomp", False, f"system calls are not filtered: {error}")
    return Protection("seccomp", True, "no sockets, programs, tracing or signals to others beyond the policy")


def clean_environment(policy: SandboxPolicy, scratch: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """What a confined process sees of an environment: a short list of variables, its scratch as HOME and TMPDIR."""
    kept = {name: environ[name] for name in _KEPT_VARIABLES if name in environ}
    return kept | {"HOME": str(scratch), "TMPDIR": str(scratch), "USER": "kbtui"} | dict(policy.env)


def _python_paths() -> tuple[Path, ...]:
    """The interpreter's library, the directories torch and Triton live in, and kbtui's own package."""
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    places |= {*site.getsitepackages(), site.getusersitepackages(), str(Path(sys.base_prefix) / "lib")}
    for package in ("torch", "triton"):
        found = importlib.util.find_spec(package)
        places |= {str(Path(where).parent) for where in (found.submodule_search_locations or ())} if found else set()
    return (Path(__file__).parents[2], Path(sys.prefix) / "pyvenv.cfg", *(Path(p) for p in sorted(places)))


def _cuda_devices() -> tuple[Path, ...]:
    return tuple(sorted(Path("/dev").glob("nvidia*")))


_NULL_DEVICES = tuple(Path(p) for p in ("/dev/null", "/dev/zero", "/dev/full"))
_SYSTEM_READ = tuple(
    Path(p)
    for p in (
        "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime",
        "/usr/share/zoneinfo", "/dev/urandom", "/dev/random", "/proc/self", "/proc/cpuinfo", "/proc/meminfo",
        "/proc/stat", "/proc/version", "/proc/filesystems", "/proc/sys/vm", "/sys/devices/system",
    )
)  # fmt: skip
_CUDA_READ = tuple(
    Path(p)
    for p in (
        "/proc/devices", "/proc/modules", "/proc/driver", "/proc/sys/kernel", "/proc/self/task", "/sys/bus/pci",
        "/sys/devices", "/sys/module", "/sys/class", "/sys/kernel/mm", "/usr/local/cuda", "/usr/local/nvidia",
        "/etc/nvidia", "/usr/share/nvidia", "/run/nvidia-persistenced", "/var/run/nvidia-persistenced",
    )
)  # fmt: skip
