"""What ``shoestring run`` is to do: from the command line, a TOML file and the defaults, all checked before anything is spent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from ..budget import Budget
from ..errors import ShoestringError
from ..program.logs import folder_for
from ..program.template import Template
from ..space import Parameter, Space
from ..spelling import read_method, read_stop
from .money import make_budget, seconds
from .where import DEFAULT

_SCRIPT = re.compile(r"[^-{}=][^{}=]*\.[A-Za-z]\w{0,3}")  # train.py, bin/model.jl
STORED = ("command", "budget", "workers", "timeout", "retries", "confirm", "logs", "pass_as_json")


@dataclass(frozen=True)
class Plan:
    """One run. What is needed to resume it is kept with the study as its ``settings["run"]``."""

    command: tuple[str, ...]
    budget: Budget
    name: str
    where: str
    workers: int = 1
    timeout: float | None = None
    retries: int = 0
    confirm: bool = False
    logs: str = ""
    pass_as_json: bool = False

    def stored(self) -> dict[str, Any]:
        """JSON-ready; ``restored`` is its inverse."""
        kept = {key: getattr(self, key) for key in STORED}
        return kept | {"command": list(self.command), "budget": asdict(self.budget)}

    def template(self, space: Space) -> Template:
        return Template(self.command, space, self.pass_as_json)


def restored(name: str, where: str, kept: Mapping[str, Any], changes: Mapping[str, Any]) -> Plan:
    """The plan of a stored study, with some of it changed."""
    known = {key: kept[key] for key in STORED if key in kept}
    known["command"], known["budget"] = tuple(known["command"]), Budget(**known["budget"])
    return Plan(name=name, where=where, **known | dict(changes))


def make_plan(options: Mapping[str, Any], file: Path | None) -> Plan:
    """Of merged options; missing ones are None or absent."""
    given = {key: value for key, value in options.items() if value is not None}
    command = tuple(given.get("command") or ())
    if not command:
        raise click.UsageError("there is no program to run; write it after --, for example: -- python train.py --lr {lr}")
    name = str(given.get("name") or default_name(command, file))
    return Plan(
        command=command,
        budget=make_budget(given),
        name=name,
        where=str(given.get("storage", DEFAULT)),
        workers=at_least(given, "workers", 1, 1),
        timeout=seconds(given, "timeout"),
        retries=at_least(given, "retries", 0, 0),
        confirm=bool(given.get("confirm", False)),
        logs=str(given.get("logs") or folder_for(name)),
        pass_as_json=bool(given.get("pass_as_json", False)),
    )


def default_name(command: Sequence[str], file: Path | None) -> str:
    """The TOML file's name, or the script's: ``python train.py`` is the study train."""
    if file is not None:
        return file.stem
    scripts = (word for word in command[1:] if _SCRIPT.fullmatch(word))
    return Path(next(scripts, command[0])).stem or "study"


def at_least(given: Mapping[str, Any], key: str, lowest: int, default: int) -> int:
    value = int(given.get(key, default))
    if value < lowest:
        raise click.UsageError(f"{key} must be {lowest} or more, not {value}")
    return value


def make_study_options(given: Mapping[str, Any], budget: Budget, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """What ``Study`` takes besides name and storage; method and rule are read here, the space is made here."""
    if not parameters:
        raise click.UsageError("there is nothing to tune; give --param lr=log:1e-5:1e-1, or [params] in a TOML file")
    try:
        options: dict[str, Any] = {"space": Space(parameters)}
        options["method"] = read_method(given.get("method") or "auto")
        options["stop"] = read_stop(given.get("stop") or "auto")
    except ShoestringError as error:
        raise click.UsageError(str(error)) from None
    options["seed"] = 0 if given.get("seed") is None else int(given["seed"])
    options["direction"] = "maximize" if given.get("maximize") else "minimize"
    options["unit"] = budget.unit or "s"
    options["per_hour"] = budget.per_hour
    if given.get("initial") is not None:
        options["initial"] = int(given["initial"])
    return options
