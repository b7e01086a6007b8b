"""Attributes of a study: facts that the user keeps with it, by name.

Each is a setting of its own in the storage, so that processes which set different ones do not overwrite each other's.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from ..data.outcome import read_attr
from .study_state import StudyState

PREFIX = "attr:"  # of the settings that hold attributes


class StudyAttributes(MutableMapping[str, Any]):
    """A dict of attributes that is written through to the storage. Values are anything that JSON can hold.

    What it returns is a copy: to change a list in it, set it again.
    """

    def __init__(self, state: StudyState) -> None:
        self._state = state

    def _stored(self) -> dict[str, Any]:
        found = self._state.storage.find(self._state.name)
        settings = {} if found is None else found.settings
        held = {name: value for name, value in settings.items() if name.startswith(PREFIX) and value is not None}
        return {name.removeprefix(PREFIX): value["value"] for name, value in held.items()}

    def __getitem__(self, name: str) -> Any:
        return self._stored()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._state.save_settings({f"{PREFIX}{name}": {"value": read_attr(name, value)}})

    def __delitem__(self, name: str) -> None:
        if name not in self._stored():
            raise KeyError(name)
        self._state.save_settings({f"{PREFIX}{name}": None})

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored())

    def __len__(self) -> int:
        return len(self._stored())

    def __repr__(self) -> str:
        return repr(self._stored())
