"""The page in a real browser. Passed over where playwright or Chromium is missing."""

import math
import os
import shutil
import threading
from pathlib import Path

import pytest

import shoestring as st
from shoestring.report.html_report import html_report
from shoestring.report.views import VIEWS
from shoestring.storage.url import open_storage
from shoestring.web.keys import Keys
from shoestring.web.server import Server
from shoestring.web.site import Site

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
EVIL = "<script>window.ran=1</script><img src=x onerror=window.ran=1>"
SPACE = st.Space(lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12), act=st.Choice("relu", "tanh"))
LAYOUT = """() => {
  const problems = [], ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) problems.push("id twice: " + id);
  for (const each of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (!each.labels.length && !each.getAttribute("aria-label")) problems.push("no label: " + each.name);
  let level = 0;
  for (const each of document.querySelectorAll("h1, h2, h3, h4")) {
    const now = Number(each.tagName[1]);
    if (now > level + 1) problems.push("heading skips a level: " + each.textContent);
    level = now;
  }
  if (document.querySelectorAll("h1").length !== 1) problems.push("not one h1");
  for (const each of document.querySelectorAll("a, button, summary"))
    if (!each.textContent.trim()) problems.push("no text: " + each.outerHTML);
  for (const each of document.querySelectorAll("svg"))
    if (each.getAttribute("role") !== "img") problems.push("svg without a role");
  for (const name of ["header", "main", "footer"]) if (!document.querySelector(name)) problems.push("no " + name);
  if (!document.documentElement.lang) problems.push("no language");
  const width = document.documentElement.scrollWidth;
  if (width > window.innerWidth) problems.push("too wide: " + width);
  return problems;
}"""


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server():
    """A page of some studies: with results, failures and running trials, without any, and with fidelities and scripts."""
    storage = open_storage("memory")
    study = st.Study(
        SPACE, st.Random(), storage=storage, name="xgb", unit="USD", budget=st.Budget(trials=60, cost=90.0, unit="USD")
    )
    for number in range(15):
        trial = study.ask()
        value = (math.log10(trial.config["lr"]) + 3) ** 2 + (trial.config["depth"] - 6) ** 2 / 10
        result = (
            {"error": "RuntimeError: CUDA out of memory"}
            if number % 10 == 4
            else {"value": value, "metrics": {"accuracy": 1 / (1 + value)}}
        )
        study.tell(trial, **result, cost=1.5)
    study.ask()
    st.Study(SPACE, storage=storage, name="empty", budget="10m")
    ladder = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)), st.Random(), storage=storage, name="ladder")
    for epochs in (1, 3, 9):
        ladder.add({"x": 0.5, "epochs": epochs}, 1 / epochs, cost=epochs)
    ladder.ask()
    evil = st.Study(
        st.Space({f"p{EVIL}": st.Float(0, 1), "c": st.Choice(EVIL, "b")}), st.Random(), storage=storage, name=f"n{EVIL}"
    )
    for _ in range(3):
        evil.tell(evil.ask(), 0.5, metrics={f"m{EVIL}": 1.0}, attrs={"k": EVIL})
    evil.tell(evil.ask(), error=EVIL)
    evil.ask()
    evil.halt(EVIL)
    with Server(Site(storage, Keys()), port=0).in_background() as server:
        server.study = study
        yield server


@pytest.fixture
def problems():
    return []


@pytest.fixture
def page(chromium, server, problems):
    """A page of a browser that is signed in by a link; what goes wrong in it is noted."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(server.new_links().page)
    page.wait_for_selector("table")
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(server.address) else problems.append(request.url))
    page.set_default_timeout(10_000)
    yield page
    context.close()
    assert problems == []


def test_a_link_signs_in_once_and_leaves_no_key_behind(chromium, server):
    link = server.new_links().page
    context = chromium.new_context()
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector("text=Studies")
    page.wait_for_selector("table")
    assert "key" not in page.url
    assert page.evaluate("document.cookie") == ""
    assert [cookie["httpOnly"] for cookie in context.cookies()] == [True]
    other = chromium.new_context().new_page()
    other.goto(link)
    other.wait_for_selector("text=this link was used already")
    other.context.close()
    context.close()


def test_a_running_study_updates_without_a_reload(page, server):
    study = server.study
    page.goto(f"{server.address}/studies/xgb")
    page.evaluate("window.stays = true")
    page.wait_for_selector("main[data-live=yes]", state="attached")
    running = study.log.having(st.State.RUNNING)[0]
    study.tell(running, 0.000125, cost=1.5)
    following = study.ask()
    page.wait_for_selector("#live >> text=0.000125 (trial")
    page.wait_for_selector("#picture-best_against_cost >> text=The best value is 0.000125")
    assert page.locator(f"#trials a:text-is('{following.number}')").count() == 0  # it cannot be seen, so it waits
    page.locator("#trials").scroll_into_view_if_needed()
    page.wait_for_selector(f"#trials a:text-is('{following.number}')")
    assert page.evaluate("window.stays") is True
    elapsed = page.locator("[data-since]").first
    before = elapsed.text_content()
    page.wait_for_function("before => document.querySelector('[data-since]').textContent !== before", arg=before)


def test_each_picture_draws_and_the_numbers_are_those_of_the_study(page, server):
    page.goto(f"{server.address}/studies/xgb")
    for view in VIEWS:
        if view != "live":
            figure = page.locator(f"#picture-{view}")
            figure.scroll_into_view_if_needed()
            page.wait_for_selector(f"#picture-{view} svg, #picture-{view} p.empty", state="attached")
    drawn, empty = page.locator("figure svg").count(), page.locator("figure p.empty").count()
    assert drawn >= 6  # chosen at random, its trials have no predictions to show
    assert drawn + empty == len(VIEWS) - 1
    boxes = [each.bounding_box() for each in page.locator("figure svg").all()]
    assert all(box["width"] > 200 and box["height"] > 80 for box in boxes)
    best = server.study.best
    assert f"{best.value:.4g} (trial {best.number})" in page.locator("#live").text_content()


EVERY_RULE = (("light", "{}"), ("dark", "{runOnly: ['color-contrast']}"))


def accessibility(page, rules=EVERY_RULE):
    """What axe-core finds, by its rule and the first element: all rules in light colours, and the contrast in dark ones too."""
    axe = pytest.importorskip("axe_playwright_python.base")  # it brings axe-core's script, which is no part of this repository
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.evaluate(axe.AXE_SCRIPT + "; 0")  # by the debugger, as a policy of the page would forbid it
    found = []
    for scheme, options in rules:
        page.emulate_media(color_scheme=scheme)
        violations = page.evaluate(f"axe.run(document, {options})")["violations"]
        found += [(scheme, each["id"], each["nodes"][0]["html"][:120]) for each in violations]
    return found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_no_page_is_too_wide_and_each_has_labels_headings_and_landmarks(page, server, scheme, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    for path in (
        "/",
        "/studies/xgb",
        "/studies/empty",
        "/studies/ladder",
        "/studies/xgb/trials/4",
        "/studies/xgb/pictures/parallel",
        "/compare?study=xgb",
    ):
        page.goto(server.address + path)
        assert page.evaluate(LAYOUT) == [], path
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 22, 26)") == (scheme == "dark")


@pytest.mark.slow  # one page is the short form
def test_axe_core_finds_nothing_on_any_page(page, server):
    for path in (
        "/", "/studies/xgb", "/studies/empty", "/studies/ladder", "/studies/xgb/trials/4", "/studies/xgb/pictures/parallel",
        "/compare?study=xgb", "/compare",
    ):  # fmt: skip
        page.goto(server.address + path)
        assert accessibility(page) == [], path


def test_axe_core_finds_nothing_and_something_where_a_label_is_missing(page, server):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(f"{server.address}/studies/xgb")
    assert accessibility(page, EVERY_RULE[:1]) == []
    page.evaluate("document.querySelector('label[for=q]').remove()")
    missing = accessibility(page, [("light", "{runOnly: ['label-title-only']}")])
    assert [rule for _, rule, _ in missing] == ["label-title-only"]


@pytest.mark.slow  # the contrast of thousands of points takes long
def test_axe_core_finds_nothing_with_all_pictures_drawn(page, server):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(f"{server.address}/studies/xgb")
    page.evaluate("Promise.all([...document.querySelectorAll('figure[data-fragment]')].map((part) => update(part)))")
    assert accessibility(page) == []


@pytest.mark.slow  # one page is the short form
def test_axe_core_finds_nothing_in_a_report(chromium, server, tmp_path):
    context = chromium.new_context(viewport={"width": 390, "height": 900})
    page = context.new_page()
    for name in ("xgb", "empty"):
        file = tmp_path / f"{name}.html"
        file.write_text(html_report(st.Study.load(server.site.storage, name), fit=False))
        page.goto(file.as_uri())
        assert accessibility(page) == [], name
    context.close()


def test_a_stored_script_never_runs(page, server):
    page.click("text=n<script>")
    page.wait_for_selector("h1:has-text('onerror')")
    study = page.url
    for place in ("", "/trials/3"):
        page.goto(study + place)
        for figure in page.locator("figure").all():
            figure.scroll_into_view_if_needed()
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        page.evaluate("Promise.all([...document.querySelectorAll('[data-fragment]')].map((part) => update(part)))")
        assert page.evaluate("window.ran") is None
    assert page.locator("text=onerror").count() > 0


def test_each_action_works_by_the_keyboard(page, server, problems):
    study = st.Study(SPACE, st.Random(), storage=server.site.storage, name="acts", budget=10)
    study.tell(study.ask(), 0.5)
    page.goto(f"{server.address}/studies/acts")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"

    def send(button, *fields, says):
        for name, text in fields:
            page.fill(f"[name='{name}']", text)
        page.locator(f"form.box button:has-text('{button}')").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(f"text={says}")

    send("Extend", ("budget", "25"), says="The budget is larger")
    send("Keep the note", ("text", "a first look"), says="a first look")
    send("Enqueue", ("p:depth", "7"), says="They are asked next")
    send("Enqueue", ("p:depth", "700"), says="That was not done")
    send("Stop", says="All workers stop")
    send("Resume", says="The stop is withdrawn")
    page.goto(f"{server.address}/studies/acts/trials/0")
    send("Retry", says="enqueued once more")
    record = server.site.storage.find("acts")
    assert (record.waiting, record.halted, record.settings["budget"]["trials"]) == (2, None, 25)
    problems[:] = [each for each in problems if "422" not in each]  # the browser notes the answer to the wrong settings


@pytest.mark.slow
def test_the_pictures_of_the_docs_are_made_here(chromium, tmp_path):
    """SHOESTRING_SCREENSHOTS=docs/images writes those of the docs; without it, they go to a folder of the test."""
    folder = Path(os.environ.get("SHOESTRING_SCREENSHOTS", tmp_path))
    storage = open_storage("memory")
    budget = st.Budget(trials=60, cost=200.0, unit="USD")
    study = st.Study(SPACE, st.EIpu(), storage=storage, name="xgb", unit="USD", budget=budget, seed=1)
    for _ in range(24):
        trial = study.ask()
        rate, depth = math.log10(trial.config["lr"]), trial.config["depth"]
        value = 0.1 + 0.05 * (rate + 3) ** 2 + 0.004 * (depth - 6) ** 2 + 0.03 * (trial.config["act"] == "tanh")
        result = {"error": "RuntimeError: CUDA out of memory"} if rate > -1.5 else {"value": value}
        study.tell(trial, **result, cost=0.7 * depth)
    study.ask_many(2)
    with Server(Site(storage, Keys()), port=0).in_background() as server:
        for name, path, width, height, scheme in (
            ("page", "/studies/xgb", 1280, 1150, "light"), ("page-phone", "/studies/xgb", 390, 1150, "dark"),
            ("page-trial", "/studies/xgb/trials/20", 1280, 700, "light"),
        ):  # fmt: skip
            context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = context.new_page()
            page.goto(server.new_links().page)
            page.wait_for_selector("table")
            page.goto(server.address + path)
            page.screenshot(path=folder / f"{name}.png")
            assert (folder / f"{name}.png").stat().st_size > 20_000
            context.close()


@pytest.mark.slow
def test_the_page_of_a_run_does_not_slow_it_and_stops_with_it(chromium, server):
    """A study that ends many trials a second, with a page open: the page keeps up, and nothing breaks."""
    study = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=server.site.storage, name="fast")
    study.tell(study.ask(), 0.5)
    context = chromium.new_context()
    page = context.new_page()
    page.goto(server.new_links().page)
    page.wait_for_selector("table")
    page.goto(f"{server.address}/studies/fast")
    page.wait_for_selector("main[data-live=yes]", state="attached")
    run = threading.Thread(target=lambda: study.minimize(lambda config: config["x"], 300))
    run.start()
    page.wait_for_selector("#live >> text=300 of 300")
    run.join()
    context.close()


def contrast(one, other):
    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_texts_have_enough_contrast_in_both_colour_schemes():
    import re

    import shoestring.web

    css = (Path(shoestring.web.__file__).parent / "static" / "page.css").read_text()
    schemes = re.findall(r":root {([^}]*--page[^}]*)}", css)
    assert len(schemes) == 2
    for scheme in schemes:
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", scheme))
        for text in ("ink", "soft", "link"):
            for background in ("page", "card", "mark"):
                assert contrast(colours[text], colours[background]) >= 4.5, (text, background)
        assert contrast(colours["ink"], colours["bad-soft"]) >= 4.5
