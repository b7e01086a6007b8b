"""What all commands share: output, error messages, access to the storage, and exit codes.

**Output.** A command prints text for people or, with --json, one JSON document on standard output and nothing else there. Every
summary and every error ends with the next command to type. Text that comes from elsewhere (names, errors) is printed without
control characters, and addresses without their passwords.

**Storage.** A storage address is a file, sqlite:///FILE or postgresql://HOST/DATABASE, given by --storage or SHOESTRING_STORAGE.

**Exit codes.** Ctrl-C, SIGTERM and a closed terminal interrupt a run; the exit code says which one it was.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..execution.signals import Terminated
from ..storage.address import ANY_SCHEME, STORAGE_VARIABLE, hide_addresses, looks_like_server, shown_address

if TYPE_CHECKING:
    from .. import Study
    from ..storage.base import StudyRecord

JSON_META_KEY = "shoestring.json"  # in click's meta: whether --json was given
DEFAULT_STORAGE = "shoestring.db"
EXIT_SIGINT, EXIT_SIGTERM = 130, 143  # the shell's convention: 128 + the number of the signal
MIN_WIDTH, MAX_WIDTH = 40, 120  # characters in a line of output
MAX_NAMES_SHOWN = 10  # names of studies in an error message
# Stands for code that a study was made with and that could not be stored as text.
DEFAULT_CODE = {"method": "auto", "stop": None, "model": None, "cost_model": "auto", "subset": "auto"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ADDRESS = re.compile(rf"{ANY_SCHEME}.*", re.DOTALL)
_given_addresses: list[str] = []  # in the words of the present command


# -- errors ----------------------------------------------------------------------------------------------------------


class CommandError(click.ClickException):
    """A command that failed (exit code 1): the reason, the next command to type, and more fields for the JSON document."""

    def __init__(self, message: str, next_command: str, document: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.next_command, self.document = next_command, document or {}
        self.as_json = json_requested()  # read now: the context is gone when the error is shown

    def show(self, file: Any = None) -> None:
        text = hide_passwords(printable(self.message))
        if self.as_json:
            click.echo(json.dumps({**self.document, "error": text, "next": self.next_command}))
        click.echo(f"error: {text}\nnext: {self.next_command}", err=True)


class CommandLineError(click.UsageError):
    """A wrong command line (exit code 2): the usage, Click's message and the next command; with --json also as a document."""

    def __init__(self, error: click.UsageError, as_json: bool, name: str | None = None) -> None:
        super().__init__(hide_passwords(printable(error.format_message())), error.ctx)
        self.as_json = as_json
        help_words = [name, "--help"] if name else ["--help"]
        self.next_command = f"{error.ctx.command_path} --help" if error.ctx else shoestring_command(*help_words)

    def show(self, file: Any = None) -> None:
        if self.as_json:
            click.echo(json.dumps({"error": self.message, "next": self.next_command}))
        usage = f"{self.ctx.get_usage()}\n\n" if self.ctx is not None else ""
        click.echo(f"{usage}Error: {self.message}\nnext: {self.next_command}", err=True)


# -- output ----------------------------------------------------------------------------------------------------------


def json_requested() -> bool:
    """Whether the present command was given --json."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(JSON_META_KEY))


def shoestring_command(*words: str) -> str:
    """A shoestring command to type, started in the same way as the present one (``shoestring`` or ``python -m shoestring``)."""
    context = click.get_current_context(silent=True)
    program = (context.find_root().info_name if context is not None else None) or "shoestring"
    return f"{program} {shlex.join(words)}"


def print_result(document: Any, text: str, next_command: str | None = None) -> None:
    """Print the result of a command: the document with --json, otherwise the text and the next command."""
    if json_requested():
        click.echo(json.dumps(document, allow_nan=False))
        return
    click.echo(printable(text) + (f"\nnext: {next_command}" if next_command else ""))


def print_note(text: str) -> None:
    """Print a message for people on standard error, so that it does not get into a pipe."""
    print(printable(text), file=sys.stderr, flush=True)  # not click.echo, which would write into the live progress line


def printable(text: str) -> str:
    """The text without control characters, which could move the cursor of a terminal or change its colours."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text).encode("utf-8", "backslashreplace").decode()


def hide_passwords(text: str) -> str:
    """The text without the secrets of the addresses in it, above all of those that this command was given."""
    from_environment = os.environ.get(STORAGE_VARIABLE)
    return hide_addresses(text, [*_given_addresses, *([from_environment] if from_environment else [])])


def remember_addresses(words: Sequence[str], *, anew: bool = False) -> None:
    """Note the addresses in the words of a command, so that no message repeats a secret of theirs; ``anew`` forgets others."""
    if anew:
        _given_addresses.clear()
    for word in words:
        value = word.partition("=")[2] if word.startswith("-") else word
        found = _ADDRESS.search(word)
        _given_addresses.extend([value] if "://" in value or looks_like_server(value) else [])
        _given_addresses.extend([found[0]] if found and found[0] != value else [])


def can_ask() -> bool:
    """Whether there is a person at a terminal who can answer a question. Without one, no command ever waits."""
    return not json_requested() and all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def confirmed(question: str) -> bool:
    """The answer to a question, on a terminal; False elsewhere."""
    return can_ask() and click.confirm(hide_passwords(printable(question)), err=True)


def rows_text(rows: Iterable[tuple[str, str]]) -> str:
    """Labels and texts in two columns, wrapped at the width of the terminal."""
    rows = list(rows)
    indent = max((len(label) for label, _ in rows), default=0) + 2
    lines = []
    for label, text in rows:
        for number, part in enumerate(text.splitlines() or [""]):
            first = f"{label if number == 0 else '':<{indent}}"
            wrapped = textwrap.fill(part, terminal_width(), initial_indent=first, subsequent_indent=" " * indent)
            lines.append(wrapped or first.rstrip())
    return "\n".join(lines)


def table_text(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """A table; the columns named in ``right`` are aligned right, and lines are cut at the width of the terminal."""
    widths = [max(len(line[j]) for line in [head, *rows]) for j in range(len(head))]
    lines = []
    for line in [head, *rows]:
        cells = zip(line, widths, head, strict=True)
        text = "  ".join(cell.rjust(width) if name in right else cell.ljust(width) for cell, width, name in cells).rstrip()
        lines.append(text if len(text) <= terminal_width() else text[: terminal_width() - 3] + "...")
    return "\n".join(lines)


def terminal_width() -> int:
    """Characters in a line of output."""
    return max(min(shutil.get_terminal_size((100, 24)).columns, MAX_WIDTH), MIN_WIDTH)


@contextmanager
def log_lines(quiet: bool) -> Iterator[None]:
    """What is logged while trials run: nothing but errors if ``quiet``; failures in a terminal, where a line shows the progress.

    Elsewhere it is one line a trial, on standard error.
    """
    from ..report.progress import in_terminal
    from ..report.trial_log import log, set_verbosity

    before = log.level
    if quiet or in_terminal():
        set_verbosity("error" if quiet else "warning")
    try:
        yield
    finally:
        log.setLevel(before)


# -- storage ---------------------------------------------------------------------------------------------------------


def sqlite_path(address: str) -> Path | None:
    """The file of an SQLite storage; None for a server and for memory."""
    path = address.partition(":///")[2] if address.startswith("sqlite:") else address
    return None if "://" in path or looks_like_server(path) or path in ("", ":memory:", "memory") else Path(path).expanduser()


def storage_arguments(address: str) -> list[str]:
    """The --storage option that a command needs to find the same studies; empty if it finds them without."""
    return [] if address == os.environ.get(STORAGE_VARIABLE, DEFAULT_STORAGE) else ["--storage", shown_address(address)]


@contextmanager
def opened_storage(address: str, *, create: bool = False) -> Iterator[Any]:
    """The storage at an address, closed afterwards. A missing file is created only with ``create``, otherwise an error."""
    from ..storage.url import NoSuchFile, open_storage

    try:
        storage = open_storage(address, create=create)
    except NoSuchFile:
        help_command = shoestring_command("run", "--help")
        raise CommandError(f"there is no file {sqlite_path(address)} here, so there are no studies", help_command) from None
    try:
        yield storage
    finally:
        storage.close_connections()


def find_study(storage: Any, name: str | None, address: str) -> StudyRecord:
    """The study of that name; without a name, the only one in the storage."""
    list_command = shoestring_command("ls", *storage_arguments(address))
    if name is not None:
        found: StudyRecord | None = storage.find(name)
        if found is None:
            raise CommandError(f"there is no study {name!r} in {shown_address(address)}{known_names(storage)}", list_command)
        return found
    studies: list[StudyRecord] = storage.studies()
    if not studies:
        raise CommandError(f"there are no studies in {shown_address(address)}", list_command)
    if len(studies) > 1:
        count = f"there are {len(studies)} studies in {shown_address(address)}; give the name of one"
        raise CommandError(f"{count}{known_names(storage)}", list_command)
    return studies[0]


def known_names(storage: Any) -> str:
    """The end of an error message that lists the names of studies."""
    names = [record.name for record in storage.studies()][:MAX_NAMES_SHOWN]
    return f"; known: {', '.join(map(repr, names))}" if names else ""


def load_study(storage: Any, name: str | None, address: str, *, needs_code: bool = False) -> Study:
    """The study with its trials.

    needs_code   the command computes suggestions, so it needs the method and the models that the study was made with. Without
                 it, a study whose code could not be stored as text is loaded with the defaults: its trials can still be read.
    """
    from .. import MethodError, Study

    found = find_study(storage, name, address).name
    try:
        study = Study.load(storage, found)
    except MethodError:
        if needs_code:
            raise
        study = Study.load(storage, found, **DEFAULT_CODE)
    study.refresh()
    return study


# -- exit codes ------------------------------------------------------------------------------------------------------


def interruption_exit_code(cause: BaseException | str) -> int:
    """The exit code for an exception, or for the reason that an interrupted run gives."""
    by_sigterm = "SIGTERM" in cause if isinstance(cause, str) else isinstance(cause, Terminated)
    return EXIT_SIGTERM if by_sigterm else EXIT_SIGINT
