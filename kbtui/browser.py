"""Effects: textual-serve's web server, for pages of this very server alone and with no file to be had by chance."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ViewerServer(Server):
    """A page of another site must neither look nor steer: a browser would open its websocket to us all the same."""

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
