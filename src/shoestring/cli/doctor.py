"""What a command needs beyond the core install.

``doctor``: whether this machine has what Shoestring needs, and how to mend what it has not.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import click

from .. import __version__
from .console import Trouble, answer, command, file_of, hidden, opened
from .options import json_option, storage_option

INSTALL = 'pip install "shoestring[sklearn,plots]"'


def installed(module: str) -> bool:
    return find_spec(module) is not None


def require(module: str, package: str, purpose: str) -> None:
    """End the command, with the way to mend it, if a module is missing."""
    if not installed(module):
        raise Trouble(f"{purpose} needs {package}, which is not installed; install it with\n  {INSTALL}", INSTALL)


NEEDED = ("numpy", "scipy", "SQLAlchemy", "click", "rich", "threadpoolctl", "emcee")
EXTRAS = {
    "sklearn": ("scikit-learn", "ShoestringSearchCV, BORE and the demo"), "plots": ("matplotlib", "pictures"),
    "postgres": ("psycopg", "studies on a PostgreSQL server"), "optuna": ("optuna", "TPE"),
    "dask": ("distributed", "trials on Dask"), "ray": ("ray", "trials on Ray"),
}  # fmt: skip
ROOM = 1 << 30  # bytes of free disk below which one should know
BORN = 1_750_000_000  # seconds since 1970: no clock that is right says less


@dataclass(frozen=True)
class Check:
    """What was looked at, whether it is well (ok, warn, bad; "-" for what is not there and need not be), and how to mend it."""

    what: str
    state: str
    found: str
    mend: str = ""


@click.command(short_help="Whether all is well here.")
@storage_option
@json_option
@click.pass_context
def doctor(ctx: click.Context, where: str) -> None:
    """Look at Python, packages, threads, the storage, the disk and the clock. Exit code 1 if something does not work.

    No database is made where there is none.
    """
    checks = [*python_checks(), threads_check(), *storage_checks(where), disk_check(where), clock_check(), *extra_checks()]
    bad = any(check.state == "bad" for check in checks)
    width = max(len(check.what) for check in checks)
    lines = [f"{check.state:<4}  {check.what:<{width}}  {check.found}" for check in checks]
    mends = [f"{'':<4}  {'':<{width}}  -> {check.mend}" if check.mend else None for check in checks]
    text = "\n".join(part for pair in zip(lines, mends, strict=True) for part in pair if part)
    then = command("doctor", "--help") if bad else command("demo")
    answer({"ok": not bad, "checks": [asdict(check) for check in checks]}, text, then)
    ctx.exit(1 if bad else 0)


def python_checks() -> Iterator[Check]:
    yield Check("python", "ok", f"{platform.python_version()} at {sys.executable}")
    yield Check("shoestring", "ok", f"{__version__} in {Path(__file__).parents[1]}")
    for package in NEEDED:
        version = version_of(package)
        if version is None:
            yield Check(package.lower(), "bad", "is not installed", f"pip install {package}")
        else:
            yield Check(package.lower(), "ok", version)


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def threads_check() -> Check:
    """Linear algebra on more threads than there are cores is slower, not faster, at the sizes that matter here."""
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    threads = max((int(pool["num_threads"]) for pool in pools), default=1)
    cores = usable_cores()
    kinds = ", ".join(sorted({str(pool.get("internal_api")) for pool in pools})) or "unknown"
    found = f"{threads} of {kinds} on {cores} cores"
    if threads > cores:
        return Check("blas threads", "warn", found, f"export OMP_NUM_THREADS={cores}")
    return Check("blas threads", "ok", found)


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def storage_checks(where: str) -> Iterator[Check]:
    """Whether the storage can be read and written, without making one."""
    path = file_of(where)
    if path is not None and not path.is_file():
        folder = path.absolute().parent
        if not folder.is_dir():
            yield Check("storage", "bad", f"{hidden(where)}: there is no folder {folder}", f"mkdir -p {folder}")
        elif not os.access(folder, os.W_OK):
            yield Check("storage", "bad", f"{folder} cannot be written to", "give another place by --storage")
        else:
            yield Check("storage", "ok", f"{hidden(where)} is not there yet; the first run makes it")
        return
    try:
        with opened(where) as storage:
            count = len(storage.studies())
    except Exception as error:  # whatever keeps it from being read is what one wants to know
        shown = hidden(str(getattr(error, "message", error)))
        yield Check("storage", "bad", f"{hidden(where)}: {shown}", "see whether the address is right and the server runs")
        return
    if path is not None and not (os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)):
        yield Check("storage", "bad", f"{hidden(where)} is read-only", f"chmod u+w {path} and its folder, or another --storage")
        return
    yield Check("storage", "ok", f"{hidden(where)}, {count} studies" if count != 1 else f"{hidden(where)}, 1 study")


def disk_check(where: str) -> Check:
    path = file_of(where)
    folder = path.absolute().parent if path is not None else Path.cwd()
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check("disk", "warn", f"{folder}: {error.strerror}")
    found = f"{free / (1 << 30):.1f} GiB free in {folder}"
    return Check("disk", "ok", found) if free > ROOM else Check("disk", "warn", found, "make room, or give another --storage")


def clock_check() -> Check:
    """Only for what people read: leases go by the storage's own clock."""
    now = time.time()
    found = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now))
    return Check("clock", "ok", found) if now > BORN else Check("clock", "warn", found, "set the time of this machine")


def extra_checks() -> Iterator[Check]:
    for extra, (package, purpose) in EXTRAS.items():
        version = version_of(package)
        if version is None:
            yield Check(f"[{extra}]", "-", f"{package} is not installed; for {purpose}", f'pip install "shoestring[{extra}]"')
        else:
            yield Check(f"[{extra}]", "ok", f"{package} {version}, for {purpose}")
