"""``serve``: the studies of a storage as a live page in a browser, and ask and tell over HTTP."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from ..program.result_reader import tail
from ..state.persistence import read_id
from .approval import find_logs
from .console import (
    CommandError,
    can_ask,
    json_requested,
    opened_storage,
    print_note,
    print_result,
    shoestring_command,
    storage_arguments,
)
from .doctor import is_installed
from .options import json_option, storage_option
from .show import MAX_LOG_BYTES, MAX_LOG_LINES

if TYPE_CHECKING:
    from ..storage.base import Storage, StudyRecord
    from ..web.server import Server

TOKEN_VARIABLE = "SHOESTRING_TOKEN"
INSTALL_WEB = "pip install 'shoestring[web]'"
PACKAGES = ("starlette", "jinja2", "uvicorn")


@click.command(short_help="Show the studies as a live page.")
@click.argument("where", required=False, metavar="[STORAGE]")
@storage_option
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on; another one needs --token."
)
@click.option("--port", type=click.IntRange(0, 65535), default=None, metavar="PORT", help="Port.  [default: 8321, or a free one]")
@click.option("--token", envvar=TOKEN_VARIABLE, metavar="TOKEN", help=f"For programs and for signing in; also {TOKEN_VARIABLE}.")
@click.option("--allow-host", "allowed", multiple=True, metavar="NAME", help="A further name of this server. May be repeated.")
@click.option("--open/--no-open", "opens", default=False, help="Open the page in a browser.")
@json_option
def serve(
    where: str | None, address: str, host: str, port: int | None, token: str | None, allowed: tuple[str, ...], opens: bool
) -> None:
    """Show the studies of a storage as a live page in a browser. Ctrl-C ends it.

    It prints a link that works once, and a read-only link to share. One of them, or the token, is needed. Programs
    use ask and tell over HTTP with the token: see /openapi.json.

    \b
    Examples:
      shoestring serve
      shoestring serve tune.db --open
      SHOESTRING_TOKEN=... shoestring serve postgresql://host/db --host 0.0.0.0
    """
    address = where or address
    require_web("shoestring serve")
    with opened_storage(address) as storage:
        server = make_server(storage, address, host=host, port=port, token=token, allowed=allowed)
        links = server.new_links()
        document = {"page": links.page, "read_only": links.read_only, "storage": storage.url}
        text = f"page       {links.page}\nread-only  {links.read_only}\nthe first link works once; Ctrl-C ends the server"
        print_result(document, text, shoestring_command("ls", *storage_arguments(address)))
        sys.stdout.flush()
        if opens:
            open_browser(server)
        server.run()


def require_web(what: str) -> None:
    """An error that says what to install."""
    if missing := [package for package in PACKAGES if not is_installed(package)]:
        raise CommandError(f"{what} needs {', '.join(missing)}, which is not installed", INSTALL_WEB)


def make_server(
    storage: Storage,
    address: str,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
    allowed: Sequence[str] = (),
) -> Server:
    """The server of a storage. An address that others can reach needs a token that you choose."""
    from ..web.keys import Keys
    from ..web.server import DEFAULT_PORT, Server, is_loopback
    from ..web.site import Site

    if not is_loopback(host) and not token:
        why = f"--host {host} can be reached from other machines, so it needs a token that you choose"
        raise CommandError(
            f"{why}; give --token, or better {TOKEN_VARIABLE} in the environment", shoestring_command("serve", "--help")
        )
    try:
        keys = Keys(token or None)
    except ValueError as error:
        raise CommandError(str(error), shoestring_command("serve", "--help")) from None

    def command(*words: str) -> str:
        return shoestring_command(*words, *storage_arguments(address))

    site = Site(storage, keys, address, __version__, read_logs, command)
    return Server(site, host=host, port=DEFAULT_PORT if port is None else port, strict_port=port is not None, allowed=allowed)


def read_logs(record: StudyRecord, number: int) -> list[tuple[str, str]]:
    """The ends of the log files of a trial on this machine. The database does not decide which files are read."""
    if not record.settings.get("run"):
        return []
    files = find_logs(read_id(record.settings), record.name).files(number)
    found = []
    for path in (files.out, files.err):
        lines = tail(path, MAX_LOG_BYTES).splitlines()
        if lines:
            found.append((path.name, "\n".join(lines[-MAX_LOG_LINES:])))
    return found


def open_browser(server: Server) -> None:
    """Open the page in a browser, with a link of its own."""
    if not webbrowser.open(server.new_links().page):
        print_note("no browser could be opened; open the printed link")


@contextmanager
def page_beside(storage: Any, address: str, *, opens: bool = False) -> Iterator[Server]:
    """The page in a thread of this process, while a study runs."""
    require_web("the page")
    server = make_server(storage, address, token=os.environ.get(TOKEN_VARIABLE) or None)
    with server.in_background():
        print_note(f"page: {server.new_links().page}")
        if opens:
            open_browser(server)
        yield server


def wait_at_the_page() -> None:
    """Keep the page open after the run, for a person at a terminal, until Enter or Ctrl-C."""
    if can_ask() and not json_requested():
        click.prompt("the page stays open; Enter ends it", default="", show_default=False, prompt_suffix="", err=True)
