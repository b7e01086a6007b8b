"""Addresses of storages: read once, and printed without secrets.

A server's address may hold a password, in its place or among its options. So an address is never printed as it was given. What is
printed is put together anew from the parts that are known to be harmless: scheme, user, host, port, database, and options such as
``sslmode``. Of an address that cannot be read, no part is known to be harmless.

    postgresql://user:password@host:5432/database?sslmode=require

A password may hold any character but ``@``, which is written ``%40``. With two ``@`` it would not be clear where the host begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, quote_plus, unquote

STORAGE_VARIABLE = "SHOESTRING_STORAGE"  # in the environment: the address of the storage
HIDDEN = "***"
POSTGRES_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
HARMLESS_OPTIONS = {  # of libpq: settings that are no secrets, and the form of values that are shown
    **dict.fromkeys(("host", "port", "hostaddr", "sslmode", "application_name", "connect_timeout", "client_encoding", "service",
                     "target_session_attrs", "load_balance_hosts", "channel_binding", "gssencmode", "sslrootcert", "sslcert",
                     "sslcrl", "sslcompression", "sslsni", "krbsrvname", "require_auth", "replication", "keepalives",
                     "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"),
                    re.compile(r"[\w.,:/~*!-]*")),
    "options": re.compile(r"(-c\s*|--)search_path=[\w,.$-]+"),
}  # fmt: skip

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_USER = re.compile(r"[\w.-]*")
_PLACE = re.compile(  # all that follows the user and the password
    r"(?P<host>[A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\])(:(?P<port>\d{1,5}))?(/(?P<database>[^/?#@:;=&\s]*))?(\?(?P<options>[^?#@\s]*))?"
)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_NAMED_SECRET = re.compile(
    r"(?P<name>\b(?:ssl)?(?:pass(?:word|wd|phrase)?|pwd)\s*=\s*|\bscram\w*=)(?P<value>'[^']*'|[^&\s'\"]*)", re.IGNORECASE
)
# Lengths are limited, since a search for an unlimited one takes hours in a long text, such as a name of 100,000 letters.
ANY_SCHEME = r"[A-Za-z][\w+.-]{0,30}://"
_BEFORE_HOST = re.compile(rf"(?P<scheme>\b{ANY_SCHEME})(?!/)(?P<user>[\w.-]{{1,100}}(?=[:@]))?(?P<rest>.*)@")
_WITH_OPTIONS = re.compile(rf"(?P<place>\b{ANY_SCHEME}[^\s?]{{0,500}}\?)(?P<options>[^\s)'\"]*)")


@dataclass(frozen=True)
class ServerAddress:
    """The address of a database server, in its parts. Password and options are not in its repr, and secrets not in its text."""

    scheme: str
    user: str
    password: str | None = field(repr=False)
    host: str
    port: int | None
    database: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return self.shown

    @property
    def shown(self) -> str:
        """The address without its secrets, to be printed and to be opened again."""
        return self._text(self.user)

    @property
    def shown_with_gap(self) -> str:
        """As ``shown``, with *** where the password has to be written."""
        return self._text(self.user if self.password is None else f"{self.user}:{HIDDEN}")

    def _text(self, user: str) -> str:
        at = f"{user}@" if user else ""
        port = "" if self.port is None else f":{self.port}"
        options = "&".join(f"{name}={quote_plus(value)}" for name, value in self.harmless_options)
        database = f"/{quote(self.database)}" if self.database or options else ""
        scheme = "postgresql" if self.scheme in POSTGRES_SCHEMES else self.scheme
        return f"{scheme}://{at}{self.host}{port}{database}" + (f"?{options}" if options else "")

    @property
    def harmless_options(self) -> tuple[tuple[str, str], ...]:
        return tuple(each for each in self.options if is_harmless(*each))

    @property
    def secret_options(self) -> dict[str, str]:
        """The options that are not known to be harmless: also those that no server knows, such as a misspelt password."""
        return {name: value for name, value in self.options if not is_harmless(name, value)}

    @property
    def secrets(self) -> Iterator[str]:
        """The texts that must not be printed, as they are and as they are written in an address."""
        for text in (self.password, *self.secret_options.values()):
            if text:
                yield from {text, quote(text, safe=""), quote_plus(text)}


def is_harmless(name: str, value: str) -> bool:
    """Whether an option of an address may be printed."""
    return name in HARMLESS_OPTIONS and HARMLESS_OPTIONS[name].fullmatch(value) is not None


def parse_server(text: str) -> ServerAddress | None:
    """The parts of a server's address; None if they cannot be told apart without doubt."""
    scheme, separator, rest = text.partition("://")
    if not separator or not _SCHEME.fullmatch(scheme) or rest.count("@") > 1:
        return None
    login, _, place = rest.rpartition("@")
    found = _PLACE.fullmatch(place)
    user, colon, password = login.partition(":")
    user = unquote(user)
    if found is None or not _USER.fullmatch(user):
        return None
    return ServerAddress(
        scheme=scheme,
        user=user,
        password=unquote(password) if colon else None,
        host=found["host"],
        port=int(found["port"]) if found["port"] else None,
        database=unquote(found["database"] or ""),
        options=tuple(parse_qsl(found["options"] or "", keep_blank_values=True)),
    )


def looks_like_server(text: str) -> bool:
    """Whether a text without ``://`` is meant as a server's address. Taken for a file, its name would be printed."""
    if "://" in text or _DRIVE.match(text):
        return False
    before, at, _ = text.rpartition("@")
    misspelt = bool(at) and (":" in before or text.lower().startswith("postgres"))
    return misspelt or _NAMED_SECRET.search(text) is not None


def shown_address(text: str) -> str:
    """An address as it may be printed: a file as it is, a server without its secrets, and nothing of what cannot be read."""
    if looks_like_server(text):
        return HIDDEN
    scheme, separator, rest = text.partition("://")
    if not separator or (scheme == "sqlite" and rest[:1] in ("", "/")):
        path, options, _ = text.partition("?") if separator else (text, "", "")
        return f"{path}?{HIDDEN}" if options else path
    server = parse_server(text)
    if server is not None:
        return server.shown_with_gap
    return f"{scheme}://{HIDDEN}" if _SCHEME.fullmatch(scheme) else HIDDEN


def hide_addresses(text: str, given: Iterable[str] = ()) -> str:
    """A text, such as an error message, without the secrets of the addresses in it.

    given   addresses that may be in it: they are found whatever characters they have. Of others, everything from the scheme to
            the last ``@`` of the line is hidden, since a password may hold spaces.
    """
    for address in given:
        text = text.replace(address, shown_address(address)).replace(repr(address)[1:-1], shown_address(address))
        for secret in (parse_server(address) or ServerAddress("", "", None, "", None, "")).secrets:
            text = text.replace(secret, HIDDEN)
    text = "\n".join(_without_passwords(line) for line in text.split("\n"))
    text = _WITH_OPTIONS.sub(lambda each: each["place"] + _without_secret_options(each["options"]), text)
    return _NAMED_SECRET.sub(lambda each: f"{each['name']}{HIDDEN}", text)


def _without_passwords(line: str) -> str:
    """A line without what may be passwords: all between a scheme and the last ``@``."""
    before, at, after = line.rpartition("@")  # with the regular expression alone, each scheme would search for it
    return _BEFORE_HOST.sub(_without_password, before + at) + after


def _without_password(found: re.Match[str]) -> str:
    return f"{found['scheme']}{found['user'] or ''}{f':{HIDDEN}' if found['rest'] else ''}@"


def _without_secret_options(options: str) -> str:
    parts = (part.partition("=") for part in options.split("&"))
    return "&".join(name + equals + (value if is_harmless(name, unquote(value)) else HIDDEN) for name, equals, value in parts)


# -- pickles -----------------------------------------------------------------------------------------------------------

_with_passwords: ContextVar[bool] = ContextVar("shoestring_pickles_with_passwords", default=False)


def pickles_may_hold_passwords() -> bool:
    return _with_passwords.get()


@contextmanager
def pickles_with_passwords() -> Iterator[None]:
    """Inside the block, a pickle of a storage holds its password. For a pickle that goes to a worker process of this machine
    through a socket that no other process can read, and is not kept."""
    before = _with_passwords.set(True)
    try:
        yield
    finally:
        _with_passwords.reset(before)
