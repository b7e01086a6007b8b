"""Where studies are kept, as one says it on a command line, and how to say it back without its password."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .speech import Trouble, command

if TYPE_CHECKING:
    from .. import Study
    from ..storage.base import StudyRecord

DEFAULT = "shoestring.db"
VARIABLE = "SHOESTRING_STORAGE"
ANY_CODE = {"method": "auto", "stop": None, "model": None, "cost_model": "auto", "subset": "auto"}
_PASSWORD = re.compile(r"(?P<before>\w://[^/@\s:]*:)\S*(?=@)|(?P<named>\bpassword=)[^&\s]*", re.IGNORECASE)


def file_of(where: str) -> Path | None:
    """The file of an SQLite storage; None for a server, and for memory."""
    from ..storage.opening import misspelt

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
