"""The registry: methods, rules and models by name, as text: ``EI``, ``kg``, ``EIAlpha(0.5)``, ``SureBound(0.01) | Patience(30)``.

A study's storage keeps what it was made with as such a text, and the command line reads it. The text is parsed, never evaluated:
calls of registered names with plain numbers, texts and such calls, and for rules ``|`` and ``&``.

A class from outside gets a name in one of two ways:

    st.register(MyAcquisition)                          for this process
    [project.entry-points."shoestring"]                 for every process, in the pyproject.toml of the package that has it
    MyAcquisition = "my_package.module:MyAcquisition"

Entry points are imported only when a name is met that is not known otherwise. The class needs a ``repr`` that calls it again with
its arguments, as dataclasses have.
"""

from __future__ import annotations

import ast
import logging
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

from ..acquisition.base import Acquisition
from ..cost.base import CostModel
from ..cost.meter import HOW_TO_WRITE, Meter, meter_text
from ..errors import MethodError
from ..search.base import SearchMethod
from ..surrogate.base import Surrogate
from ..surrogate.subset import Subset
from ..termination.base import StopRule

log = logging.getLogger("shoestring")

ENTRY_POINT_GROUP = "shoestring"

METHODS = (
    "Random", "Sobol", "TPE", "BORE", "Hyperband", "BOCA", "EI", "LogEI", "PI", "LCB", "EQI", "EIpu", "EIAlpha", "EICool",
    "CEI", "Gittins", "KG", "CFKG", "DKG", "CFDKG", "StochasticKG", "TraceKG", "MES", "ES", "PES",
)  # fmt: skip
COSTS = ("AutoCost", "LinearCost", "LogGPCost", "ResidualGPCost")
METERS = ("WallTime", "CPUTime", "GPUTime", "Energy", "Money")
SUBSETS = ("RandomSubset", "KMeansSubset", "SeedSubset")
RULES = ("RegretBound", "SureBound", "RegretBelow", "Patience", "EIBelow", "PIBelow", "WorthIt", "AutoStop")
KINDS = {  # what may stand in the text of each part of a study
    "method": METHODS,
    "stop": (*RULES, *COSTS),
    "model": ("GP", "VFE", "FITC", *SUBSETS),
    "cost_model": COSTS,
    "subset": SUBSETS,
    "cost": METERS,
}
INNER = {"stop": "cost_model", "model": "subset"}  # what may be an argument in the text of a part
NONE = {"stop": "none", "subset": "none"}  # where None is a choice, and not the default
BASES: dict[str, tuple[type, ...]] = {
    "method": (Acquisition, SearchMethod),
    "stop": (StopRule,),
    "model": (Surrogate,),
    "cost_model": (CostModel,),
    "subset": (Subset,),
    "cost": (Meter,),
}

Registered = TypeVar("Registered", bound=type)
_registered: dict[str, type] = {}  # by name, from outside
_read_entry_points: set[str] = set()


def register(cls: Registered) -> Registered:
    """Give a class from outside its name in stored studies, in ``replay`` and on the command line. Also as a decorator.

    Use it for a class of your own that derives from st.Acquisition, st.SearchMethod, st.StopRule, st.Surrogate, st.CostModel or
    st.Meter: a study that uses it can then be opened by ``Study.load``.

    >>> from dataclasses import dataclass
    >>> @st.register
    ... @dataclass(frozen=True)
    ... class Halfway(st.StopRule):
    ...     trials: int = 10
    ...     def check(self, history, belief=None):
    ...         return st.Verdict(len(history) >= self.trials, "halfway")
    >>> st.Study(st.Space(x=st.Float(0, 1)), stop=Halfway(5)).code["stop"]
    'Halfway(trials=5)'
    """
    if not isinstance(cls, type):
        raise MethodError(f"st.register takes a class, not {cls!r}")
    if kind_of(cls) is None:
        wanted = "st.Acquisition, st.SearchMethod, st.StopRule, st.Surrogate, st.CostModel or st.Meter"
        raise MethodError(f"{cls.__name__} cannot be registered: derive it from {wanted}")
    if cls.__name__.lower() in {name.lower() for names in KINDS.values() for name in names}:
        raise MethodError(f"{cls.__name__} is the name of a class of this library; give yours another name")
    _registered[cls.__name__] = cls
    return cls


def kind_of(cls: type) -> str | None:
    """The part of a study that a class can be: method, stop, model, cost_model, subset or cost."""
    return next((kind for kind, bases in BASES.items() if issubclass(cls, bases)), None)


def acquisition_class(name: str) -> type[Acquisition] | type[SearchMethod] | None:
    """The method of that name, None if there is none: a stored suggestion names its method."""
    found = builtin(name) if name in METHODS else _registered.get(name)
    return found if found is not None and issubclass(found, (Acquisition, SearchMethod)) else None


def builtin(name: str) -> type:
    return getattr(import_module("shoestring"), name)  # type: ignore[no-any-return]


def known_names(what: str, *, everything: bool) -> dict[str, Any]:
    """The classes that may stand in a text, by their names in small letters; ``everything``: entry points too."""
    if everything:
        from importlib.metadata import entry_points  # here, since it is slow to import

        for entry in entry_points(group=ENTRY_POINT_GROUP):
            if entry.value in _read_entry_points:
                continue
            _read_entry_points.add(entry.value)
            try:
                register(entry.load())
            except Exception as error:  # whatever a package from outside raises when it is imported
                log.warning("the entry point %s (%s) cannot be used: %s", entry.name, entry.value, error)
    outside = {name.lower(): cls for name, cls in _registered.items() if kind_of(cls) in {what, INNER.get(what)}}
    return {name.lower(): builtin(name) for name in KINDS[what]} | outside


# -- from text to object -----------------------------------------------------------------------------------------------


def read_method(text: str) -> Any:
    """A method, or "auto"."""
    return read_code("method", text)


def read_stop(text: str) -> Any:
    """A rule, "auto", or None for "none" (the budget alone)."""
    return read_code("stop", text)


def read_meter(given: Any) -> Meter | None:
    """The meter that ``cost=`` stands for: a word such as "cpu", a call such as "Money(per_hour=2.5)", or a meter."""
    meter = given
    if isinstance(given, str):
        try:
            meter = read_code("cost", meter_text(given))
        except MethodError as error:
            raise MethodError(f"{error}; {HOW_TO_WRITE}") from None
    if meter is not None and not isinstance(meter, Meter):
        raise MethodError(f"cost={given!r} is no meter; {HOW_TO_WRITE}")
    if meter is not None and not (isinstance(getattr(meter, "unit", None), str) and meter.unit):
        kind = type(meter).__name__
        raise MethodError(f'{kind}: a meter needs the unit of its readings; write unit: str = "steps" in the class {kind}')
    return meter


def read_code(what: str, text: str) -> Any:
    """The method, rule, model, cost model, subset or meter that a text stands for."""
    word = text.strip().lower()
    if word == "auto" or word == NONE.get(what):
        return word if word == "auto" else None
    return parse(text, what)


def parse(text: str, what: str) -> Any:
    """The object that a text stands for, or a MethodError that names what there is."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise unreadable(text, what) from None
    try:
        try:
            return build(tree, known_names(what, everything=False))
        except KeyError:
            return build(tree, known_names(what, everything=True))
    except KeyError as error:
        there = ", ".join([*names_of(what), *(name for name, cls in _registered.items() if kind_of(cls) == what)])
        raise MethodError(f"{what} {text}: there is no {error.args[0]}; there are {there}") from None
    except LookupError:
        raise unreadable(text, what) from None
    except (TypeError, ValueError) as error:  # MethodError is a ValueError
        raise MethodError(f"{what} {text}: {error}") from None


def build(tree: ast.expr, known: Mapping[str, Any]) -> Any:
    """A name, a call with literals, or rules joined; a KeyError for an unknown name, a LookupError for anything else."""
    match tree:
        case ast.Name(id=name):
            return class_named(name, known)()
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
            given = {keyword_name(word): argument(word.value, known) for word in keywords}
            return class_named(name, known)(*(argument(each, known) for each in arguments), **given)
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() as join, right=right):
            first, second = build(left, known), build(right, known)
            return first | second if isinstance(join, ast.BitOr) else first & second
    raise LookupError


def class_named(name: str, known: Mapping[str, Any]) -> Any:
    if name.lower() not in known:
        raise KeyError(name)
    return known[name.lower()]


def keyword_name(word: ast.keyword) -> str:
    if word.arg is None:
        raise LookupError
    return word.arg


def argument(tree: ast.expr, known: Mapping[str, Any]) -> Any:
    """A number, a text, True, False, None, a tuple of such, or a call of a known name."""
    try:
        return ast.literal_eval(tree)
    except ValueError:
        if not isinstance(tree, ast.Call):
            raise LookupError from None
    return build(tree, known)


def unreadable(text: str, what: str) -> MethodError:
    call = {"method": "EIAlpha(0.5)", "cost": "Money(per_hour=2.5)"}.get(what, "SureBound(0.01) | Patience(30)")
    return MethodError(f"{what} {text!r} cannot be read; write a name or {call}; the names are {', '.join(names_of(what))}")


def names_of(what: str) -> list[str]:
    """The names that a part of a study can have, without those that may only be an argument of it."""
    inner = KINDS[INNER[what]] if what in INNER else ()
    return [name for name in KINDS[what] if name not in inner]


# -- from object to text -----------------------------------------------------------------------------------------------


def text_of(what: str, given: Any) -> str | None:
    """The text from which ``read_code`` makes the same object again; None if there is none."""
    if given is None:
        return NONE.get(what, "auto")
    text = given if isinstance(given, str) else repr(given)
    try:
        again = read_code(what, text)
    except MethodError:
        return None
    return text if again == given or given == "auto" else None


def texts_of(code: Mapping[str, Any]) -> dict[str, str | None]:
    """The text of each part of a study, None where there is none that could be read again."""
    return {what: text_of(what, given) for what, given in code.items()}
