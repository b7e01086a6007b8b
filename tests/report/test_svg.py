"""Pictures as SVG: well-formed, escaped, accessible, without labels that overlap."""

from __future__ import annotations

import itertools
import re
import time
from typing import Any
from xml.etree import ElementTree

import pytest

from shoestring.report.svg import CSS, draw
from shoestring.report.svg.elements import cut, text_width
from shoestring.report.svg.palette import DARK, LIGHT, ROLES
from shoestring.report.svg.scales import Scale, ticks
from shoestring.report.views import VIEWS, compare, view
from shoestring.report.views.base import axis, plain
from tests.report.viewed_studies import KINDS, SCRIPT, many, one, ordinary

SVG = "{http://www.w3.org/2000/svg}"
DESKTOP = 12.0  # the size of letters in the style sheet
Box = tuple[float, float, float, float]


def boxes(text: str, classes: tuple[str, ...] = ("tick", "key", "name")) -> list[tuple[str, Box]]:
    """The texts of a picture and their boxes (left, top, right, bottom), as wide as letters are on a desktop."""
    found = []
    for element in ElementTree.fromstring(text).iter(f"{SVG}text"):
        if element.get("class", "").split()[0] not in classes or (element.get("x"), element.get("y")) == ("0", "0"):
            continue  # turned names are at 0, 0 of their group
        x, y, width = float(element.get("x", 0)), float(element.get("y", 0)), text_width(element.text or "", DESKTOP)
        left = {"middle": x - 0.5 * width, "end": x - width}.get(element.get("text-anchor", ""), x)
        found.append((element.text or "", (left, y - 0.75 * DESKTOP, left + width, y + 0.2 * DESKTOP)))
    return found


def overlaps(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def all_pictures(kind: str) -> dict[str, str]:
    return {name: draw(view(KINDS[kind](), name)) for name in VIEWS}


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_is_xml_with_words_for_those_who_do_not_see_it(kind: str) -> None:
    for name, text in all_pictures(kind).items():
        root = ElementTree.fromstring(text)
        found = view(KINDS[kind](), name)
        assert (root.tag, root.get("role")) == (f"{SVG}svg", "img")
        assert (root[0].tag, root[0].text) == (f"{SVG}title", found["title"])
        assert (root[1].tag, root[1].text) == (f"{SVG}desc", found["caption"])
        assert re.fullmatch(r"0 0 [\d.]+ [\d.]+", root.get("viewBox", ""))


@pytest.mark.parametrize("kind", KINDS)
def test_no_picture_has_a_script_a_style_attribute_an_id_or_an_address(kind: str) -> None:
    for text in all_pictures(kind).values():
        for element in ElementTree.fromstring(text).iter():
            assert element.tag.removeprefix(SVG) in {"svg", "g", "path", "circle", "rect", "text", "title", "desc"}
            assert not {"style", "id", "href", "src"} & set(element.attrib)
            assert not any(name.startswith("on") for name in element.attrib)


def test_names_that_hold_a_script_are_escaped() -> None:
    pictures = all_pictures("ordinary") | {"failures": draw(view(KINDS["failures"](), "best_against_cost") | {"empty": None})}
    assert not any("<script" in text for text in pictures.values())
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in pictures["importance"]
    assert "&lt;script&gt;" in pictures["failures"]
    named = {**view(one(), "best_against_cost"), "title": f"a\x00\x1b{SCRIPT}\ud800\"'"}
    assert ElementTree.fromstring(draw(named))[0].text == f"a\ufffd\ufffd{SCRIPT}\ufffd\"'"


@pytest.mark.parametrize("kind", KINDS)
def test_labels_do_not_overlap_and_stay_inside(kind: str) -> None:
    for name, text in all_pictures(kind).items():
        width, height = map(float, ElementTree.fromstring(text).get("viewBox", "").split()[2:])
        found = boxes(text, ("tick", "key", "name") if name != "parallel" else ("name", "key"))
        for (one_text, box), (other_text, other) in itertools.combinations(found, 2):
            assert not overlaps(box, other), (name, one_text, other_text)
        for shown, (left, top, right, bottom) in found:
            assert -1 <= left <= right <= width + 1, (name, shown)
            assert 0 <= top <= bottom <= height, (name, shown)


AXES: list[dict[str, Any]] = [
    axis("x", [0.0, 1.0]), axis("x", [-3e-7, 1e-6]), axis("x", [1e300, -1e300]), axis("x", [123456.0, 123457.0]),
    axis("x", [5.0, 5.0]), axis("x", [1.0, 3.0], whole=True), axis("x", [0.0, 99_999.0], whole=True, zero=True),
    axis("x", [1e-9, 1e9], log=True), axis("x", [2.0, 3.0], log=True), axis("x", [1e-300, 1e300], log=True),
    axis("x", [0.5, 200.0], log=True), axis("x", [], options=["a", "a rather long option", "c"]),
    axis("x", [], options=[f"option {k}" for k in range(200)]), axis("x", [], options=["one"]),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(AXES)))
@pytest.mark.parametrize("upright", [True, False])
@pytest.mark.parametrize("length", [90.0, 400.0])
def test_the_labels_of_any_axis_are_in_order_and_apart(place: int, upright: bool, length: float) -> None:
    given = AXES[place]
    found = ticks(given, Scale.of(given, 0.0, length), upright=upright)
    assert found
    assert all(0 <= tick.at <= length for tick in found)
    assert [tick.at for tick in found] == sorted(tick.at for tick in found)
    assert len({tick.full for tick in found}) == len(found)
    for before, after in itertools.pairwise(found):
        needed = 14.0 if upright else 0.5 * (text_width(before.text) + text_width(after.text))
        assert after.at - before.at > needed


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (axis("x", [], ends=(0.0, 1.0)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (axis("x", [], ends=(1e-5, 0.1), log=True), ["1e-5", "1e-4", "0.001", "0.01", "0.1"]),
        (axis("x", [], ends=(-0.5, 4.5), whole=True), ["0", "1", "2", "3", "4"]),
        (axis("x", [], ends=(0.0, 20_000.0)), ["0", "5,000", "10,000", "15,000", "20,000"]),
        (axis("x", [], ends=(-2e-6, 2e-6)), ["-2e-6", "-1e-6", "0", "1e-6", "2e-6"]),
    ],
)
def test_labels_are_round_numbers(given: dict[str, Any], labels: list[str]) -> None:
    assert [tick.text for tick in ticks(given, Scale.of(given, 0.0, 300.0))] == labels


def test_a_scale_puts_numbers_in_proportion_and_others_at_the_edge() -> None:
    linear, log = Scale(0.0, 10.0, 100.0, 0.0), Scale(1.0, 100.0, 0.0, 50.0, log=True)
    assert [linear.at(value) for value in (0.0, 5.0, 10.0, 99.0, -1.0)] == [100.0, 50.0, 0.0, 0.0, 100.0]
    assert [log.at(value) for value in (1.0, 10.0, 100.0, 0.0, -3.0)] == pytest.approx([0.0, 25.0, 50.0, 0.0, 0.0])
    assert Scale(-1.7e308, 1.7e308, 0.0, 1.0).at(0.0) == 0.5


def test_points_are_where_their_numbers_are_and_name_their_trials() -> None:
    found = view(ordinary(), "best_against_trials")
    root = ElementTree.fromstring(draw(found))
    dots = [each for each in root.iter(f"{SVG}circle") if each.get("class") == "f-trial" and each.get("data-trial")]
    trials = next(each for each in found["series"] if each["role"] == "trial")
    assert [int(each.get("data-trial", -1)) for each in dots] == trials["number"]
    places = [float(each.get("cx", 0)) for each in dots]
    steps = [(b - a) / (n - m) for (a, m), (b, n) in itertools.pairwise(zip(places, trials["number"], strict=True))]
    assert max(steps) - min(steps) < 0.3  # rounding alone
    assert (dots[0][0].text or "").startswith(f"trial {trials['number'][0]}: lr")


def test_every_role_of_every_view_has_a_colour_in_light_and_dark() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert set(ROLES.values()) <= LIGHT.keys()
    assert CSS.count("prefers-color-scheme:dark") == 1
    for kind, make in KINDS.items():
        for name in VIEWS:
            found = view(make(), name)
            drawn = [*found["series"], *(each for panel in found.get("panels", ()) for each in panel["series"])]
            assert {each["role"] for each in drawn} <= ROLES.keys(), (kind, name)


def test_bands_over_seeds_are_drawn() -> None:
    text = draw(compare({"ours": [ordinary(), ordinary()], "other": ordinary()}))
    assert text.count('class="band f-study0"') == 2  # in the picture and in the legend
    assert "s-study1" in text


def test_a_file_of_its_own_holds_its_colours() -> None:
    assert ".st-chart{" in draw(view(one(), "timeline"), standalone=True)
    assert "<style" not in draw(view(one(), "timeline"))


def test_texts_are_cut_to_a_width() -> None:
    assert cut("short", 100.0) == "short"
    assert text_width(cut("a name that is far too long", 100.0)) <= 100.0


def test_ten_thousand_trials_are_drawn_in_less_than_half_a_second() -> None:
    found = [plain({"name": name, **make(many())}) for name, make in VIEWS.items()]
    began = time.process_time()
    pictures = [draw(each) for each in found]
    assert time.process_time() - began < 0.5
    assert sum(map(len, pictures)) < 500_000
