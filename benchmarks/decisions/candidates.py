"""Studies of this library that can be compared: by label, what is given to ``Study``.

To try a candidate, add a line to ``CANDIDATES`` and run it on the tuning set:

    python -m benchmarks.decisions --set tuning --methods ei,mine --seeds 3 --kind trials

A factory gives a method (what ``Study(method=)`` takes) or a mapping of options of ``Study`` (``method``, ``cost_model``,
``initial``, ``model``, ...). Space, seed and budget come from the benchmark, and automatic stopping is off. A label is also the
name of the file of rows, and what is stored is not run again: use a new label after changing what a label stands for.
"""

from collections.abc import Callable, Mapping
from typing import Any


def _method(name: str, *arguments: Any, **keywords: Any) -> Callable[[], Any]:
    """A factory of ``shoestring.<name>(...)``; the library is imported when it is first needed."""

    def build() -> Any:
        import shoestring as st

        return getattr(st, name)(*arguments, **keywords)

    return build


CANDIDATES: dict[str, Callable[[], Any]] = {
    "auto": dict,  # the default, as users meet it
    "ei": _method("EI"),
    "eipu": _method("EIpu"),
    "ei_alpha_0.3": _method("EIAlpha", 0.3),
    "cei_0.3": _method("CEI", 0.3),
    "cei_0.8": _method("CEI", 0.8),
    "gittins": _method("Gittins"),
}


def options(label: str) -> Mapping[str, Any]:
    """The options of ``Study`` that a label stands for."""
    if label not in CANDIDATES:
        there = ", ".join(CANDIDATES)
        raise ValueError(f"no candidate is called {label!r}; there are {there}; add it to CANDIDATES in benchmarks/decisions")
    made = CANDIDATES[label]()
    return made if isinstance(made, Mapping) else {"method": made}
