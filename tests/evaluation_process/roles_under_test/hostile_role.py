"""A role whose methods do what a hostile candidate would try."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from kbtui.evaluation.process.failures import HarnessError

WARMED = []
KEPT = []


def warm(fds):
    WARMED.append(len(fds))
    with contextlib.suppress(PermissionError):
        KEPT.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))


def make(fds):
    return {
        "echo": lambda text, payload=None: text,
        "reverse": _reverse,
        "warmed": lambda: WARMED,
        "read_fd": lambda: os.read(fds[0], 100).decode(),
        "raise_error": _raise_error,
        "bare_assert": _bare_assert,
        "raise_hostile": _raise_hostile,
        "abort": os.abort,
        "leave": lambda status: os._exit(status),
        "nap": lambda: time.sleep(30),
        "spin": _spin,
        "flood": _flood,
        "hog": lambda n_bytes: len(bytearray(n_bytes)),
        "hog_shared": _hog_shared,
        "read_file": lambda path: open(path).read(),
        "write_file": lambda path: open(path, "w").write("x"),
        "write_scratch": lambda n_bytes: open("big", "wb").write(bytes(n_bytes)),
        "fill_disk": _fill_disk,
        "truncate": lambda path: os.truncate(path, 0),
        "chmod": lambda path: os.chmod(path, 0o777),
        "connect": lambda: socket.create_connection(("127.0.0.1", 9), 1),
        "unix_socket": lambda: socket.socket(socket.AF_UNIX).close(),
        "socket_while_warming": lambda: "opened" if KEPT else "refused",
        "reach": _reach,
        "find_in_memory": _find_in_memory,
        "execute": lambda: subprocess.run(["/bin/true"]).returncode,
        "fork": os.fork,
        "fork_with_clone3": _clone3,
        "thread": _thread,
        "signal": lambda pid: os.kill(pid, signal.SIGKILL),
        "limit": _limit,
        "trace": lambda pid: _libc(ctypes.CDLL(None, use_errno=True).ptrace(16, pid, 0, 0)),
        "read_memory_of": lambda pid: open(f"/proc/{pid}/mem", "rb").read(1),
        "leave_group": os.setsid,
        "disarm": lambda: _libc(ctypes.CDLL(None, use_errno=True).prctl(1, 0, 0, 0, 0)),
        "environment": lambda: dict(os.environ),
        "forge": _forge,
        "start_sleeper": lambda: subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid,
        "pid": os.getpid,
        "deep_folders": _deep_folders,
        "many_threads": _many_threads,
        "signal_by_owner": _signal_by_owner,
        "change_limit": _change_limit,
        "first_environment": lambda: open("/proc/self/environ", "rb").read().decode(errors="replace"),
        "attach": lambda n_bytes: _attach(n_bytes),
        "hang_up": lambda: os.closerange(3, 100) or time.sleep(30),
        "compute": _compute,
    }


def _reach(path, how):
    match how:
        case "kept":
            KEPT[0].getsockname()
        case "connect":
            KEPT[0].connect(path)
        case "sendto":
            KEPT[0].sendto(b"x", path)
        case "sendmsg":
            KEPT[0].sendmsg([b"x"], [], 0, path)
        case "bind":
            KEPT[0].bind("here")
        case "socketpair":
            socket.socketpair()


def _find_in_memory(backwards):
    """How often a text lies in this process's writable memory; the text is given backwards, so as not to be found."""
    wanted, found = bytes(reversed(backwards.encode())), 0
    first, rest = wanted[:4], wanted[4:]
    del wanted
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
        for line in maps:
            span, mode = line.split()[:2]
            begin, end = (int(x, 16) for x in span.split("-"))
            if mode.startswith("rw") and "[vvar" not in line:
                memory.seek(begin)
                try:
                    block = memory.read(end - begin)
                except OSError:
                    continue
                at = block.find(first)
                while at >= 0:
                    found += block[at + 4 : at + 4 + len(rest)] == rest
                    at = block.find(first, at + 1)
    return found


def _reverse(payload):
    from kbtui.evaluation.process import Attached

    return Attached(len(payload), payload[::-1])


def _raise_error():
    raise ValueError("no such shape")


def _bare_assert(head_dim):
    assert head_dim in {64, 128, 256}


class OtherText(str):
    """What a reader of it would call, it answers otherwise."""

    def __getitem__(self, _):
        return "x" * (1 << 20)

    def __bool__(self):
        raise SystemExit(3)

    def strip(self, *_):
        return object()


class OtherName(type):
    @property
    def __name__(cls):
        raise SystemExit(5)


def _raise_hostile(how):
    class HostileError(Exception, metaclass=OtherName if how == "name_that_raises" else type):
        @property
        def __class__(self):
            return HarnessError if how == "class_that_lies" else type(self)

        def __str__(self):
            if how == "text_that_raises":
                raise SystemExit(4)
            return OtherText("words")

        @property
        def __traceback__(self):
            if how == "traceback_that_raises":
                raise KeyboardInterrupt
            return None

    raise HostileError


def _fill_disk(file_bytes):
    for number in range(1000):
        with open(f"part{number}", "wb") as part:
            part.write(bytes(file_bytes))
    time.sleep(30)


def _deep_folders(n, nap_s):
    for _ in range(n):
        os.mkdir("d")
        os.chdir("d")
    open("file", "w").close()
    time.sleep(nap_s)


def _many_threads():
    threading.stack_size(1 << 16)
    for _ in range(4000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    time.sleep(30)


def _signal_by_owner(pid, how):
    """Has the kernel send SIGKILL to a process when a socket becomes readable."""
    import fcntl

    mine, other = socket.socketpair()
    fcntl.fcntl(mine, 10, signal.SIGKILL)
    if how == "fcntl":
        fcntl.fcntl(mine, fcntl.F_SETOWN, pid)
    else:
        fcntl.ioctl(mine, 0x8901, pid.to_bytes(4, sys.byteorder))
    fcntl.fcntl(mine, fcntl.F_SETFL, os.O_ASYNC)
    other.send(b"x")
    time.sleep(0.2)


def _change_limit():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard - 1))


def _attach(n_bytes):
    from kbtui.evaluation.process import Attached

    return Attached(0, bytes(n_bytes))


def _compute(cpu_s):
    end = time.thread_time() + cpu_s
    while time.thread_time() < end:
        pass


def _spin():
    while True:
        pass


def _flood(n_bytes):
    block = "y" * (1 << 20)
    for _ in range(n_bytes >> 20):
        sys.stdout.write(block)
    sys.stdout.flush()


def _hog_shared():
    import mmap

    area = mmap.mmap(-1, 1 << 30)
    for offset in range(0, 1 << 30, 4096):
        area[offset] = 1
    time.sleep(30)


def _libc(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def _clone3():
    return _libc(ctypes.CDLL(None, use_errno=True).syscall(435, ctypes.create_string_buffer(88), 88))


def _thread():
    ran = []
    thread = threading.Thread(target=lambda: ran.append(True))
    thread.start()
    thread.join()
    return ran


def _limit(pid):
    import resource

    return resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))


def _forge():
    """Writes a frame of absurd length on every descriptor that takes it."""
    for fd in range(3, 32):
        try:
            os.write(fd, b"\xff" * 12)
        except OSError:
            continue
    time.sleep(30)
