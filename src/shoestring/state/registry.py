"""Methods, rules and models as text: ``EI``, ``kg``, ``EIAlpha(0.5)``, ``SureBound(0.01) | Patience(30)``, ``GP(kernel='se')``.

The text is parsed, never evaluated: calls of the names below with plain numbers, texts and such calls, and for rules ``|`` and
``&``. A study's storage keeps what it was made with in this way.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from ..errors import MethodError

METHODS = (
    "Random", "Sobol", "TPE", "BORE", "Hyperband", "BOCA", "EI", "LogEI", "PI", "LCB", "EIpu", "EIAlpha", "EICool", "CEI",
    "Gittins", "KG", "CFKG", "DKG", "CFDKG", "StochasticKG", "MES", "ES", "PES",
)  # fmt: skip
COSTS = ("AutoCost", "LinearCost", "LogGPCost", "ResidualGPCost")
SUBSETS = ("RandomSubset", "KMeansSubset", "SeedSubset")
RULES = ("RegretBound", "SureBound", "Patience", "EIBelow", "PIBelow", "WorthIt", "AutoStop")
NAMES = {
    "method": METHODS,
    "stop": (*RULES, *COSTS),
    "model": ("GP", "VFE", "FITC", *SUBSETS),
    "cost_model": COSTS,
    "subset": SUBSETS,
}
NONE = {"stop": "none", "subset": "none"}  # where None is a choice, and not the default


def read_method(text: str) -> Any:
    """A method, or "auto"."""
    return read_code("method", text)


def read_stop(text: str) -> Any:
    """A rule, "auto", or None for "none" (the budget alone)."""
    return read_code("stop", text)


def spelled(text: str, names: tuple[str, ...], what: str) -> Any:
    """The object that a text stands for, or a MethodError that names what there is."""
    import shoestring  # here, since it is made of this

    known = {name.lower(): getattr(shoestring, name) for name in names}
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise unreadable(text, names, what) from None
    try:
        return build(tree, known)
    except KeyError as error:
        raise MethodError(f"{what} {text}: there is no {error.args[0]}; there are {', '.join(names)}") from None
    except LookupError:
        raise unreadable(text, names, what) from None
    except (TypeError, ValueError) as error:  # MethodError is a ValueError
        raise MethodError(f"{what} {text}: {error}") from None


def build(tree: ast.expr, known: Mapping[str, Any]) -> Any:
    """A name, a call with literals, or rules joined; a KeyError for an unknown name, a LookupError for anything else."""
    match tree:
        case ast.Name(id=name):
            return named(name, known)()
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
            given = {named_word(word): argument(word.value, known) for word in keywords}
            return named(name, known)(*(argument(each, known) for each in arguments), **given)
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() as join, right=right):
            first, second = build(left, known), build(right, known)
            return first | second if isinstance(join, ast.BitOr) else first & second
    raise LookupError


def named(name: str, known: Mapping[str, Any]) -> Any:
    if name.lower() not in known:
        raise KeyError(name)
    return known[name.lower()]


def named_word(word: ast.keyword) -> str:
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


def unreadable(text: str, names: tuple[str, ...], what: str) -> MethodError:
    call = "EIAlpha(0.5)" if what == "method" else "SureBound(0.01) | Patience(30)"
    return MethodError(f"{what} {text!r} cannot be read; write a name or {call}; the names are {', '.join(names)}")


def read_code(what: str, text: str) -> Any:
    """The method, rule, model, cost model or subset that a text stands for."""
    word = text.strip().lower()
    if word == "auto" or word == NONE.get(what):
        return word if word == "auto" else None
    return spelled(text, NAMES[what], what)


def text_of(what: str, given: Any) -> str | None:
    """The text from which ``read_code`` makes the same again; None if there is none."""
    if given is None:
        return NONE.get(what, "auto")
    text = given if isinstance(given, str) else repr(given)
    try:
        again = read_code(what, text)
    except MethodError:
        return None
    return text if again == given or given == "auto" else None
