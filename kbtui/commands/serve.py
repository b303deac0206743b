"""serve: the viewer in a browser. Effects: a web server, and a viewer's process for each page that is open."""

import ipaddress
import os
import shlex
import socket
import sys
from pathlib import Path

from kbtui.commands.view import Look
from kbtui.commands.where import open_reader, pick_run
from kbtui.console import tell
from kbtui.errors import DeviceError, ExitCode, UsageError

#: A browser has all the colours, which its viewer's process cannot know.
BROWSER_THEME = "kbtui-dark"


def serve(workspace: Path, run: str | None, look: Look, host: str, port: int, steer: bool) -> ExitCode:
    """Serve until it is interrupted. Raises DeviceError without textual-serve, UsageError on an address taken."""
    try:
        from kbtui.browser import ViewerServer
    except ImportError:
        raise DeviceError("kbtui serve needs textual-serve", "pip install textual-serve") from None
    name = pick_run(open_reader(workspace), run)
    _check_free(host, port)
    if not _is_loopback(host):
        whoever = "steer the search" if steer else "see the search"
        tell(f"kbtui: whoever reaches {host}:{port} can {whoever}; there is no password. An ssh tunnel is safer")
    shown = f"[{host}]" if ":" in host else host
    tell(f"run {name} at http://{shown}:{port}; ctrl+c ends this, not the search")
    words = viewer_command(workspace, name, look, steer)
    ViewerServer(words, host=host, port=port, title=f"kbtui {name}", public_url=f"http://{shown}:{port}").serve()
    return ExitCode.DONE


def viewer_command(workspace: Path, run: str, look: Look, steer: bool) -> str:
    """The shell's words for the viewer that a page shows."""
    words = [sys.executable, "-m", "kbtui", "attach", run, "--workspace", str(workspace)]
    words += ["--refresh", f"{look.refresh_hz:g}", "--theme", look.theme or BROWSER_THEME]
    # exec: a shell between would be what is ended, and the viewer would stay
    return "exec " + shlex.join(words if steer and not look.readonly else [*words, "--readonly"])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_free(host: str, port: int) -> None:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(found[0], found[1]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(found[4])
    except OSError as error:
        what = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise UsageError(f"cannot listen at {host}:{port}: {what}", "choose another with --host or --port") from None
