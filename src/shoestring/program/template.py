"""A program's arguments with places for the parameters: ``python train.py --lr {lr} --out model-{trial}.pt``.

``{name}`` may stand anywhere in an argument, ``{{`` and ``}}`` are braces. The arguments go to the program as they are, one by
one: there is no shell that could read anything into them.

A parameter that is not active has no value. An argument that names one is left out; and where it is nothing but the placeholder
and an option stands before it (``--rate-drop {rate_drop}``), that option is left out as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import ConfigError
from ..space import Space

EXTRAS = ("trial", "study", "result", "checkpoint_dir")  # unless a parameter is called so
_TOKEN = re.compile(r"(?P<open>\{\{)|(?P<close>\}\})|\{(?P<name>[^{}]*)\}|(?P<lone>[{}])")


@dataclass(frozen=True)
class Place:
    """Where a value goes."""

    name: str


@dataclass(frozen=True)
class Template:
    """Arguments for one space, checked when it is made.

    rest_by_environment  parameters that no placeholder names are the program's to read from SHOESTRING_CONFIG
    """

    arguments: tuple[str, ...]
    space: Space
    rest_by_environment: bool = False

    def __post_init__(self) -> None:
        if not self.arguments or not self.arguments[0]:
            raise ConfigError("there is no program to run; write it after --, for example: -- python train.py --lr {lr}")
        known = [*self.space, *(extra for extra in EXTRAS if extra not in self.space)]
        for place in self._places:
            if place not in known:
                names = ", ".join(f"{{{name}}}" for name in known)
                raise ConfigError(f"{{{place}}} is not a parameter; there are {names} (for a brace write {{{{ or }}}})")
        first = [piece.name for piece in self._pieces[0] if isinstance(piece, Place) and piece.name in self.space]
        if conditional := [name for name in first if self.space.parents(name)]:
            raise ConfigError(f"the program itself cannot depend on {conditional[0]}, which is not always active")
        if self.by_environment or self.rest_by_environment:
            return
        if unnamed := [name for name in self.space if name not in self._places]:
            raise ConfigError(
                f"no argument names {', '.join(f'{{{name}}}' for name in unnamed)}, so the program would not learn of it; "
                "add it to the program's arguments, or give --pass-as-json if the program reads SHOESTRING_CONFIG"
            )

    @property
    def by_environment(self) -> bool:
        """Whether no argument names a parameter at all: then the program reads SHOESTRING_CONFIG."""
        return not any(name in self.space for name in self._places)

    def fill(self, config: Mapping[str, Any], extras: Mapping[str, Any]) -> list[str]:
        """The arguments for a config; ``extras`` are the values of what is no parameter."""
        values = {**extras, **config}
        filled: list[str] = []
        option = False  # whether the argument before is an option by itself
        for text, pieces in zip(self.arguments, self._pieces, strict=True):
            if any(isinstance(piece, Place) and piece.name not in values for piece in pieces):  # not active
                if option and len(pieces) == 1:
                    filled.pop()
                option = False
                continue
            filled.append("".join(text_of(values[piece.name]) if isinstance(piece, Place) else piece for piece in pieces))
            option = text.startswith("-") and len(text) > 1 and "{" not in text
        return filled

    @cached_property
    def _pieces(self) -> list[list[str | Place]]:
        return [split(argument) for argument in self.arguments]

    @cached_property
    def _places(self) -> list[str]:
        return [piece.name for pieces in self._pieces for piece in pieces if isinstance(piece, Place)]


def split(argument: str) -> list[str | Place]:
    """An argument as texts and places."""
    pieces: list[str | Place] = []
    text, position = "", 0
    for token in _TOKEN.finditer(argument):
        text, position = text + argument[position : token.start()], token.end()
        if token["open"] or token["close"]:
            text += token[0][0]
            continue
        if token["lone"] or not token["name"]:
            raise ConfigError(f"{argument!r} has a brace that is no placeholder such as {{lr}}; write {{{{ or }}}} for a brace")
        pieces += [text, Place(token["name"])] if text else [Place(token["name"])]
        text = ""
    text += argument[position:]
    return [*pieces, text] if text or not pieces else pieces


def text_of(value: Any) -> str:
    """A value as an argument: texts as they are, numbers with all their digits, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
