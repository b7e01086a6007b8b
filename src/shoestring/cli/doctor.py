"""``doctor``: checks of the installation, the threads, the storage, the disk and the clock, each with a fix.

Also the check that an optional package is installed, for commands that need one.
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
from ..storage.address import shown_address
from .console import CommandError, hide_passwords, opened_storage, print_result, shoestring_command, sqlite_path
from .options import json_option, storage_option

INSTALL_EXTRAS = 'pip install "shoestring[sklearn,plots]"'
REQUIRED_PACKAGES = ("numpy", "scipy", "SQLAlchemy", "click", "rich", "threadpoolctl", "emcee")
EXTRAS = {  # extra: (package, purpose)
    "sklearn": ("scikit-learn", "ShoestringSearchCV, BORE and the demo"), "plots": ("matplotlib", "pictures"),
    "postgres": ("psycopg", "studies on a PostgreSQL server"), "optuna": ("optuna", "TPE"),
    "dask": ("distributed", "trials on Dask"), "ray": ("ray", "trials on Ray"), "web": ("starlette", "the page"),
    "agents": ("mcp", "tools for agents"),
}  # fmt: skip
MIN_FREE_DISK_BYTES = 1 << 30  # with less there is a warning
MIN_PLAUSIBLE_TIME = 1_750_000_000  # seconds since 1970; a clock that shows less is wrong


def is_installed(module: str) -> bool:
    return find_spec(module) is not None


def require_package(module: str, package: str, purpose: str) -> None:
    """End the command with the way to install a package if its module is missing."""
    if not is_installed(module):
        raise CommandError(
            f"{purpose} needs {package}, which is not installed; install it with\n  {INSTALL_EXTRAS}", INSTALL_EXTRAS
        )


@dataclass(frozen=True)
class Check:
    """The result of one check.

    what    the part that was checked
    state   ok, warn or bad; "-" for an optional part that is not installed
    found   the finding in words
    fix     a command or advice that fixes it; empty if nothing is wrong
    """

    what: str
    state: str
    found: str
    fix: str = ""


@click.command(short_help="Check the installation and the storage.")
@storage_option
@json_option
@click.pass_context
def doctor(ctx: click.Context, address: str) -> None:
    """Check Python, packages, threads, the storage, the disk and the clock. Exit code 1 if something does not work.

    A storage that does not exist is not created.
    """
    checks = [*python_checks(), threads_check(), *storage_checks(address), disk_check(address), clock_check(), *extra_checks()]
    bad = any(check.state == "bad" for check in checks)
    width = max(len(check.what) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{check.state:<4}  {check.what:<{width}}  {check.found}")
        if check.fix:
            lines.append(f"{'':<4}  {'':<{width}}  -> {check.fix}")
    document = {"ok": not bad, "checks": [asdict(check) for check in checks]}
    print_result(document, "\n".join(lines), shoestring_command("doctor", "--help") if bad else shoestring_command("demo"))
    ctx.exit(1 if bad else 0)


def python_checks() -> Iterator[Check]:
    """Python, Shoestring and the packages that it always needs."""
    yield Check("python", "ok", f"{platform.python_version()} at {sys.executable}")
    yield Check("shoestring", "ok", f"{__version__} in {Path(__file__).parents[1]}")
    for package in REQUIRED_PACKAGES:
        version = package_version(package)
        if version is None:
            yield Check(package.lower(), "bad", "is not installed", f"pip install {package}")
        else:
            yield Check(package.lower(), "ok", version)


def package_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def threads_check() -> Check:
    """Threads of linear algebra: more threads than cores make small matrices slower."""
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    threads = max((int(pool["num_threads"]) for pool in pools), default=1)
    cores = usable_cores()
    libraries = ", ".join(sorted({str(pool.get("internal_api")) for pool in pools})) or "unknown"
    found = f"{threads} of {libraries} on {cores} cores"
    if threads > cores:
        return Check("blas threads", "warn", found, f"export OMP_NUM_THREADS={cores}")
    return Check("blas threads", "ok", found)


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def storage_checks(address: str) -> Iterator[Check]:
    """Whether the storage can be read and written, without creating one."""
    path, shown = sqlite_path(address), shown_address(address)
    if path is not None and not path.is_file():
        folder = path.absolute().parent
        if not folder.is_dir():
            yield Check("storage", "bad", f"{shown}: there is no folder {folder}", f"mkdir -p {folder}")
        elif not os.access(folder, os.W_OK):
            yield Check("storage", "bad", f"{folder} is read-only", "give another address by --storage")
        else:
            yield Check("storage", "ok", f"{shown} does not exist yet; the first run creates it")
        return
    try:
        with opened_storage(address) as storage:
            count = len(storage.studies())
    except Exception as error:  # any reason why it cannot be read is worth reporting
        reason = hide_passwords(str(getattr(error, "message", error)))
        yield Check("storage", "bad", f"{shown}: {reason}", "check that the address is right and the server runs")
        return
    if path is not None and not (os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)):
        yield Check("storage", "bad", f"{shown} is read-only", f"chmod u+w {path} and its folder, or give another --storage")
        return
    yield Check("storage", "ok", f"{shown}, {count} studies" if count != 1 else f"{shown}, 1 study")


def disk_check(address: str) -> Check:
    """Free space in the folder of the storage."""
    path = sqlite_path(address)
    folder = path.absolute().parent if path is not None else Path.cwd()
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check("disk", "warn", f"{folder}: {error.strerror}")
    found = f"{free / (1 << 30):.1f} GiB free in {folder}"
    if free > MIN_FREE_DISK_BYTES:
        return Check("disk", "ok", found)
    return Check("disk", "warn", found, "free some space, or give another --storage")


def clock_check() -> Check:
    """The clock of this machine. It is only shown to people: leases use the clock of the storage."""
    now = time.time()
    found = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now))
    if now > MIN_PLAUSIBLE_TIME:
        return Check("clock", "ok", found)
    return Check("clock", "warn", found, "set the time of this machine")


def extra_checks() -> Iterator[Check]:
    """The optional packages."""
    for extra, (package, purpose) in EXTRAS.items():
        version = package_version(package)
        if version is None:
            yield Check(f"[{extra}]", "-", f"{package} is not installed; for {purpose}", f'pip install "shoestring[{extra}]"')
        else:
            yield Check(f"[{extra}]", "ok", f"{package} {version}, for {purpose}")
