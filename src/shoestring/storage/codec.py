"""What is stored as JSON, and back: never pickle, so that nothing that is read can run.

Everything is ASCII: other characters, NUL and half surrogate pairs are escaped, so that every database holds them. Floats are
written with the digits that bring them back exactly, -0.0 too. A seal beside each text tells a damaged one from a good one.
"""

from __future__ import annotations

import gc
import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, field, fields, make_dataclass
from typing import Any

import numpy as np

from ..data.trial import State, Trial
from ..errors import StorageError
from .base import Stored

HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")  # two halves of a pair, which JSON would join to one character
LONGEST_NAME = 500  # characters; PostgreSQL's indexes end at 2,700 bytes
FIELDS = tuple(item.name for item in fields(Trial))
OFTEN_EMPTY = frozenset(
    item.name for item in fields(Trial) if item.default_factory is not MISSING or item.default is False or item.default == ()
)
STATES = {str(state): state for state in State}
DEFAULTS = [(each.name, each.type, field(default=each.default, default_factory=each.default_factory)) for each in fields(Trial)]
Thawed: Any = make_dataclass("Thawed", DEFAULTS, slots=True)

Row = Sequence[Any]  # record, seal, number, opened, abandoned, closed


def to_text(value: Any, what: str) -> str:
    """JSON that comes back as it was, or a StorageError that says ``what`` cannot be stored."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"), default=_plain)
        mangled = "\\ud" in text and HALVES.search(json.dumps(value, ensure_ascii=False, default=_plain))
    except (TypeError, ValueError, RecursionError) as error:
        kinds = "text, finite numbers, true/false, null, lists and dicts of these"
        raise StorageError(f"{what} cannot be stored: {error}; a storage takes JSON: {kinds}") from None
    if mangled:
        raise StorageError(f"{what} cannot be stored: a text in it has a character in two halves, {mangled.group()!a}; join them")
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def from_text(text: Any, where: str, seal: Any = None) -> Any:
    """What ``to_text`` was given; a StorageError that names ``where`` if the text, or its seal where it has one, is another."""
    try:
        if seal is not None and sealed(text) != seal:
            raise damaged(where)
        return json.loads(text)
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise damaged(where) from None


def damaged(where: str) -> StorageError:
    return StorageError(f"{where} is damaged: it is not what was written; restore a backup, or see: shoestring db check")


def sealed(text: str, opened: int = 0, abandoned: int | None = 0, closed: int | None = 0) -> int:
    """A checksum of a text and the clocks that go with it."""
    start = (opened * 31 + (-1 if abandoned is None else abandoned)) * 31 + (-1 if closed is None else closed)
    return zlib.crc32(text.encode(), start & 0xFFFFFFFF)


def plain_name(name: Any, what: str) -> str:
    """A text that can be a database's own text, or a StorageError: these are refused, not escaped, so that SQL can find them."""
    if not isinstance(name, str) or not name:
        raise StorageError(f"{what} must be a text that is not empty, not {name!r}")
    if len(name) > LONGEST_NAME:
        raise StorageError(f"{what} may have {LONGEST_NAME} characters; this has {len(name)}: {name[:40]!r}...")
    if "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise StorageError(f"{what} cannot hold NUL or half a surrogate pair: {name!a}")
    return name


def entry_text(config: Mapping[str, Any], suggestion: Mapping[str, Any]) -> str:
    """A config that waits."""
    return to_text({"config": config, "suggestion": suggestion}, "a config that waits")


# -- trials ------------------------------------------------------------------------------------------------------------


def trial_text(trial: Trial) -> str:
    """``trial.to_dict()`` as text, without what says nothing: ``Trial.from_dict`` fills it in."""
    values = {name: getattr(trial, name) for name in FIELDS}
    record = {name: value for name, value in values.items() if value is not None and (value or name not in OFTEN_EMPTY)}
    if trial.folds is not None:
        record["folds"] = [fold if math.isfinite(fold) else None for fold in trial.folds]
    return to_text(record, f"trial {trial.number}")


def read_trial(row: Row, where: str) -> Stored:
    return next(iter(read_trials([row], where)))


def read_trials(rows: Sequence[Row], where: str) -> list[Stored]:
    """Trials from rows of (record, seal, number, opened, abandoned, closed).

    All records are read as one JSON text, which takes two thirds of the time and memory: their keys are then the same objects.
    """
    records = _records([row[0] for row in rows])
    if records is None:  # one of them is not JSON, or more than one value: find out which
        for record, _, number, *_ in rows:
            if (_records([record]) or [None])[0] is None:
                raise damaged(f"trial {number} in {where}")
        raise damaged(where)
    stored = []
    for (text, seal, number, opened, abandoned, closed), record in zip(rows, records, strict=True):
        try:
            if seal != sealed(text, opened, abandoned, closed) or record["number"] != number:
                raise damaged(f"trial {number} in {where}")
            stored.append(Stored(_trial(record), opened, abandoned, closed))
        except (TypeError, ValueError, KeyError, AttributeError):
            raise damaged(f"trial {number} in {where}") from None
    return stored


def _records(texts: list[Any]) -> list[Any] | None:
    try:
        records = json.loads("[" + ",".join(texts) + "]")
    except (TypeError, ValueError, RecursionError):
        return None
    return records if len(records) == len(texts) else None


def _trial(record: dict[str, Any]) -> Trial:
    """As ``Trial.from_dict``, in a quarter of the time.

    Fields of a frozen object are set the long way round; those of a thawed one are not, and then it becomes a trial.
    """
    if "folds" in record:
        return Trial.from_dict(record)
    get = record.get
    trial: Trial = Thawed(  # by names that stand here: those of a record would be compared letter by letter
        number=record["number"], config=record["config"], state=STATES[record["state"]], value=get("value"), cost=get("cost"),
        gradient=get("gradient"), fidelity=get("fidelity") or {}, seconds=get("seconds"), error=get("error"),
        reports=tuple(get("reports") or ()), suggestion=get("suggestion") or {}, censored=get("censored", False),
        asked_at=get("asked_at"), basis=get("basis") or {},
    )  # fmt: skip
    trial.__class__ = Trial
    return trial


@contextmanager
def many_at_once() -> Iterator[None]:
    """While a hundred thousand records are read, all of which stay, a search for garbage among them takes a fifth of the time.

    Afterwards they are among the objects that have been there for long, as if they had been searched already.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # or what somebody else has frozen would thaw
            gc.freeze()
            gc.unfreeze()
        gc.enable()
