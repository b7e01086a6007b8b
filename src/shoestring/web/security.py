"""The guard in front of all routes: who may send which request, and with which headers every answer goes out.

The guard is an ASGI application around the application. It refuses everything that it is not told to let in. So a new route is
closed, without a line of its own:

    400   the Host is not that of this server: another website that has its name point here (DNS rebinding)
    403   the Origin is another website, the CSRF token is missing, or the link is read-only
    401   there is no key; the answer is the page to sign in
    413   the body is too large
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from traceback import format_exception
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .keys import Keys, Visitor

log = logging.getLogger("shoestring.page")

PUBLIC = (  # what the page to sign in needs; everything else needs a key
    ("GET", "/static/page.css"), ("GET", "/static/page.js"), ("GET", "/static/icon.svg"), ("POST", "/login"),
)  # fmt: skip
SAFE_METHODS = ("GET", "HEAD")
CSRF_FIELD, CSRF_HEADER = "csrf", "x-csrf-token"
MAX_BODY_BYTES = 1 << 20
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:\d{1,5})?")
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refused(Exception):
    """A request that is not let in: the status, what is wrong, and how to fix it."""

    def __init__(self, status: int, what: str, fix: str) -> None:
        super().__init__(what)
        self.status, self.what, self.fix = status, what, fix


class Guard:
    """The application behind its checks.

    hosts     names under which the server may be reached, besides those of this machine
    any_ip    also by every IP address, for a server that is bound to all of them: a website has a name, not an address of ours
    refusal   makes the HTML page of a refused request from (status, what, fix)
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: Keys,
        *,
        hosts: Sequence[str] = (),
        any_ip: bool = False,
        refusal: Callable[[int, str, str], str],
        hide: Callable[[str], str] = str,
    ) -> None:
        self.app, self.keys, self.any_ip, self.refusal, self.hide = app, keys, any_ip, refusal, hide
        self.hosts = {name.lower().strip("[]") for name in (*LOOPBACK_NAMES, *hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket: there are none
            await send({"type": "websocket.close", "code": 1008})
            return
        began = False

        async def send_with_headers(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.enter(scope, receive, send_with_headers)
        except Refused as refused:
            await self.answer(scope, refused)(scope, receive, send_with_headers)
        except Exception as error:  # a defect: the log has its traceback, without passwords
            log.error("%s %s failed:\n%s", scope["method"], scope["path"], self.hide("".join(format_exception(error))))
            if not began:
                defect = Refused(500, "this page has failed by a defect of the program", "the log of the server has the reason")
                await self.answer(scope, defect)(scope, receive, send_with_headers)

    async def enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on."""
        headers, method = Headers(scope=scope), scope["method"]
        self.check_place(headers, method)
        visitor = self.visitor(headers)
        scope.setdefault("state", {})["visitor"] = visitor
        is_public = (method, scope["path"]) in PUBLIC
        if visitor is None and not is_public:
            raise Refused(
                401, "this page needs a key", "open the link that shoestring serve has printed, or sign in with its token"
            )
        if method not in SAFE_METHODS:
            body = await read_body(receive)
            if not is_public and visitor is not None:
                check_change(visitor, scope["path"], headers, body)
            receive = replayed(body, receive)
        await self.app(scope, receive, send)

    def check_place(self, headers: Headers, method: str) -> None:
        """Whether the request was meant for this server, and comes from its own pages or from a program."""
        host = headers.get("host", "")
        if not self.knows(host):
            raise Refused(
                400, "the Host of this request is not that of this server", "use the printed address, or give --allow-host NAME"
            )
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        # A form of a page with "no-referrer" has the Origin "null". Then the browser itself says whose form it is.
        is_own = origin is None or urlsplit(origin).netloc.lower() == host.lower() or (origin == "null" and site == "same-origin")
        if not is_own or (method not in SAFE_METHODS and site not in ("none", "same-origin")):
            raise Refused(403, "this request comes from another website", "open the printed address itself")

    def knows(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found["name"].lower().strip("[]")
        if name in self.hosts:
            return True
        try:
            return self.any_ip and bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    def visitor(self, headers: Headers) -> Visitor | None:
        """By the Authorization header or by the cookie; None for a stranger. A wrong token is not helped by a cookie."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme:
            role = self.keys.role_of_token(token.strip()) if scheme.lower() == "bearer" else None
            return None if role is None else Visitor(role)
        cookie = cookie_parser(headers.get("cookie", "")).get(self.keys.cookie_name)
        return None if cookie is None else self.keys.visitor_of_cookie(cookie)

    def answer(self, scope: Scope, refused: Refused) -> Response:
        """The answer to a refused request: a page for people, JSON for programs."""
        if wants_html(scope):
            return HTMLResponse(self.refusal(refused.status, refused.what, refused.fix), refused.status)
        extra = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else None
        return JSONResponse({"error": refused.what, "fix": refused.fix}, refused.status, extra)


def wants_html(scope: Scope) -> bool:
    return "text/html" in Headers(scope=scope).get("accept", "") and not scope["path"].startswith("/api/")


def check_change(visitor: Visitor, path: str, headers: Headers, body: bytes) -> None:
    """Whether a request that changes something is allowed: not by a read-only link, and a browser needs its CSRF token."""
    if visitor.csrf is not None:
        given = headers.get(CSRF_HEADER) or form_field(headers, body, CSRF_FIELD)
        if not hmac.compare_digest(given.encode("utf-8", "replace"), visitor.csrf.encode()):
            raise Refused(403, "the CSRF token of this request is missing or old", "load the page again, then repeat it")
    if not visitor.may_write and path != "/logout":
        raise Refused(403, "this link is read-only", "ask for the link that may change studies")


def form_field(headers: Headers, body: bytes, name: str) -> str:
    """A field of a form that a browser has sent; empty if there is none."""
    if not headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return ""
    return parse_qs(body.decode("utf-8", "replace")).get(name, [""])[0]


async def read_body(receive: Receive) -> bytes:
    """The body of a request, which must not be too large."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        if sum(map(len, parts)) > MAX_BODY_BYTES:
            raise Refused(413, "the body of this request is too large", f"send at most {MAX_BODY_BYTES} bytes")
        if not message.get("more_body"):
            return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body once more, for the route."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def signed_in(response: Response, keys: Keys, cookie: str, *, secure: bool) -> Response:
    """The response with the cookie of a new session, which no script can read and no other website can use."""
    response.set_cookie(keys.cookie_name, cookie, httponly=True, samesite="strict", secure=secure, path="/")
    return response


def json_text(document: Mapping[str, Any]) -> str:
    """A document for the script, on one line."""
    return json.dumps(document, allow_nan=False, separators=(",", ":"))
