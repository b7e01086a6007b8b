"""Reader of studies in a database of Optuna. It uses SQL only: Optuna is not needed, and nothing is unpickled.

Tables (schema 12, Optuna 3 to 5): studies, study_directions, trials, trial_params (the value as a number, for a category its
index among the choices; the distribution as JSON) and trial_values. Other tables are not read.

Optuna stores no search space: each trial stores its parameters and their distributions. The space is the union over all trials,
with the widest ranges. A parameter that some trials lack becomes a conditional parameter, if another parameter explains when it
was sampled: for example, the number of layers explains when the width of the third layer was sampled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, ShoestringError, SpaceError, StudyError
from ..space.parameters import Choice, Float, Int
from ..space.space import Parameter, Space

if TYPE_CHECKING:
    from sqlalchemy import Connection

SCHEMA_VERSIONS = range(12, 13)
MAX_PARENT_VALUES = 32  # of a parameter on which others may be conditional
RESTORE = "restore a backup, or look at its tables trials, trial_params and trial_values"
INFINITE_VALUES = {"INF_POS": math.inf, "INF_NEG": -math.inf}
# The kind of parameter for each distribution of Optuna, and the fields that its name implies; five names are before Optuna 3.
KINDS = {
    "UniformDistribution": ("float", {}),
    "LogUniformDistribution": ("float", {"log": True}),
    "DiscreteUniformDistribution": ("float", {}),
    "IntUniformDistribution": ("int", {}),
    "IntLogUniformDistribution": ("int", {"log": True}),
    "FloatDistribution": ("float", {}),
    "IntDistribution": ("int", {}),
    "CategoricalDistribution": ("choice", {}),
}


@dataclass
class OptunaTrial:
    """A trial of Optuna: its config and its result."""

    number: int
    state: str
    value: float | None
    seconds: float | None
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OptunaStudy:
    """A study of Optuna. ``notes`` say what was inferred about its space and what could not be imported."""

    name: str
    direction: str
    space: Space
    trials: Sequence[OptunaTrial]
    notes: Sequence[str]


def read_study(url: str, name: str | None = None) -> OptunaStudy:
    """Read the study of that name; if no name is given, the only study of the database."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError

    try:
        engine = create_engine(url)
    except (SQLAlchemyError, ImportError, ValueError) as error:  # an unknown kind of database, or its driver is not installed
        kind = url.partition("://")[0]
        raise StudyError(f"a database at {kind}://... cannot be read here: {type(error).__name__}; install its driver") from None
    try:
        with engine.connect() as connection:
            study, title = find_study(connection, name)
            direction = read_direction(connection, study, title)
            distributions, trials = read_trials(connection, study)
        notes: list[str] = []
        space = read_space(distributions, trials, notes)
    except SQLAlchemyError as error:
        reason = getattr(error, "orig", None) or error
        raise StudyError(f"this is not a database of Optuna's, or it cannot be read: {reason}") from None
    except SpaceError as error:
        raise StudyError(f"its parameters make no space: {error}") from None
    except ShoestringError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        why = f"a cell holds what Optuna never writes ({type(error).__name__}: {str(error)[:200]})"
        raise StudyError(f"this database of Optuna's is damaged: {why}; {RESTORE}") from None
    finally:
        engine.dispose()
    return OptunaStudy(title, direction, space, trials, notes)


def rows(connection: Connection, query: str, **values: Any) -> list[Any]:
    """The rows that a query returns."""
    from sqlalchemy import text

    return list(connection.execute(text(query), values))


def find_study(connection: Connection, name: str | None) -> tuple[int, str]:
    """The id and the name of the study."""
    version = rows(connection, "SELECT schema_version FROM version_info")
    if not version or version[0][0] not in SCHEMA_VERSIONS:
        found = version[0][0] if version else "none"
        raise StudyError(f"Optuna's schema {found} is not known, only 12; upgrade an older one by: optuna storage upgrade")
    studies = rows(connection, "SELECT study_id, study_name FROM studies ORDER BY study_id")
    fitting = [study for study in studies if name is None or study[1] == name]
    if len(fitting) != 1:
        known = ", ".join(repr(study[1]) for study in studies) or "none"
        raise StudyError(f"which study? there are {known}" if name is None else f"there is no study {name!r}; there are {known}")
    return int(fitting[0][0]), str(fitting[0][1])


def read_direction(connection: Connection, study: int, name: str) -> str:
    """``"minimize"`` or ``"maximize"``; an error if there are several objectives."""
    found = rows(connection, "SELECT direction FROM study_directions WHERE study_id = :study ORDER BY objective", study=study)
    if len(found) != 1:
        raise StudyError(f"study {name!r} has {len(found)} objectives; only studies with one objective can be imported")
    return "maximize" if found[0][0] == "MAXIMIZE" else "minimize"


def read_trials(connection: Connection, study: int) -> tuple[dict[str, list[Any]], list[OptunaTrial]]:
    """The distributions of each parameter, in the order in which they were first sampled, and the trials."""
    trials: dict[int, OptunaTrial] = {}
    query = "SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials"
    for key, number, state, began, ended in rows(connection, f"{query} WHERE study_id = :study ORDER BY number", study=study):
        trials[key] = OptunaTrial(int(number), str(state), None, seconds_between(began, ended))
    query = "SELECT v.trial_id, v.value, v.value_type FROM trial_values v JOIN trials t ON t.trial_id = v.trial_id"
    for key, value, kind in rows(connection, f"{query} WHERE t.study_id = :study AND v.objective = 0", study=study):
        trials[key].value = INFINITE_VALUES.get(kind, None if value is None else float(value))
    distributions: dict[str, list[Any]] = {}
    query = "SELECT p.trial_id, p.param_name, p.param_value, p.distribution_json FROM trial_params p"
    query += " JOIN trials t ON t.trial_id = p.trial_id WHERE t.study_id = :study ORDER BY p.param_id"
    for key, name, value, text in rows(connection, query, study=study):
        kind, given = read_distribution(text, name)
        trials[key].config[name] = given["options"][int(value)] if kind == "choice" else (int if kind == "int" else float)(value)
        known = distributions.setdefault(name, [])
        if not any(same(each, (kind, given)) for each in known):
            known.append((kind, given))
    return distributions, list(trials.values())


def seconds_between(began: Any, ended: Any) -> float | None:
    """The duration of a trial; None if it is not known or 0."""
    if began is None or ended is None:
        return None
    first, last = (datetime.fromisoformat(moment) if isinstance(moment, str) else moment for moment in (began, ended))
    return max((last - first).total_seconds(), 0.0) or None


def read_distribution(text: str, name: str) -> tuple[str, dict[str, Any]]:
    """The kind of parameter ("float", "int", "choice") and its fields, from the JSON of a distribution."""
    try:
        stored = json.loads(text)
        kind, more = KINDS[stored["name"]]
        given = {**stored["attributes"], **more}
    except (ValueError, KeyError, TypeError):
        raise StudyError(f"the distribution of {name!r} cannot be read: {text!r}") from None
    if kind == "choice":
        return kind, {"options": list(given["choices"])}
    step = given.get("step", given.get("q"))
    if kind == "int" and (step == 1 or given.get("log")):
        step = None
    return kind, {"low": given["low"], "high": given["high"], "log": bool(given.get("log")), "step": step}


def read_space(distributions: Mapping[str, list[Any]], trials: Sequence[OptunaTrial], notes: list[str]) -> Space:
    """The space of all trials. Constant parameters are removed from the trials; what was inferred is in ``notes``."""
    parameters: dict[str, Parameter] = {}
    complete = [trial for trial in trials if trial.state == "COMPLETE"]  # others may lack parameters that they did not reach
    usable = complete or [trial for trial in trials if trial.config]
    for name, known in distributions.items():
        kinds = {kind for kind, _ in known}
        if len(kinds) > 1:
            raise StudyError(f"{name!r} was sampled as {' and as '.join(sorted(kinds))}; such a study cannot be imported")
        fields = merged_fields(kinds.pop(), [given for _, given in known])
        if "options" not in fields and fields["low"] >= fields["high"]:
            notes.append(f"{name} is always {fields['low']:g} and is not imported")
            for trial in trials:
                trial.config.pop(name, None)
            continue
        when = find_condition(name, usable, distributions)
        if when is not None:
            notes.append(f"{name} is taken to be drawn only when {describe(when)}")
        parameters[name] = to_parameter(known[0][0], fields, when)
    return Space(parameters)


def merged_fields(kind: str, known: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of a parameter over all its distributions: all options, or the widest range."""
    if kind == "choice":
        options: list[Any] = []
        for given in known:
            options += [each for each in given["options"] if not any(same(each, other) for other in options)]
        return {"options": options}
    steps = {given["step"] for given in known}
    return {
        "low": min(given["low"] for given in known), "high": max(given["high"] for given in known),
        "log": all(given["log"] for given in known), "step": steps.pop() if len(steps) == 1 else None,
    }  # fmt: skip


def to_parameter(kind: str, fields: Mapping[str, Any], when: Mapping[str, Any] | None) -> Parameter:
    """A Choice, Int or Float with these fields."""
    if kind == "choice":
        return Choice(list(fields["options"]), when=when)
    return (Int if kind == "int" else Float)(**fields, when=when)


def find_condition(name: str, trials: Sequence[OptunaTrial], distributions: Mapping[str, list[Any]]) -> dict[str, Any] | None:
    """The parent and its values for which this parameter was sampled; None if it always was, or if no parent fits."""
    having = [trial for trial in trials if name in trial.config]
    lacking = [trial for trial in trials if name not in trial.config]
    for parent in sorted((each for each in distributions if each != name), key=lambda each: levels(distributions[each])):
        too_many = levels(distributions[parent]) > MAX_PARENT_VALUES
        if not lacking or too_many or not all(parent in trial.config for trial in having):
            continue
        allowed = {json.dumps(trial.config[parent]): trial.config[parent] for trial in having}
        if not any(parent in trial.config and json.dumps(trial.config[parent]) in allowed for trial in lacking):
            values = sorted(allowed.values(), key=lambda value: value if isinstance(value, int) else 0)
            return {parent: values if len(values) > 1 else values[0]}
    return None


def levels(known: Sequence[tuple[str, Mapping[str, Any]]]) -> float:
    """The number of values of a parameter."""
    kind, fields = known[0][0], merged_fields(known[0][0], [given for _, given in known])
    if kind == "choice":
        return len(fields["options"])
    return fields["high"] - fields["low"] + 1 if kind == "int" else math.inf


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON; 1, 1.0 and True are different."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def describe(when: Mapping[str, Any]) -> str:
    """A condition as text."""
    return " and ".join(f"{name} is {value!r}" for name, value in when.items())


def fits(space: Space, config: Mapping[str, Any]) -> str | None:
    """The reason why a config does not fit the space; None if it fits."""
    try:
        space.check(config)
    except ConfigError as error:
        return str(error)
    return None
