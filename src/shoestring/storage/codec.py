"""JSON encoding and decoding of what is stored. Never pickle, so that reading a file can run no code.

The text is ASCII: other characters, NUL and lone surrogates are escaped, so that every database can hold it. Floats are written
with the digits that bring them back exactly, -0.0 too. A database keeps a checksum beside each text, so that damage is noticed.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, field, fields, make_dataclass
from typing import Any

import numpy as np

from ..data.trial import State, Trial
from ..errors import StorageError
from .base import StoredTrial

SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")  # two halves, which JSON would join to one character
MAX_NAME_LENGTH = 500  # characters; an index of PostgreSQL holds 2,700 bytes
TRIAL_FIELDS = tuple(item.name for item in fields(Trial))
OMITTED_IF_EMPTY = frozenset(
    item.name for item in fields(Trial) if item.default_factory is not MISSING or item.default is False or item.default == ()
)
STATES = {str(state): state for state in State}

TrialRow = Sequence[Any]  # record, checksum, number, opened, abandoned, closed


# -- JSON --------------------------------------------------------------------------------------------------------------


def encode_json(value: Any, what: str) -> str:
    """JSON text that decodes to the same value. A StorageError that names ``what`` if there is none."""
    try:
        text = _encoder.encode(value)
        joined = "\\ud" in text and SURROGATE_PAIR.search(json.dumps(value, ensure_ascii=False, default=_to_json_type))
    except (TypeError, ValueError, RecursionError) as error:
        kinds = "text, finite numbers, true/false, null, lists and dicts of these"
        raise StorageError(f"{what} cannot be stored: {error}; a storage takes JSON: {kinds}") from None
    if joined:
        raise StorageError(f"{what} cannot be stored: a text in it has a character in two halves, {joined.group()!a}; join them")
    return text


def _to_json_type(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}")


_encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=_to_json_type)


def decode_json(text: Any, where: str, expected: Any = None) -> Any:
    """The value that ``encode_json`` was given. A StorageError that names ``where`` if the text does not have the checksum."""
    try:
        if expected is not None and checksum(text) != expected:
            raise damaged(where)
        return json.loads(text)
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise damaged(where) from None


def checksum(text: str, opened: int = 0, abandoned: int | None = 0, closed: int | None = 0) -> int:
    """CRC-32 of a text and of the clocks that belong to it."""
    start = (opened * 31 + (-1 if abandoned is None else abandoned)) * 31 + (-1 if closed is None else closed)
    return zlib.crc32(text.encode(), start & 0xFFFFFFFF)


def damaged(where: str) -> StorageError:
    return StorageError(f"{where} is damaged: it is not what was written; restore a backup, or see: shoestring db check")


def require_name(name: Any, what: str) -> str:
    """The name, or a StorageError if a database cannot hold it as it is. Names are not escaped, so that SQL can find them."""
    if not isinstance(name, str) or not name:
        raise StorageError(f"{what} must be a text that is not empty, not {name!r}")
    if len(name) > MAX_NAME_LENGTH:
        raise StorageError(f"{what} may have {MAX_NAME_LENGTH} characters; this has {len(name)}: {name[:40]!r}...")
    if "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise StorageError(f"{what} cannot hold NUL or half a surrogate pair: {name!a}")
    return name


def encode_queued(config: Mapping[str, Any], suggestion: Mapping[str, Any]) -> str:
    """An entry of the queue."""
    return encode_json({"config": config, "suggestion": suggestion}, "a queued config")


def read_queued(text: Any, expected: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The config and the suggestion of a queue entry; None if it cannot be read: a wrong checksum, or not what was encoded."""
    try:
        entry = decode_json(text, "a queued config", expected if isinstance(expected, int) else -1)
        config, suggestion = entry["config"], entry["suggestion"]
    except (StorageError, TypeError, LookupError):
        return None
    return (config, suggestion) if isinstance(config, dict) and isinstance(suggestion, dict) else None


# -- trials ------------------------------------------------------------------------------------------------------------


def encode_trial(trial: Trial) -> str:
    """``trial.to_dict()`` as JSON, without fields that are None or empty: the decoder fills them in."""
    record = {}
    for name in TRIAL_FIELDS:
        value = getattr(trial, name)
        if value is not None and (value or name not in OMITTED_IF_EMPTY):
            record[name] = value
    if trial.folds is not None:
        record["folds"] = [fold if math.isfinite(fold) else None for fold in trial.folds]
    return encode_json(record, f"trial {trial.number}")


def decode_trial(text: str) -> Trial:
    """A trial from a text that ``encode_trial`` has just made."""
    return _to_trial(json.loads(text))


def decode_trials(texts: Sequence[str]) -> list[Trial]:
    """Trials from texts that ``encode_trial`` has made.

    All texts are decoded as one, which takes two thirds of the time and memory: equal keys become one object.
    """
    return [_to_trial(record) for record in json.loads("[" + ",".join(texts) + "]")]


def read_trial(row: TrialRow, where: str) -> StoredTrial:
    """A trial from a row of a database, as in ``read_trials``."""
    return read_trials([row], where)[0]


def read_trials(rows: Sequence[TrialRow], where: str) -> list[StoredTrial]:
    """Trials from rows of (record, checksum, number, opened, abandoned, closed). A StorageError if one is damaged."""
    records = _decode_records([row[0] for row in rows])
    if records is None:  # one of them is not JSON, or holds more than one value: find out which
        for record, _, number, *_ in rows:
            if (_decode_records([record]) or [None])[0] is None:
                raise damaged(f"trial {number} in {where}")
        raise damaged(where)
    stored = []
    for (text, expected, number, opened, abandoned, closed), record in zip(rows, records, strict=True):
        try:
            if expected != checksum(text, opened, abandoned, closed) or record["number"] != number:
                raise damaged(f"trial {number} in {where}")
            stored.append(StoredTrial(_to_trial(record), opened, abandoned, closed))
        except (TypeError, ValueError, KeyError, AttributeError):
            raise damaged(f"trial {number} in {where}") from None
    return stored


def _decode_records(texts: list[Any]) -> list[Any] | None:
    try:
        records = json.loads("[" + ",".join(texts) + "]")
    except (TypeError, ValueError, RecursionError):
        return None
    return records if len(records) == len(texts) else None


_DEFAULTS = [(each.name, each.type, field(default=each.default, default_factory=each.default_factory)) for each in fields(Trial)]
_MutableTrial: Any = make_dataclass("_MutableTrial", _DEFAULTS, slots=True)


def _to_trial(record: dict[str, Any]) -> Trial:
    """``Trial.from_dict`` in a quarter of the time.

    To set the fields of a frozen dataclass is slow. So a mutable one with the same slots is made, and its class is changed.
    """
    if "folds" in record:
        return Trial.from_dict(record)
    get = record.get
    trial: Trial = _MutableTrial(  # with literal keywords: those of a record would be compared letter by letter
        number=record["number"], config=record["config"], state=STATES[record["state"]], value=get("value"), cost=get("cost"),
        gradient=get("gradient"), fidelity=get("fidelity") or {}, seconds=get("seconds"), error=get("error"),
        reports=tuple(get("reports") or ()), suggestion=get("suggestion") or {}, censored=get("censored", False),
        asked_at=get("asked_at"), basis=get("basis") or {}, metrics=get("metrics") or {}, attrs=get("attrs") or {},
        traceback=get("traceback"), added=get("added", False),
    )  # fmt: skip
    trial.__class__ = Trial
    return trial
