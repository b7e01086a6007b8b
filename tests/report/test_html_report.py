"""The report: one HTML file that needs nothing else and runs nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import shoestring as st
from shoestring.report.html_report import html_report
from shoestring.report.views import VIEWS, view
from tests.cli.programs import call, read
from tests.report.viewed_studies import KINDS, SCRIPT, made, ordinary

VOID = {"meta", "br", "link", "img"}


class Reader(HTMLParser):
    """The tags, their attributes and the texts of a page; it fails where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.mark.parametrize("kind", KINDS)
def test_every_study_has_a_report_without_scripts_and_other_addresses(kind: str) -> None:
    page = Reader(html_report(KINDS[kind](), fit=False))
    assert not {"script", "link", "img", "iframe", "object", "base"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert not {"src", "href", "style", "srcset"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)


def test_the_policy_allows_the_style_sheet_of_the_page_and_nothing_else() -> None:
    text = html_report(ordinary(), fit=False)
    page = Reader(text)
    policy = next(each["content"] for tag, each in page.tags if tag == "meta" and each.get("http-equiv"))
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_it_has_the_summary_the_explanation_all_pictures_and_the_trials() -> None:
    study = ordinary()
    text = html_report(study, fit=True)
    page = Reader(text)
    words = "".join(page.words)
    drawn = [each["data-view"] for tag, each in page.tags if tag == "svg"]
    assert drawn == [name for name in VIEWS if name != "live" and not view(study, name, fit=True)["empty"]]
    for name in VIEWS:
        if name != "live":
            assert view(study, name, fit=True)["caption"].split(";")[0] in words
    assert study.explain().why in words
    assert dict(study.result.rows())["config"] in words
    assert words.count("done") >= study.log.number_of(st.State.DONE)
    assert SCRIPT in words  # as text
    assert "<script" not in text.lower()


def test_without_a_fit_nothing_is_explained() -> None:
    assert "What it does and why" not in html_report(ordinary(), fit=False)
    assert "What it does and why" not in html_report(ordinary(), fit=True, with_model=False)


def test_the_first_thousand_trials_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoestring.report.html_report.MAX_TRIALS", 3)
    trials = [st.Trial(k, {"x": 0.5}, st.State.DONE, value=float(k), cost=1.0) for k in range(5)]
    text = html_report(made(st.Space(x=st.Float(0, 1)), trials), fit=False)
    assert "The first 3 of 5 trials." in text
    table = text.partition("<h2>Trials</h2>")[2]
    assert re.findall(r'<tr><td class="n">(\d+)</td><td>done</td>', table) == ["0", "1", "2"]


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOESTRING_STORAGE", raising=False)
    with st.Study(st.Space(x=st.Float(0, 1)), storage="shoestring.db", name="a/b", method=st.Random(), unit="USD") as study:
        for value in (3.0, 1.0, 2.0):
            study.tell(study.ask(), value, cost=2 * value)
    return tmp_path


def test_the_command_writes_the_file_and_prints_its_path(here: Path) -> None:
    run = call("report", "--no-fit")
    assert run.stdout.splitlines() == ["a-b.html", "next: shoestring show a/b"], run.output
    found = read("report", "a/b", "-o", "study.html")
    told = read("show", "a/b")
    text = (here / "study.html").read_text(encoding="utf-8")
    assert found == {"study": "a/b", "file": "study.html", "bytes": len(text.encode())}
    assert f"The best value is {told['best']['value']:g} (trial {told['best']['number']})" in text
    assert f"{told['spent']:g} USD" in text


def test_a_file_that_cannot_be_written_is_an_error_that_says_what_to_do(here: Path) -> None:
    run = call("report", "--no-fit", "-o", "nowhere/study.html")
    assert run.exit_code == 1
    assert "could not be written to 'nowhere/study.html': No such file or directory; give another file with -o" in run.output


def test_a_study_with_code_of_its_own_has_a_report_without_a_model(here: Path) -> None:
    class Own(st.SearchMethod):
        def suggest(self, context: object) -> st.Suggestion:
            return st.Suggestion({"x": 0.5}, by="Own", why="why not")

    with st.Study(st.Space(x=st.Float(0, 1)), storage="shoestring.db", name="own", method=Own()) as study:
        study.tell(study.ask(), 1.0)
    assert call("report", "own").exit_code == 0
    run = call("report", "own", "--fit")
    assert run.exit_code == 1
    assert "omit --fit" in run.output
