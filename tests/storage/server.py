"""A throw-away PostgreSQL server on this machine, for tests: its files go with it."""

from __future__ import annotations

import contextlib
import getpass
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PASSWORD = "pa55:w@rd/%"  # characters that have to be quoted in an address
QUOTED = "pa55%3Aw%40rd%2F%25"
QUICK = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "autovacuum=off")


def program(name: str) -> str | None:
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return shutil.which(name) or (found[-1] if found else None)


def missing() -> str | None:
    """Why there can be no server here; None if there can."""
    if any(program(name) is None for name in ("initdb", "postgres")):
        return "the PostgreSQL server is not installed (initdb, postgres)"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed (pip install 'shoestring[postgres]')"
    return None


def ordinary_user() -> str:
    """A user that PostgreSQL accepts, which is not root."""
    if os.getuid() != 0:
        return getpass.getuser()
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


class Server:
    """Runs as a child of this process until ``stop``. ``durable`` leaves it as it comes, or else it saves the disk's time."""

    def __init__(self, durable: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="shoestring-pg-", dir="/tmp"))  # a path short enough for a socket
        self.user = ordinary_user()
        if os.getuid() == 0:
            shutil.chown(self.folder, self.user)
        self.settings = [f"unix_socket_directories={self.folder}", "max_connections=150", "shared_buffers=16MB"]
        self.settings += [] if durable else QUICK
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._run("initdb", "-D", "data", "-U", "shoe", "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8", "--no-sync")
        with contextlib.closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.schemas = 0
        self.start()

    def _run(self, name: str, *arguments: str) -> None:
        subprocess.run(
            [program(name) or name, *arguments], cwd=self.folder, check=True, capture_output=True, **self._identity()
        )

    def _identity(self) -> dict[str, object]:
        return {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []} if os.getuid() == 0 else {}

    def start(self) -> None:
        settings = [part for setting in self.settings for part in ("-c", setting)]
        command = [program("postgres") or "postgres", "-D", "data", "-h", "127.0.0.1", "-p", str(self.port), *settings]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, **self._identity())
        for _ in range(300):
            try:
                self.execute("SELECT 1")
                return
            except Exception:
                if self.process.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.1)
        raise RuntimeError("the server did not start: " + (self.folder / "log").read_text())

    def halt(self, how: int = signal.SIGINT) -> None:
        """SIGINT lets connections go at once; SIGQUIT is a crash."""
        self.process.send_signal(how)
        self.process.wait(60)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.halt(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        import psycopg

        with psycopg.connect(
            host="127.0.0.1", port=self.port, user="shoe", password=PASSWORD, dbname="postgres", autocommit=True
        ) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def schema(self) -> str:
        """The address of a place of its own."""
        self.schemas += 1
        self.execute(f"CREATE SCHEMA place_{self.schemas}")
        return f"{self.address}?options=-csearch_path%3Dplace_{self.schemas}"

    @property
    def address(self) -> str:
        return f"postgresql://shoe:{QUOTED}@127.0.0.1:{self.port}/postgres"


def served(durable: bool = False) -> Iterator[Server]:
    """For fixtures: a server while it is needed, or a skip that says what is missing."""
    import pytest  # here, since a benchmark starts servers too

    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    server = Server(durable)
    yield server
    server.stop()
