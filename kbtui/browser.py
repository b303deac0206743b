"""Effects: textual-serve's web server, for pages of this very server alone and with no file to be had by chance."""

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

_FONT = re.compile(r"<link[^>]*fonts\.googleapis\.com[^>]*>", re.DOTALL)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ViewerServer(Server):
    """A page of another site must neither look nor steer: a browser would open its websocket to us all the same."""

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

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app["bound_to"] = self.host
        app.middlewares.append(_own_pages_only)
        return app


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
