"""The web server: an address to listen on, the links to open, and a loop that runs in front or beside a study.

The server of a run or of the demo is a thread of the same process. It ends with it.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import uvicorn

from ..errors import StorageError
from .app import make_app
from .site import Site

LOOPBACK, DEFAULT_PORT = "127.0.0.1", 8321
GRACE_SECONDS = 1  # for open connections when the server ends: live updates never end by themselves
START_SECONDS = 10.0

log = logging.getLogger("shoestring.page")


@dataclass(frozen=True)
class Links:
    """The addresses that open the page. The keys are in their fragments, which no browser sends."""

    page: str
    read_only: str


class Server:
    """A page on a socket of its own. ``links`` has a new one-time key."""

    def __init__(
        self,
        site: Site,
        *,
        host: str = LOOPBACK,
        port: int = DEFAULT_PORT,
        strict_port: bool = False,
        allowed: Sequence[str] = (),
    ) -> None:
        self.site = site
        self.socket = bound(host, port, strict_port)
        self.host, self.port = host, self.socket.getsockname()[1]
        names = [host, *allowed, *([] if is_loopback(host) else [socket.gethostname()])]
        app = make_app(site, hosts=names, any_ip=host in ("0.0.0.0", "::", ""))
        settings = uvicorn.Config(
            app, log_config=None, log_level="error", access_log=False, server_header=False, lifespan="off",
            timeout_graceful_shutdown=GRACE_SECONDS, ws="none", loop="asyncio", http="h11",
        )  # fmt: skip
        self._server = uvicorn.Server(settings)
        shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname(), "": socket.gethostname()}.get(host, host)
        self.address = f"http://{f'[{shown}]' if ':' in shown else shown}:{self.port}"

    def new_links(self) -> Links:
        keys = self.site.keys
        return Links(f"{self.address}/#key={keys.new_link_key()}", f"{self.address}/#key={keys.read_only_key}")

    def run(self) -> None:
        """Answer requests until Ctrl-C, which is raised again once all is closed."""
        threading.Thread(target=self.site.warm_up, name="shoestring page reads studies", daemon=True).start()
        with closing(self.site), closing(self.socket):
            self._server.run(sockets=[self.socket])

    @contextmanager
    def in_background(self) -> Iterator[Server]:
        """Answer requests in a thread while what is inside runs."""
        thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self.socket]}, name="shoestring page", daemon=True)
        thread.start()
        until = time.monotonic() + START_SECONDS
        while not self._server.started and thread.is_alive() and time.monotonic() < until:
            time.sleep(0.01)
        try:
            yield self
        finally:
            self.site.watch.closing = True
            self._server.should_exit = True
            thread.join(timeout=GRACE_SECONDS + 2.0)
            self.site.close()
            self.socket.close()


def bound(host: str, port: int, strict: bool) -> socket.socket:
    """A socket that listens; if the port is in use and need not be this one, on a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for each in (port,) if strict or port == 0 else (port, 0):
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, each))
            found.listen(128)
            return found
        except OSError as error:
            found.close()
            reason = error.strerror or str(error)
    raise StorageError(f"the page cannot listen on {host}:{port}: {reason}; give another --host or --port")


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
