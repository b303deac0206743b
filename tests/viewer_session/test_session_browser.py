"""`kbtui serve` in a real browser: what it is sent, what its keys do, and who else may come in."""

import asyncio
import base64
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import aiohttp
import pytest

from kbtui.browser import is_own_page
from kbtui.domain.event import CommandKind
from store.reader import Reader
from store.workspace import open_workspace
from tests.fakes.commands import ROOT, kbtui, one_line
from tests.viewer_session.conftest import LIMIT_S, wait_for

#: For a server that was told to end, with pages open or not, on a loaded machine. aiohttp would wait a minute.
ENDING_LIMIT_S = 15


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def serving(search, *more: str) -> Iterator[int]:
    port = free_port()
    words = [sys.executable, "-m", "kbtui", "serve", search.run, "-w", str(search.workspace), "--port", str(port)]
    process = subprocess.Popen(
        [*words, *more], env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        wait_for("server", lambda: answers(port))
        yield port
    finally:
        process.terminate()
        _, said = process.communicate(timeout=ENDING_LIMIT_S)
    assert f"run {search.run} at http://127.0.0.1:{port}".encode() in said
    assert b"Traceback" not in said, said.decode()


async def drawn(page: aiohttp.ClientWebSocketResponse, wanted: bytes) -> None:
    """A websocket without a browser: read on until this was sent to it."""
    sent = b""
    async with asyncio.timeout(LIMIT_S):
        while wanted not in sent:
            sent += await page.receive_bytes()


@dataclass
class Page:
    """A page of a real browser, driven through its debugging port; ``received``: what its websockets were sent."""

    socket: aiohttp.ClientWebSocketResponse
    received: bytes = b""
    asked_for: bytes = b""
    answers: dict[int, dict] = field(default_factory=dict)
    n_asked: int = 0

    async def ask(self, method: str, **params) -> dict:
        self.n_asked += 1
        number = self.n_asked
        await self.socket.send_json({"id": number, "method": method, "params": params})
        while number not in self.answers:
            await self._take(LIMIT_S)
        return self.answers.pop(number)["result"]

    async def until(self, pattern: bytes) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not re.search(pattern, self.received):
                await self._take(LIMIT_S)

    async def click(self) -> None:
        """Where nothing but the terminal is, so that it has the keys."""
        for kind in ("mousePressed", "mouseReleased"):
            await self.ask("Input.dispatchMouseEvent", type=kind, x=300, y=20, button="left", clickCount=1)

    async def press(self, key: str) -> None:
        self.received = b""
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" else {}
            await self.ask("Input.dispatchKeyEvent", type=kind, key=key, **text)

    async def _take(self, limit_s: float) -> None:
        told = json.loads((await self.socket.receive(limit_s)).data)
        if "id" in told:
            self.answers[told["id"]] = told
        elif told["method"] == "Network.requestWillBeSent":
            self.asked_for += told["params"]["request"]["url"].encode() + b" "
        elif told["method"] == "Network.webSocketFrameReceived":
            frame = told["params"]["response"]
            self.received += base64.b64decode(frame["payloadData"]) if frame["opcode"] == 2 else b""


@contextlib.asynccontextmanager
async def browser(url: str, profile: str) -> AsyncIterator[Page]:
    port = free_port()
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    words += [f"--remote-debugging-port={port}", "--disable-background-networking", "--window-size=1400,900"]
    process = subprocess.Popen([*words, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for("browser", lambda: answers(port))
        async with aiohttp.ClientSession() as session:
            pages = await (await session.get(f"http://127.0.0.1:{port}/json")).json()
            address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
            async with session.ws_connect(address, max_msg_size=0) as debugging:
                page = Page(debugging)
                for domain in ("Network", "Page"):
                    await page.ask(f"{domain}.enable")
                await page.ask("Page.navigate", url=url)
                yield page
    finally:
        process.terminate()
        process.wait()


async def test_without_steer_a_page_only_looks(search):
    async with aiohttp.ClientSession() as session:
        with serving(search) as port:
            page = await session.ws_connect(f"http://127.0.0.1:{port}/ws?width=120&height=40")
            await drawn(page, b"c0001")
            await page.send_json(["stdin", "p"])
            await drawn(page, b"only looks")
    with Reader(open_workspace(search.workspace)) as reader:
        assert [c for c in reader.commands(search.run) if c.kind is CommandKind.PAUSE] == []
    wait_for("end of its viewer", lambda: search.viewers() == [])
    search.goes_on()


@pytest.mark.program("chromium")
async def test_a_browser_shows_the_viewer_and_with_steer_its_keys_steer(search, tmp_path):
    with serving(search, "--steer") as port:
        async with browser(f"http://127.0.0.1:{port}", str(tmp_path / "profile")) as page:
            await page.until(rb"c0001")
            picture = await page.ask("Page.captureScreenshot", format="png")
            assert len(base64.b64decode(picture["data"])) > 20_000
            assert b"googleapis" not in page.asked_for
            await page.click()
            await page.press("h")
            await page.until(rb"Give the search a hint")
            for key in "exp2":
                await page.press(key)
            await page.ask(
                "Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13
            )
            await page.until(rb"asked: hint")
    with Reader(open_workspace(search.workspace)) as reader:
        assert "exp2" in [c.argument for c in reader.commands(search.run) if c.kind is CommandKind.HINT]


async def test_another_sites_page_is_turned_away(search):
    with serving(search) as port:
        async with aiohttp.ClientSession() as session:
            for headers in ({"Origin": "http://evil.example"}, {"Host": f"evil.example:{port}"}):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await session.ws_connect(f"http://127.0.0.1:{port}/ws", headers=headers)
                assert refused.value.status == 403
            own = {"Origin": f"http://127.0.0.1:{port}"}
            async with session.ws_connect(f"http://127.0.0.1:{port}/ws", headers=own):
                pass


@pytest.mark.parametrize("shown", [False, True], ids=["before its viewer has drawn", "after"])
async def test_a_page_that_is_open_does_not_hold_the_server_back(search, shown):
    async with aiohttp.ClientSession() as session:
        with serving(search) as port:
            page = await session.ws_connect(f"http://127.0.0.1:{port}/ws?width=120&height=40")
            if shown:
                await drawn(page, b"c0001")
            wait_for("viewer", lambda: search.viewers() != [])
        assert search.viewers() == []


@pytest.mark.parametrize(
    ("host", "origin", "bound_to", "own"),
    [
        ("127.0.0.1:8000", None, "127.0.0.1", True),
        ("127.0.0.1:8000", "http://127.0.0.1:8000", "127.0.0.1", True),
        ("localhost:8000", "http://localhost:8000", "127.0.0.1", True),
        ("127.0.0.1:8000", "http://127.0.0.1:9000", "127.0.0.1", False),
        ("127.0.0.1:8000", "null", "127.0.0.1", False),
        ("rebound.example:8000", "http://rebound.example:8000", "127.0.0.1", False),
        ("[::1]:8000", "http://[::1]:8000", "::1", True),
        ("box.lan:8000", "http://box.lan:8000", "0.0.0.0", True),
        ("box.lan:8000", "http://evil.example", "0.0.0.0", False),
    ],
)
def test_whose_page_it_is(host, origin, bound_to, own):
    assert is_own_page(host, origin, bound_to) is own


def test_an_address_that_is_taken_is_named(search):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = kbtui("serve", "-w", search.workspace, "--port", str(port))
    assert f"cannot listen at 127.0.0.1:{port}" in one_line(done)
    assert done.returncode == 2
