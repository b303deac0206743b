"""Effects: textual-serve's web server, for pages of this very server alone and with no file to be had by chance."""

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import WSCloseCode, web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

_FONT = re.compile(r"<link[^>]*fonts\.googleapis\.com[^>]*>", re.DOTALL)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: A ping to a page that is open, lest what lies between believe the connection idle.
HEARTBEAT_S = 15
#: What a viewer may take to end by itself before it is ended: it has nothing to save.
ENDING_S = 3.0


class ViewerServer(Server):
    """A page of another site must neither look nor steer: a browser would open its websocket to us all the same."""

    def __init__(self, command: str, host: str, port: int, title: str, public_url: str) -> None:
        super().__init__(command, host=host, port=port, title=title, public_url=public_url)
        self._pages: set[web.WebSocketResponse] = set()

    def initialize_logging(self) -> None:
        """Warnings alone: what there is to say has been said."""
        logging.basicConfig(level="WARNING", format="kbtui: %(message)s")

    async def handle_index(self, request: web.Request) -> Any:
        """The page, without its font from another site: nobody else is told that someone looks."""
        page: Any = await super().handle_index(request)
        page.text = _FONT.sub("", page.text)
        return page

    async def on_startup(self, app: web.Application) -> None:
        """No banner."""

    async def on_shutdown(self, app: web.Application) -> None:
        """Close the pages: each one's handler then ends its viewer, instead of being waited for a minute."""
        for page in list(self._pages):
            await page.close(code=WSCloseCode.GOING_AWAY, message=b"kbtui serve has ended")

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A viewer of its own for the page, whose process has ended when this returns."""
        page = web.WebSocketResponse(heartbeat=HEARTBEAT_S)
        await page.prepare(request)

        async def close() -> None:
            await page.close()

        viewer = _Viewer(
            self.command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        self._pages.add(page)
        try:
            await viewer.start(
                to_int(request.query.get("width", "80"), 80), to_int(request.query.get("height", "24"), 24)
            )
            await self._process_messages(page, viewer)
        finally:
            self._pages.discard(page)
            await viewer.stop()
        return page

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app["bound_to"] = self.host
        app.middlewares.append(_own_pages_only)
        return app


class _Viewer(AppService):
    """textual-serve's waits for the end of what a viewer says, not of its process, which a closing loop trips over."""

    async def stop(self) -> None:
        """Ask it to quit, end it if it does not, and reap it."""
        process = self._process
        if process is None:
            return
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(super().stop(), ENDING_S)
        finally:  # whatever became of the asking: a second ctrl+c too
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


@web.middleware
async def _own_pages_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a request whose Origin is another site's, and a Host that is a name which only points here."""
    if not is_own_page(request.headers.get("Host", ""), request.headers.get("Origin"), request.app["bound_to"]):
        raise web.HTTPForbidden(text="kbtui serve: not for other sites' pages\n")
    return await handler(request)


def is_own_page(host: str, origin: str | None, bound_to: str) -> bool:
    """Whether a request comes from a page of this server, or from no page at all.

    ``host`` is what the browser believes it talks to: on loopback only loopback's own names, lest another site's name
    be made to point at it.
    """
    name = urlsplit(f"//{host}").hostname or ""
    if bound_to in LOOPBACK and name not in LOOPBACK:
        return False
    return origin is None or urlsplit(origin).netloc == host


LOOPBACK = ("127.0.0.1", "::1", "localhost")
