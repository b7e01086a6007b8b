"""How commands answer: for people or, with --json, one document on standard output and nothing else there.

Every summary and every error ends with the next command to type.

Where studies are kept, as one says it on a command line, and how to say it back without its password.

Ctrl-C, SIGTERM and the end of the terminal while programs run: an interruption, and which one it was.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..execution.signals import Terminated, in_main_thread, interruptible

if TYPE_CHECKING:
    from .. import Study
    from ..storage.base import StudyRecord

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
WANTED = "shoestring.json"  # in click's meta: --json was given


class Trouble(click.ClickException):
    """Why it could not be done (exit code 1), the next command to type, and for programs what else is known."""

    def __init__(self, message: str, then: str | None = None, document: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.then, self.document = then, document or {}
        self.as_json = wants_json()  # the context is gone when it is shown

    def show(self, file: Any = None) -> None:
        from .console import hidden

        text = hidden(printable(self.message))
        if self.as_json:
            click.echo(json.dumps({**self.document, "error": text, "next": self.then}))
        click.echo(f"error: {text}" + (f"\nnext: {self.then}" if self.then else ""), err=True)


class WrongUsage(click.UsageError):
    """A command line that cannot be understood (exit code 2): what Click says of it, and for programs the same as JSON."""

    def __init__(self, error: click.UsageError, as_json: bool, name: str | None = None) -> None:
        from .console import hidden

        super().__init__(hidden(printable(error.format_message())), error.ctx)
        self.as_json = as_json
        self.then = f"{error.ctx.command_path} --help" if error.ctx else command(*([name] if name else []), "--help")

    def show(self, file: Any = None) -> None:
        if self.as_json:
            click.echo(json.dumps({"error": self.message, "next": self.then}))
        super().show(file)


def wants_json() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(WANTED))


def command(*words: str) -> str:
    """A command of ours as one would type it: the way in which this one was called, then the words."""
    context = click.get_current_context(silent=True)
    called = (context.find_root().info_name if context is not None else None) or "shoestring"
    return f"{called} {shlex.join(words)}"


def answer(document: Any, text: str, then: str | None = None) -> None:
    """The answer of a command."""
    if wants_json():
        click.echo(json.dumps(document, allow_nan=False))
        return
    click.echo(printable(text) + (f"\nnext: {then}" if then else ""))


def note(text: str) -> None:
    """For people, beside the answer; on standard error, so that it is in no pipe."""
    print(printable(text), file=sys.stderr, flush=True)  # not by Click, which would write into the live line


def printable(text: str) -> str:
    """Without anything that would move a terminal's cursor or colour it: names and errors come from elsewhere."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text).encode("utf-8", "backslashreplace").decode()


def rows_text(rows: Iterable[tuple[str, str]]) -> str:
    """Labels and texts in two columns, as wide as the terminal allows."""
    rows = list(rows)
    indent = max((len(label) for label, _ in rows), default=0) + 2
    lines = []
    for label, text in rows:
        for number, part in enumerate(text.splitlines() or [""]):
            first = f"{label if number == 0 else '':<{indent}}"
            lines.append(textwrap.fill(part, columns(), initial_indent=first, subsequent_indent=" " * indent) or first.rstrip())
    return "\n".join(lines)


def table_text(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """A table; the columns named in ``right`` are flush right, and the last one is cut where the line ends."""
    widths = [max(len(line[j]) for line in [head, *rows]) for j in range(len(head))]
    lines = []
    for line in [head, *rows]:
        cells = zip(line, widths, head, strict=True)
        text = "  ".join(cell.rjust(width) if name in right else cell.ljust(width) for cell, width, name in cells).rstrip()
        lines.append(text if len(text) <= columns() else text[: columns() - 3] + "...")
    return "\n".join(lines)


def columns() -> int:
    return max(min(shutil.get_terminal_size((100, 24)).columns, 120), 40)


DEFAULT = "shoestring.db"
VARIABLE = "SHOESTRING_STORAGE"
ANY_CODE = {"method": "auto", "stop": None, "model": None, "cost_model": "auto", "subset": "auto"}
_PASSWORD = re.compile(r"(?P<before>\w://[^/@\s:]*:)\S*(?=@)|(?P<named>\bpassword=)[^&\s]*", re.IGNORECASE)


def file_of(where: str) -> Path | None:
    """The file of an SQLite storage; None for a server, and for memory."""
    from ..storage.url import misspelt

    path = where.partition(":///")[2] if where.startswith("sqlite:") else where
    return None if "://" in path or misspelt(path) or path in ("", ":memory:", "memory") else Path(path).expanduser()


def hidden(text: str) -> str:
    """A text without the passwords of the addresses in it."""
    return _PASSWORD.sub(lambda found: f"{found['before'] or found['named']}***", text)


def arguments(where: str) -> list[str]:
    """What to add to a command so that it finds the same studies: nothing where it would anyway."""
    return [] if where == os.environ.get(VARIABLE, DEFAULT) else ["--storage", hidden(where)]


@contextmanager
def opened(where: str, *, make: bool = False) -> Iterator[Any]:
    """The storage, closed afterwards. One that is not there is made only where somebody wants to put something into it."""
    from ..storage import open_storage

    path = file_of(where)
    if path is not None and not make and not path.is_file():
        raise Trouble(f"there is no {path} here, so there are no studies in it", command("run", "--help"))
    storage = open_storage(where)
    try:
        yield storage
    finally:
        storage.close_connections()


def find(storage: Any, name: str | None, where: str) -> StudyRecord:
    """The study of that name; the only one where no name is given."""
    if name is not None:
        found: StudyRecord | None = storage.find(name)
        if found is None:
            raise Trouble(f"there is no study {name!r} in {hidden(where)}{also(storage)}", command("ls", *arguments(where)))
        return found
    studies: list[StudyRecord] = storage.studies()
    if len(studies) != 1:
        many = f"which of the {len(studies)} studies in {hidden(where)}? Give its name{also(storage)}"
        raise Trouble(many if studies else f"there are no studies in {hidden(where)}", command("ls", *arguments(where)))
    return studies[0]


def also(storage: Any) -> str:
    names = [record.name for record in storage.studies()][:10]
    return f"; there {'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names))}" if names else ""


def load(storage: Any, name: str | None, where: str, *, suggests: bool = False) -> Study:
    """The study itself, with its trials.

    One that was made with code of which no text could be kept can still be looked at; only suggestions need that code.
    """
    from .. import MethodError, Study

    title = find(storage, name, where).name
    try:
        study = Study.load(storage, title)
    except MethodError:
        if suggests:
            raise
        study = Study.load(storage, title, **ANY_CODE)
    study.refresh()
    return study


CTRL_C, SIGTERM = 130, 143  # as a shell has them: 128 and the signal's number


@contextmanager
def interruptions() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt inside, SIGTERM and SIGHUP its subclass Terminated.

    A terminal that closes sends SIGHUP, which would end us without a word and leave the programs to themselves.
    """
    usual = in_main_thread() and hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    if usual:  # not so under nohup, for example
        signal.signal(signal.SIGHUP, lambda number, frame: signal.raise_signal(signal.SIGTERM))
    try:
        with interruptible():
            yield
    finally:
        if usual:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)


def exit_code(stopped: BaseException | str) -> int:
    """Of an exception, or of the reason that a run gives for having been interrupted."""
    by_signal = "SIGTERM" in stopped if isinstance(stopped, str) else isinstance(stopped, Terminated)
    return SIGTERM if by_signal else CTRL_C
