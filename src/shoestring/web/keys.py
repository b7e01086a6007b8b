"""The keys of the page: links, cookies, tokens, and what each of them allows.

    one-time link     ``http://127.0.0.1:8321/#key=...``, printed when the server starts. Everything is allowed. It works once.
    read-only link    the same form. It works until the server ends, or as long as the token stays the same, and may be shared.
    token             chosen by the user (``--token``, SHOESTRING_TOKEN): for programs (``Authorization: Bearer``) and to sign in
    cookie            what a link or the token is exchanged for. It is signed, so the server keeps no list of sessions.

The key of a link is in the fragment of the address. A browser does not send that part to any server, so it is in no log and in no
Referer. The script of the page sends it once, in the body of a POST.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from typing import Literal

Role = Literal["write", "read"]

MIN_TOKEN_CHARACTERS = 16  # a shorter token can be guessed
SESSION_SECONDS = 12 * 3600.0  # how long a cookie is good for
MAX_LINKS = 20  # one-time links that are open at the same time: the oldest one ends first


@dataclass(frozen=True)
class Visitor:
    """Who sends a request: what is allowed, and the CSRF token of the session; None for a program with a token."""

    role: Role
    csrf: str | None = None

    @property
    def may_write(self) -> bool:
        return self.role == "write"


class Keys:
    """Makes and checks everything that lets a visitor in. Texts are compared in constant time."""

    def __init__(self, token: str | None = None) -> None:
        if token is not None and (len(token) < MIN_TOKEN_CHARACTERS or not token.isascii() or not token.isprintable()):
            raise ValueError(
                f"the token must have {MIN_TOKEN_CHARACTERS} or more ASCII characters; make one with: "
                'python -c "import secrets; print(secrets.token_urlsafe())"'
            )
        self._token = token
        self._secret = secrets.token_bytes(32) if token is None else hashlib.sha256(f"shoestring page {token}".encode()).digest()
        self._links: list[str] = []
        self.cookie_name = f"shoestring_{self._sign('cookie name')[:8]}"  # cookies are shared by all ports of a host
        self.read_only_key = self._sign("read-only link")

    def __repr__(self) -> str:
        return "Keys()"  # nothing of it belongs in a log

    def new_link_key(self) -> str:
        """The key of a new one-time link."""
        self._links = [*self._links, secrets.token_urlsafe(32)][-MAX_LINKS:]
        return self._links[-1]

    def exchange(self, key: str) -> Role | None:
        """What a key allows that a visitor signs in with; None if it is wrong. The key of a one-time link is used up."""
        for known in self._links:
            if same(key, known):
                self._links = [other for other in self._links if other != known]
                return "write"
        return self.role_of_token(key)

    def role_of_token(self, token: str) -> Role | None:
        """What a token allows that comes with a request of a program."""
        if self._token is not None and same(token, self._token):
            return "write"
        return "read" if same(token, self.read_only_key) else None

    def new_cookie(self, role: Role) -> str:
        """The value of a cookie for a new session."""
        body = f"{role}.{int(time.time() + SESSION_SECONDS)}.{secrets.token_urlsafe(9)}"
        return f"{body}.{self._sign(body)}"

    def visitor_of_cookie(self, cookie: str) -> Visitor | None:
        """The visitor of a cookie; None if it was not made here, or has ended."""
        body, _, signature = cookie.rpartition(".")
        role, _, rest = body.partition(".")
        until = rest.partition(".")[0]
        if not same(signature, self._sign(body)) or not until.isdecimal() or float(until) < time.time():
            return None
        return Visitor("write" if role == "write" else "read", self._sign(f"csrf {body}"))

    def _sign(self, text: str) -> str:
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two texts are equal, in a time that does not tell how far they agree."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())
