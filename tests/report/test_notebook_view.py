"""Studies and results in a notebook: HTML without script or link, everything escaped, no model, no exception."""

import re
from functools import cache
from html.parser import HTMLParser

import pytest

import shoestring as st
from shoestring.report import notebook_view
from shoestring.report.notebook_view import guarded
from shoestring.report.result import Recommendation
from shoestring.surrogate.gp import GP
from tests.report.viewed_studies import KINDS, SCRIPT


@cache
def busy():
    """A study whose names, options and errors hold scripts, with failures and a running trial."""
    space = st.Space({"lr": st.Float(1e-5, 1e-1, log=True), SCRIPT: st.Choice(SCRIPT, "b")})
    study = st.Study(space, st.Random(), name=SCRIPT, unit="USD", budget=st.Budget(cost=110, unit="USD"))
    for value in (0.5, None, 0.25):
        study.tell(study.ask(), value, error=SCRIPT if value is None else None, cost=2.0, metrics={SCRIPT: 1.0})
    study.ask()
    return study


QUICK = {"busy": busy} | {name: KINDS[name] for name in ("empty", "one", "failures", "extreme", "wide")}


class Checker(HTMLParser):
    """Reads a text as HTML: tags that are not closed, and attributes that load or run something."""

    def __init__(self):
        super().__init__()
        self.open, self.bad, self.names = [], [], set()

    def handle_starttag(self, tag, attributes):
        self.names.add(tag)
        if tag != "br":
            self.open.append(tag)
        self.bad += [name for name, _ in attributes if name in ("src", "href", "xlink:href", "style") or name.startswith("on")]

    def handle_startendtag(self, tag, attributes):
        self.names.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(text):
    checker = Checker()
    checker.feed(text)
    assert checker.open == checker.bad == []
    assert not checker.names & {"script", "link", "img", "iframe", "object", "a", "form"}
    assert not re.search(r"url\(|@import|javascript:", text)
    assert set(re.findall(r"https?://[^\"' <]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert SCRIPT not in text
    return text


@pytest.fixture
def no_model(monkeypatch):
    def fitted(*args, **options):
        raise AssertionError("a model was fitted")

    monkeypatch.setattr(GP, "fit", fitted)
    monkeypatch.setattr(st.Study, "recommend", fitted)


@pytest.mark.parametrize("kind", QUICK)
def test_every_kind_of_study_and_result_has_a_view_without_a_model(kind, request):
    study = QUICK[kind]()
    request.getfixturevalue("no_model")
    for shown in (study, study.result):
        text = checked(shown._repr_html_())
        assert "cannot be shown" not in text
        assert ("<svg" in text) == (study.log.best is not None)


def test_the_view_says_what_a_study_is_and_where_it_stands():
    text = busy()._repr_html_()
    assert "a study to minimize" in text
    assert "real number from 1e-05 to 0.1, log scale" in text
    assert "<th>spent</th><td>6 USD of 110 USD, 104 USD left</td>" in text
    assert "result.study" not in text
    assert "Best value against cost" in text


def test_a_recommendation_that_is_known_already_is_shown(no_model):
    result = busy().result
    assert "model's pick" not in dict(result.rows(fit=False))
    vars(result)["recommended"] = Recommendation({"lr": 0.001}, 0.2, None)
    assert dict(result.rows(fit=False))["model's pick"] == "lr = 0.001; predicted 0.2, not evaluated yet"


def test_colours_follow_the_notebook_and_the_system():
    text = KINDS["one"]()._repr_html_()
    for rule in ("prefers-color-scheme:dark", 'data-jp-theme-light="false"', 'data-jp-theme-light="true"', "vscode-dark"):
        assert rule in text


def test_a_view_that_fails_is_a_line_that_says_why(monkeypatch):
    study = KINDS["one"]()
    monkeypatch.setattr(notebook_view, "page", lambda *args: 1 / 0)
    for shown in (study, study.result):
        text = checked(shown._repr_html_())
        assert text.startswith("<pre>")
        assert "ZeroDivisionError" in text


def test_a_storage_that_does_not_answer_does_not_raise_either(monkeypatch):
    def away(*args, **options):
        raise st.StorageUnavailable(f"gone {SCRIPT}")

    study = KINDS["one"]()
    monkeypatch.setattr(st.Study, "refresh", away)
    monkeypatch.setattr(st.Study, "__repr__", away)
    assert "StorageUnavailable: gone &lt;script&gt;" in checked(study._repr_html_())
    assert guarded(away, away).startswith("<pre>a study")


def test_characters_that_no_page_can_hold_are_replaced():
    study = st.Study(st.Space({"a\x00b": st.Choice("\ud800", "\x1b[2J")}))
    study.tell(study.ask(), error="\ud800")
    text = checked(study._repr_html_())
    text.encode()
    assert "\x00" not in text
    assert "\x1b" not in text


def test_a_stored_study_is_read_for_its_view(tmp_path):
    made = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=tmp_path / "a.db", name="kept")
    made.tell(made.ask(), 0.25)
    assert "0.25 (trial 0)" in st.Study.load(tmp_path / "a.db", "kept")._repr_html_()


def test_many_trials_and_parameters_make_a_small_view():
    assert len(KINDS["wide"]()._repr_html_()) < 40_000
