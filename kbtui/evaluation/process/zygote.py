"""Effects: the process that imported torch and Triton once and forks children on request. It never touches CUDA.

``main`` finds in ``argv[1]`` the number of a SOCK_SEQPACKET socket to the engine. When that closes, everything this
process started is killed and it ends, so nothing of a run outlives its engine.
"""

import contextlib
import errno
import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

from kbtui.evaluation.process import child, preload, wire

MESSAGE_BYTES = 1 << 17
_MAX_FDS = 253


class _Zygote:
    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.pid = os.getpid()
        self.children: set[int] = set()

    def run(self) -> None:
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        poller.register(woken, select.POLLIN)
        self.tell({"ready": preload.report()})
        while True:
            ready = {fd for fd, _ in poller.poll()}
            if woken in ready:
                os.read(woken, 4096)
                self.reap()
            if self.control.fileno() in ready and not self.serve_one():
                return

    def serve_one(self) -> bool:
        text, fds, _, _ = socket.recv_fds(self.control, MESSAGE_BYTES, _MAX_FDS)
        if not text:
            return False
        message = json.loads(text)
        match message["do"]:
            case "spawn":
                self.spawn(message, fds[0])
            case "kill":
                self.kill(message["pid"])
            case "stop" | "continue" as order:
                self.send(message["pid"], signal.SIGSTOP if order == "stop" else signal.SIGCONT)
        for fd in fds:
            os.close(fd)
        return True

    def spawn(self, message: dict[str, Any], fd: int) -> None:
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            sock = socket.socket(fileno=os.dup(fd))
            _close_all_but(sock.fileno())
            child.live(child.birth_from_plain(message["birth"]), sock, self.pid)
        self.children.add(pid)
        self.tell({"spawned": pid, "token": message["token"]})

    def kill(self, pid: int) -> None:
        # Only pids that have not been waited for: a number that was reused is never signalled.
        if pid in self.children:
            for send in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    send(pid, signal.SIGKILL)

    def send(self, pid: int, number: signal.Signals) -> None:
        if pid in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def reap(self) -> None:
        for pid in tuple(self.children):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            # What it started goes before its pid is released, for its group bears that number.
            self.kill(pid)
            _, status = os.waitpid(pid, 0)
            self.children.discard(pid)
            self.tell({"exited": pid, "status": os.waitstatus_to_exitcode(status)})

    def tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            self.control.send(json.dumps(message).encode())

    def end(self) -> None:
        for pid in tuple(self.children):
            self.kill(pid)
        deadline = time.monotonic() + 2.0
        while self.children and time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                pid, _ = os.waitpid(-1, os.WNOHANG)
                self.children.discard(pid)
                if pid == 0:
                    select.select([], [], [], 0.01)


def _close_all_but(keep: int) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.closerange(3, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 65536 else 65536)


@contextlib.contextmanager
def _dies_with_the_engine(control: socket.socket) -> Any:
    """While the import runs nothing reads the socket: its closing then ends this process by SIGIO's default."""
    flags = fcntl.fcntl(control, fcntl.F_GETFL)
    fcntl.fcntl(control, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(control, fcntl.F_SETFL, flags | os.O_ASYNC)
    if wire.readable(control, 0.0):
        sys.exit(0)  # nothing is asked before we are ready, so this is the engine's end
    try:
        yield
    finally:
        fcntl.fcntl(control, fcntl.F_SETFL, flags)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with _dies_with_the_engine(control):
        preload.load()
    gc.collect()
    gc.freeze()
    zygote = _Zygote(control)
    try:
        zygote.run()
    except OSError as error:
        if error.errno != errno.ECONNRESET:
            raise
    finally:
        if os.getpid() == zygote.pid:
            zygote.end()
