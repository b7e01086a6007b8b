"""How commands answer: for people or, with --json, one document on standard output and nothing else there.

Every summary and every error ends with the next command to type.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
WANTED = "shoestring.json"  # in click's meta: --json was given


class Trouble(click.ClickException):
    """Why it could not be done (exit code 1), the next command to type, and for programs what else is known."""

    def __init__(self, message: str, then: str | None = None, document: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.then, self.document = then, document or {}
        self.as_json = wants_json()  # the context is gone when it is shown

    def show(self, file: Any = None) -> None:
        from .where import hidden

        text = hidden(printable(self.message))
        if self.as_json:
            click.echo(json.dumps({**self.document, "error": text, "next": self.then}))
        click.echo(f"error: {text}" + (f"\nnext: {self.then}" if self.then else ""), err=True)


class WrongUsage(click.UsageError):
    """A command line that cannot be understood (exit code 2): what Click says of it, and for programs the same as JSON."""

    def __init__(self, error: click.UsageError, as_json: bool, name: str | None = None) -> None:
        from .where import hidden

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
