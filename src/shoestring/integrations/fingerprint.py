"""What a stored search was made with: a search is only continued with the same estimator, data, folds, scoring and space.

Scores of other data or of another estimator cannot be compared with those in the storage. So a search is stored with a
fingerprint: for each part a short text to show, and a digest to compare. Both are the same in every process.

Arrays of numbers are compared as a whole. Of other data (tables, lists, texts) the shape and SAMPLED_ROWS rows are compared.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._format import plural
from ..errors import Conflict, StudyError
from ..space.extend import differences
from ..space.parameters import Choice
from ..space.space import Space
from ..storage import StudyRecord
from ..study import Study
from .distributions import Translation

Part = dict[str, str]  # shown: a short text; digest: of all
Fingerprint = dict[str, Part]

SETTING = "search"  # the setting of a stored study that holds the fingerprint
SAMPLED_ROWS = 1000
ROWS_PER_BLOCK = 10_000  # of an array that is read at a time
MAX_SHOWN_CHARACTERS = 200
WITHOUT_EFFECT = ("n_jobs", "verbose")  # parameters of estimators that do not change scores
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_QUANTILES = np.linspace(0.0, 1.0, 9)  # at which distributions are compared, as shares of the range that is searched


def search_fingerprint(
    *, estimator: Any, X: Any, y: Any, fit_params: Mapping[str, Any], cv: Any, folds: Sequence[tuple[Any, Any]], scoring: Any,
    refit: Any, translation: Translation,
) -> Fingerprint:  # fmt: skip
    """The fingerprint of a search, ready for JSON."""
    optimized = f", optimizing {refit}" if isinstance(refit, str) else ""
    return {
        "estimator": text_part(estimator),
        "X": data_part(X),
        "y": data_part(y),
        "fit parameters": {"shown": ", ".join(fit_params) or "none", "digest": digest(fit_param_texts(fit_params))},
        "folds": {"shown": f"{plural(len(folds), 'fold')} by cv={one_line(cv)}", "digest": digest(map(row_bytes, folds))},
        "scoring": {"shown": one_line(scoring) + optimized, "digest": digest([stable_text(scoring), optimized])},
        "values of the space": {"shown": ", ".join(decoded_names(translation)), "digest": digest(decoded_texts(translation))},
    }


# -- comparison with what is stored ------------------------------------------------------------------------------------


def require_same_search(found: StudyRecord, url: str, space: Space, now: Fingerprint) -> None:
    """A StudyError that says what is different, unless the stored study is this search."""
    before = found.settings.get(SETTING)
    if before is None and not found.trials:
        return
    how = "Give another study_name= to begin a new search"
    if before is None:
        raise StudyError(f"study {found.name!r} in {url} was not made by ShoestringSearchCV. {how}; the study is untouched")
    pairs = [(name, before.get(name, part), part) for name, part in now.items()]
    problems = [difference(name, then, part) for name, then, part in pairs if then["digest"] != part["digest"]]
    stored = Space.from_json(found.settings["space"])
    if dict(stored) != dict(space):
        problems += differences(stored, space)
    if problems:
        raise StudyError(
            f"study {found.name!r} in {url} is another search: {'; '.join(problems)}. "
            f"Its scores cannot be compared with new ones. {how}, or give all as it was to continue the stored one"
        )


def difference(name: str, before: Part, now: Part) -> str:
    """``the estimator was SVC(), now it is SVC(kernel='linear')``"""
    if before["shown"] == now["shown"]:
        return f"{name}: {now['shown']}, but not the same as before"
    return f"{name}: was {before['shown']}, now it is {now['shown']}"


def save_fingerprint(study: Study, now: Fingerprint) -> None:
    """Store the fingerprint with the study, unless it is there; an error if another process was faster with another one."""
    try:
        study.storage.revise(study.state.study, {SETTING: now}, if_still={SETTING: None})
    except Conflict:
        found = study.storage.find(study.name)
        if found is not None:
            require_same_search(found, study.storage.url, study.space, now)


# -- objects as texts --------------------------------------------------------------------------------------------------


def text_part(given: Any) -> Part:
    return {"shown": one_line(given), "digest": digest([stable_text(given)])}


def one_line(given: Any) -> str:
    """A short text for people."""
    text = " ".join(_ADDRESS.sub("", repr(given)).split())
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 3] + "..."


def stable_text(given: Any) -> str:
    """All that matters about an object, in a text that is the same in every process."""
    if hasattr(given, "get_params") and not isinstance(given, type):
        return f"{full_name(type(given))}({stable_text(changed_params(given))})"
    if isinstance(given, Mapping):
        return "{" + ", ".join(f"{stable_text(key)}: {stable_text(value)}" for key, value in given.items()) + "}"
    if isinstance(given, list | tuple):
        return "[" + ", ".join(map(stable_text, given)) + "]"
    if isinstance(given, set | frozenset):
        return "{" + ", ".join(sorted(map(stable_text, given))) + "}"
    if isinstance(given, np.ndarray) and given.ndim:
        return data_part(given)["digest"]
    if hasattr(given, "__qualname__"):
        return full_name(given)
    return _ADDRESS.sub("", repr(given))


def full_name(given: Any) -> str:
    """The name of a class or function with its library, and without its module: modules move from version to version."""
    return f"{str(given.__module__).partition('.')[0]}.{given.__qualname__}"


def changed_params(estimator: Any) -> dict[str, Any]:
    """The parameters that are not at their default: another version may have more of them."""
    default = {name: parameter.default for name, parameter in inspect.signature(type(estimator)).parameters.items()}
    params = sorted(estimator.get_params(deep=False).items())
    return {name: value for name, value in params if name not in WITHOUT_EFFECT and not is_same(value, default.get(name))}


def is_same(value: Any, default: Any) -> bool:
    """Whether a value is the default."""
    return type(value) is type(default) and stable_text(value) == stable_text(default)


def decoded_names(translation: Translation) -> list[str]:
    """The parameters whose values are not in the space itself, such as estimators and distributions by their quantiles."""
    return [name for name, (_, decode) in translation.entries.items() if decode is not None]


def decoded_texts(translation: Translation) -> Iterable[str]:
    """These parameters and their values; distributions at some quantiles."""
    for name in decoded_names(translation):
        parameter, decode = translation.space[name], translation.entries[name][1]
        assert decode is not None
        at = parameter.options if isinstance(parameter, Choice) else parameter.low + _QUANTILES * (parameter.high - parameter.low)
        yield stable_text([name, *(decode(each) for each in at)])


# -- data as digests ---------------------------------------------------------------------------------------------------


def digest(pieces: Iterable[str | bytes]) -> str:
    """A digest of texts and bytes in their order."""
    total = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        data = piece.encode() if isinstance(piece, str) else piece
        total.update(len(data).to_bytes(8, "big"))
        total.update(data)
    return total.hexdigest()


def row_bytes(fold: tuple[Any, Any]) -> bytes:
    """The rows of a fold."""
    train, test = (np.asarray(rows, dtype=np.int64) for rows in fold)
    return b"".join((train.size.to_bytes(8, "big"), train.tobytes(), test.tobytes()))


def fit_param_texts(params: Mapping[str, Any]) -> Iterable[str]:
    """Parameters of ``fit``, such as groups or weights."""
    for name, value in sorted(params.items()):
        yield name
        rows = hasattr(value, "__len__") and not isinstance(value, str | Mapping)
        yield data_part(value)["digest"] if rows else stable_text(value)


def data_part(data: Any) -> Part:
    """The fingerprint of X, y or another array."""
    if data is None:
        return {"shown": "None", "digest": "None"}
    rows = _num_samples(data)
    columns = f", {plural(data.shape[1], 'column')}" if len(getattr(data, "shape", ())) == 2 else ""
    return {"shown": plural(rows, "row") + columns, "digest": digest(data_pieces(data, rows))}


def data_pieces(data: Any, rows: int) -> Iterable[str | bytes]:
    """The data as texts and bytes."""
    yield str(getattr(data, "shape", rows))
    yield str(list(getattr(data, "columns", ())))
    if hasattr(data, "tocsr"):
        data = data.tocsr()
        for part in (data.indptr, data.indices, data.data):
            yield from array_pieces(part)
    elif isinstance(data, np.ndarray) and data.dtype.kind not in "OV":
        yield from array_pieces(data)
    elif rows:
        sample = _safe_indexing(data, np.unique(np.linspace(0, rows - 1, min(rows, SAMPLED_ROWS)).astype(int)))
        try:
            array = np.asarray(sample)
        except (TypeError, ValueError):  # rows of different lengths, or an array that is not in this memory
            yield _ADDRESS.sub("", repr(sample))
            return
        if array.dtype.kind in "OV":
            yield _ADDRESS.sub("", repr(array.tolist()))
        else:
            yield from array_pieces(array)


def array_pieces(array: Any) -> Iterable[str | bytes]:
    """The bytes of an array of numbers or texts, some rows at a time: an array in another order would be copied as a whole."""
    yield str(array.dtype)
    for start in range(0, len(array), ROWS_PER_BLOCK):
        yield np.ascontiguousarray(array[start : start + ROWS_PER_BLOCK]).tobytes()
