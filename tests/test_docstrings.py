"""Every public name has a docstring with an example that runs, and an entry in the API reference.

Examples are in the format of doctest and assume ``import shoestring as st``. They run in an empty folder.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoestring as st
import shoestring.testing
from shoestring.execution.evaluate import LiveTrial

ROOT = Path(__file__).parent.parent
SOURCES = Path(st.__file__).parent
API_PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
WITH_MEMBERS = [st.Study, st.Result, st.Trial, st.History, st.Space, st.Budget, LiveTrial]
NEED_A_CLUSTER = {"DaskExecutor", "RayExecutor"}  # their examples are shown and not run: starting a cluster takes seconds
DICT_VIEWS = {"keys", "values", "items"}  # known from dict: they need no example
MAX_EXAMPLE_LINES = 12
SENTENCE = re.compile(r"[A-Z`].*[.:]$")


@cache
def public_names() -> dict[str, Any]:
    """The public names and what they stand for."""
    names = {name: getattr(st, name) for name in st.__all__ if name != "plot"}
    names |= {f"plot.{name}": thing for name in st.plot.__all__ if callable(thing := getattr(st.plot, name))}
    return names | {f"testing.{name}": getattr(shoestring.testing, name) for name in shoestring.testing.__all__}


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class defines, and those of its base classes in this library."""
    own = [base for base in cls.__mro__ if base is cls or base.__name__ == "StudyView"]
    for name, member in [item for base in own for item in vars(base).items()]:
        is_member = inspect.isroutine(member) or is_property(member)
        if is_member and not name.startswith("_") and name not in getattr(cls, "__dataclass_fields__", ()):
            yield name, member


def is_property(member: Any) -> bool:
    return isinstance(member, property | cached_property)


def own_docstring(thing: Any) -> str:
    """The docstring that was written for a thing, and not made by ``dataclass`` or taken from a base class."""
    text = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
    text = text or ""
    return "" if isinstance(thing, type) and text.startswith(f"{thing.__name__}(") else inspect.cleandoc(text)


def examples(text: str) -> str:
    """The lines of code of the examples in a docstring."""
    return "\n".join(line[4:] for line in inspect.cleandoc(text).splitlines() if line.startswith((">>> ", "... ")))


def is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Exception)


def test_every_public_name_has_a_docstring_that_begins_with_a_sentence() -> None:
    assert [name for name, thing in public_names().items() if not SENTENCE.match(own_docstring(thing).partition("\n\n")[0])] == []


def test_every_public_name_has_a_short_example() -> None:
    code = {name: examples(own_docstring(thing)).splitlines() for name, thing in public_names().items()}
    assert [name for name, lines in code.items() if not 0 < len(lines) <= MAX_EXAMPLE_LINES] == []


def test_every_example_is_run() -> None:
    assert {name for name, thing in public_names().items() if "+SKIP" in own_docstring(thing)} == NEED_A_CLUSTER


def test_every_error_says_when_it_is_raised_and_what_to_do() -> None:
    parts = {name: own_docstring(thing).partition("Raised ")[2] for name, thing in public_names().items() if is_error(thing)}
    assert [name for name, part in parts.items() if part.count(".") < 2] == []


@pytest.mark.parametrize("cls", WITH_MEMBERS, ids=lambda cls: cls.__name__)
def test_every_method_and_property_has_a_sentence_and_is_used_in_an_example_of_its_class(cls: type) -> None:
    known = dict(members(cls))
    assert [name for name, member in known.items() if not SENTENCE.match(own_docstring(member).partition("\n\n")[0])] == []
    code = "\n".join(examples(own_docstring(thing)) for thing in [cls, *known.values()])
    assert [name for name in known if name not in DICT_VIEWS and not re.search(rf"\.{name}\b", code)] == []


@pytest.mark.parametrize(
    "path", [path for path in sorted(SOURCES.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")],
    ids=lambda path: path.relative_to(SOURCES).as_posix(),
)
def test_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shoestring.report.plot.style.DPI", 40)  # coarse pictures
    monkeypatch.setattr("shoestring.report.plot.lookahead_data.PMIN_DRAWS", 2_048)
    name = ".".join(["shoestring", *path.relative_to(SOURCES).with_suffix("").parts]).removesuffix(".__init__")
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    report: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for test in doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs={"st": st, "np": np}):
            runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_every_public_name_is_in_the_api_reference() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in API_PAGES)
    assert set(public_names()) - set(re.findall(r"^\.\. auto\w+:: shoestring\.([\w.]+)$", pages, re.MULTILINE)) == set()


def test_the_site_names_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```{toctree}\n(.*?)^```", index, re.MULTILINE | re.DOTALL)
    named = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    pages = [page.relative_to(ROOT / "docs").with_suffix("").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(named) == sorted(set(pages) - {"index"})
