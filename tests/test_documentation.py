"""The documentation is true: Python blocks and examples run as they stand, links and module paths exist.

The blocks of one page run in order in one namespace, in an empty folder. A block that is not meant to run has the
comment ``<!-- not run -->`` on the line above it (an empty line may be between). In the quick tests pictures
are coarse, and the pages that take long run with fewer trials; in the slow tests these pages run as they stand.

Examples run as ``__main__``, in this process: importing NumPy and scikit-learn once more for each would take longer than the
examples do.
"""

from __future__ import annotations

import importlib.util
import re
import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import shoestring

ROOT = Path(__file__).parent.parent
SOURCES = Path(shoestring.__file__).parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
ARGUMENTS = {  # a budget, or a short form
    "sklearn_tuning": ["300ms"], "sklearn_pipeline_xgboost": ["2"], "ray_tune_search": ["without-ray"], "optuna_sampler": ["10"],
}  # fmt: skip
NEEDED = {"training_keras": ("keras", "torch"), "training_lightning": ("lightning",)}  # not among what the tests install
FEWER = {  # what the quick tests read instead, page by page
    "docs/fidelities.md": {
        "budget=16, method=st.LogEI()": "budget=10, method=st.LogEI()", "budget=121": "budget=40",
        "budget=20, checkpoints": "budget=11, checkpoints",
    },
    "docs/plots.md": {"budget=18, workers=2": "budget=13, workers=2", "for seed in range(5)": "for seed in range(2)"},
    "docs/lookahead-pictures.md": {"budget=10, method=st.EI()": "budget=9, method=st.EI()"},
    "docs/stopping.md": {
        "budget=42": "budget=9", "== 42": "== 9", "budget=30, method=st.Random()": "budget=22, method=st.Random()",
        "Budget(cost=30": "Budget(cost=10",
    },
    "docs/sklearn.md": {"n_iter=15": "n_iter=9", "n_iter=10": "n_iter=9"},
    "docs/costs.md": {"Budget(cost=8,": "Budget(cost=3,"},
}  # fmt: skip
SLOW = {*NEEDED, "fidelities", "parallel", "sklearn_search", "training_boosting", "training_loop"}  # pages of the docs do as much
BLOCK = re.compile(r"(?P<skip><!-- not run -->\n\n?)?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MODULE = re.compile(r"`([a-z_]+/[a-z_/]+\.py)`")


def blocks(text: str) -> list[tuple[int, str]]:
    """(line number, code) of each block that is to run."""
    return [(text.count("\n", 0, found.start("code")), found["code"]) for found in BLOCK.finditer(text) if not found["skip"]]


def anchors(page: Path) -> set[str]:
    """The names by which a link can refer to a heading of a page."""
    headings = HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Links of a page to a file that does not exist, or to a heading that is not in it."""
    broken = []
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        path = page.parent / target if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(f"{target}#{anchor}")
    return broken


def test_the_extractor_finds_blocks_and_skips_marked_ones() -> None:
    text = "a\n```python\nx = 1\n```\n<!-- not run -->\n```python\nx = 2\n```\n```\nx = 3\n```\n"
    assert blocks(text) == [(2, "x = 1\n")]


def test_broken_links_are_found(tmp_path: Path) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    page.write_text("# Here\n[a](other.md) [b](other.md#two-words) [c](#here) [d](gone.md) [e](other.md#gone) [f](https://a.org)\n")
    other.write_text("## Two words\n```\n# gone\n```\n")
    assert broken_links(page) == ["gone.md#", "other.md#gone"]


def run_blocks(page: Path, text: str) -> None:
    space: dict[str, Any] = {"__name__": "page"}
    for line, code in blocks(text):
        compiled = compile("\n" * line + code, str(page), "exec", dont_inherit=True)  # an error has the lines of the page
        exec(compiled, space)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shoestring.report.plot.style.DPI", 40)
    monkeypatch.setattr("shoestring.report.plot.lookahead_data.PMIN_DRAWS", 2_048)
    text = page.read_text(encoding="utf-8")
    for long, short in FEWER.get(page.relative_to(ROOT).as_posix(), {}).items():
        assert long in text, f"{page.name} has changed: FEWER names what is no longer there"
        text = text.replace(long, short)
    run_blocks(page, text)


@pytest.mark.slow
@pytest.mark.parametrize("page", FEWER)
def test_python_blocks_of_long_pages_run_as_they_stand(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(ROOT / page, (ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_a_page_names_exist(page: Path) -> None:
    named = MODULE.findall(page.read_text(encoding="utf-8"))
    assert [path for path in named if not (SOURCES / path).exists() and not (ROOT / path).exists()] == []


def marked(example: Path) -> Any:
    return pytest.param(example, id=example.stem, marks=[pytest.mark.slow] if example.stem in SLOW else [])


@pytest.mark.parametrize("example", [marked(example) for example in EXAMPLES])
def test_examples_run(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for package in NEEDED.get(example.stem, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example), *ARGUMENTS.get(example.stem, [])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if example.stem in NEEDED else "error")  # these libraries warn about themselves
        runpy.run_path(str(example), run_name="__main__")
    printed = capfd.readouterr()
    assert "best" in printed.out
    assert printed.err == ""
