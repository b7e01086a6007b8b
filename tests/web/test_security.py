"""Nobody gets in without a key, no other website gets through, and nothing secret goes out."""

import asyncio
import json
import logging
import re
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

import shoestring as st
from shoestring.report.views import VIEWS
from shoestring.storage.url import open_storage
from shoestring.web.app import make_app
from shoestring.web.keys import SESSION_SECONDS, Keys
from shoestring.web.site import Site
from tests.web.visitor import HOST, TOKEN, Caller, program, signed_in

OPEN_TO_ALL = {("GET", "/static/page.css"), ("GET", "/static/page.js"), ("GET", "/static/icon.svg"), ("POST", "/login")}
EXAMPLES = {"name": "xgb", "number": "0", "part": "live", "view": "best_against_cost", "action": "stop", "file": "chart.css"}


def routes(app):
    """Each route with an address that it answers, from the router itself."""
    for route in app.app.routes:
        path = re.sub(r"{(\w+)(:\w+)?}", lambda found: EXAMPLES[found[1]], route.path)
        for method in sorted(route.methods - {"HEAD"}):
            yield method, path


def test_every_route_is_refused_without_a_key(app):
    stranger = Caller(app, html=False)
    known = list(routes(app))
    assert len(known) >= 20
    let_in = {(method, path) for method, path in known if stranger.send(method, path).status_code not in (401, 403)}
    assert let_in - OPEN_TO_ALL == set()


def test_every_route_answers_with_a_key_or_the_test_above_shows_nothing(app, browser):
    for method, path in routes(app):
        if method == "GET" and not path.endswith("/events"):
            assert browser.get(path).status_code == 200, path


@pytest.mark.parametrize("path", ["/", "/nothing", "/studies/none", "/static/none", "/static/chart.css"])
def test_a_stranger_learns_nothing_about_what_there_is(app, path):
    answer = Caller(app).get(path)
    assert answer.status_code == 401
    assert "xgb" not in answer.text


@pytest.mark.parametrize("key", ["", "wrong", None, 3, ["x"], "x" * 1000, "\ud800", "ü"])
def test_a_wrong_key_opens_nothing(app, key):
    stranger = Caller(app, html=False)
    assert stranger.post("/login", content=json.dumps({"key": key})).status_code == 401
    assert stranger.post("/login", content=b"not json").status_code == 401
    assert Caller(app, html=False, Authorization="Bearer nonsense").get("/api/studies").status_code == 401
    assert Caller(app, html=False, Authorization="Basic eDp5").get("/api/studies").status_code == 401


def test_a_link_works_once_and_its_cookie_is_for_this_site_alone(site, app):
    key = site.keys.new_link_key()
    answer = Caller(app).post("/login", json={"key": key})
    cookie = answer.headers["set-cookie"].lower()
    assert answer.status_code == 204
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "domain" not in cookie
    assert Caller(app).post("/login", json={"key": key}).status_code == 401


def test_a_forged_or_old_cookie_opens_nothing(site, app, monkeypatch):
    keys = site.keys
    cookie = keys.new_cookie("read")
    for forged in (
        cookie.replace("read", "write"),
        cookie[:-1] + ("0" if cookie[-1] != "0" else "1"),
        "",
        "a.b.c",
        "write.9999999999.x.",
    ):
        caller = Caller(app, Cookie=f"{keys.cookie_name}={forged}")
        assert caller.get("/").status_code == 401, forged
    assert Caller(app, Cookie=f"{keys.cookie_name}={cookie}").get("/").status_code == 200
    now = __import__("time").time()
    monkeypatch.setattr("shoestring.web.keys.time.time", lambda: now + SESSION_SECONDS + 1)
    assert Caller(app, Cookie=f"{keys.cookie_name}={cookie}").get("/").status_code == 401
    assert Keys().visitor_of_cookie(cookie) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8321", "127.0.0.1.evil.example", "", "10.0.0.1", "[::2]", "a@127.0.0.1:x"]
)
def test_a_foreign_host_is_400(browser, host):
    assert browser.get("/", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost:8321", "127.0.0.1", "[::1]:8321", "LOCALHOST"])
def test_the_names_of_this_machine_are_known(browser, host):
    assert browser.get("/", headers={"Host": host}).status_code == 200


def test_a_server_on_all_addresses_knows_addresses_and_given_names_but_no_others(site):
    app = make_app(site, hosts=["tuner.lan"], any_ip=True)
    caller = signed_in(site, app)
    status = {
        host: caller.get("/", headers={"Host": host}).status_code for host in ("10.0.0.1:8321", "tuner.lan:8321", "evil.example")
    }
    assert list(status.values()) == [200, 200, 400]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8321"])
def test_a_foreign_origin_is_403(app, browser, client, storage, origin):
    csrf = browser.csrf()
    answers = [
        browser.get("/", headers={"Origin": origin}),
        browser.post("/studies/xgb/actions/stop", data={"csrf": csrf}, headers={"Origin": origin}),
        client.post("/api/studies/xgb/ask", headers={"Origin": origin}),
        Caller(app).post("/login", json={"key": "x"}, headers={"Origin": origin}),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert storage.find("xgb").halted is None


@pytest.mark.parametrize("whose", ["cross-site", "same-site"])
def test_a_browser_that_says_that_another_site_asks_is_refused(browser, whose):
    for headers in ({"Sec-Fetch-Site": whose}, {"Sec-Fetch-Site": whose, "Origin": "null"}):
        assert browser.post("/studies/xgb/actions/stop", data={"csrf": browser.csrf()}, headers=headers).status_code == 403


def test_a_form_of_a_page_without_a_referrer_is_its_own(browser):
    headers = {"Sec-Fetch-Site": "same-origin", "Origin": "null"}
    assert browser.post("/studies/xgb/actions/stop", data={"csrf": browser.csrf()}, headers=headers).status_code == 303


@pytest.mark.parametrize("csrf", [None, "", "0" * 64, "ü"])
def test_an_action_without_its_csrf_token_is_403(site, app, browser, storage, csrf):
    fields = {} if csrf is None else {"csrf": csrf}
    assert browser.post("/studies/xgb/actions/stop", data=fields).status_code == 403
    other = signed_in(site, app).csrf()
    assert browser.post("/studies/xgb/actions/stop", data={"csrf": other}).status_code == 403
    assert browser.post("/api/studies/xgb/ask").status_code == 403
    assert storage.find("xgb").halted is None
    assert browser.post("/api/studies/xgb/ask", headers={"X-CSRF-Token": browser.csrf()}).status_code == 200


def test_a_read_only_link_shows_everything_and_changes_nothing(site, app, storage):
    for _ in range(2):
        reader = signed_in(site, app, site.keys.read_only_key)
        page = reader.get("/studies/xgb")
    assert page.status_code == 200
    assert "/actions/" not in page.text
    assert site.keys.read_only_key not in reader.get("/").text
    before = storage.find("xgb").clock
    for action in ("stop", "resume", "enqueue", "retry", "note", "extend"):
        assert reader.act("xgb", action).status_code == 403
    assert program(app, site.keys.read_only_key).post("/api/studies/xgb/ask").status_code == 403
    assert program(app, site.keys.read_only_key).get("/api/studies/xgb").status_code == 200
    assert storage.find("xgb").clock == before


def test_after_signing_out_the_page_is_closed(browser):
    csrf = browser.csrf()
    assert browser.post("/logout", data={"csrf": csrf}).status_code == 303
    assert browser.get("/").status_code == 401


def test_every_answer_has_the_strict_headers(app, browser):
    answers = [
        browser.get("/"),
        browser.get("/nothing"),
        Caller(app).get("/"),
        browser.get("/static/page.js"),
        browser.get("/openapi.json"),
    ]
    answers += [browser.get("/", headers={"Host": "evil.example"})]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers


def test_no_page_has_a_script_or_a_style_in_it(browser):
    for path in ("/", "/studies/xgb", "/studies/xgb/trials/3", "/compare?study=xgb", "/studies/xgb/pictures/parallel"):
        assert dangers(browser.get(path).text) == [], path


EVIL = "<script>window.ran=1</script><img src=x onerror=window.ran=1>\"'"


def dangers(text):
    """What a browser would run in a page: scripts other than ours, and attributes that are code."""
    found = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attributes):
            if tag in ("img", "iframe", "object", "embed", "style") or (
                tag == "script" and dict(attributes).get("src") != "/static/page.js"
            ):
                found.append(tag)
            found.extend(
                name
                for name, value in attributes
                if name.startswith("on") or name == "style" or (value or "").startswith("javascript:")
            )

    Reader().feed(text)
    return found


def test_the_reader_of_dangers_finds_them():
    assert dangers(f"<p>{EVIL}</p>") == ["script", "img", "onerror"]


def test_a_stored_script_is_shown_as_text(storage, site, app):
    space = st.Space({f"p{EVIL}": st.Float(0, 1), "c": st.Choice(EVIL, "b")})
    study = st.Study(space, st.Random(), storage=storage, name=f"n{EVIL}")
    study.set_attr(f"a{EVIL}", EVIL)
    study.set_attr("notes", [{"at": 1.0, "text": EVIL, "trial": EVIL}, EVIL, {"at": EVIL}])
    for _ in range(4):
        study.tell(study.ask(), 0.5, metrics={f"m{EVIL}": 1.0}, attrs={"k": EVIL})
    study.tell(study.ask(), error=EVIL)
    study.ask()  # it runs: no model is fitted, which takes time
    study.halt(EVIL)
    browser = signed_in(site, app)
    where = f"/studies/{quote(study.name, safe='')}"
    pages = ["/", where, f"{where}/trials/0", f"{where}/trials/4",
             f"{where}?q={quote(EVIL)}&sort={quote(EVIL)}&state={quote(EVIL)}",
             f"/compare?study={quote(study.name)}", f"/studies/{quote(EVIL)}", f"{where}?done={quote(EVIL)}",
             *(f"{where}/pictures/{view}" for view in VIEWS)]  # fmt: skip
    for page in pages:
        text = browser.get(page).text
        assert dangers(text) == [], page


@pytest.mark.parametrize(
    "path",
    ["/static/..%2f..%2f..%2fetc%2fpasswd", "/static/%2e%2e/app.py", "/static//etc/passwd",
     "/static/app.py", "/static/..%5capp.py",
     "/studies/xgb/trials/..%2f1", "/studies/xgb/trials/-1", "/studies/xgb/trials/99999999999999999999999",
     "/studies/xgb/parts/..%2fbase",
     "/studies/xgb/pictures/..%2fx", "/../../etc/passwd"],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_404(browser, path):
    assert browser.get(path).status_code == 404


def test_a_body_that_is_too_large_is_413(client):
    assert client.post("/api/studies/xgb/tell", content=b"x" * (1 << 20) + b"xx").status_code == 413


def test_names_and_queries_reach_no_sql(tmp_path):
    storage = open_storage(f"{tmp_path}/tune.db")
    name = "x'; DROP TABLE trials; --"
    study = st.Study(st.Space(x=st.Float(0, 1)), storage=storage, name=name)
    study.tell(study.ask(), 0.5)
    site = Site(storage, Keys(TOKEN))
    browser = signed_in(site, make_app(site))
    for path in (
        f"/studies/{name}",
        f"/studies/{name}?q=value%3D1'%20OR%201&sort='&page=1'&state='",
        "/studies/x' OR '1'='1",
        f"/compare?study={name}",
    ):
        assert browser.get(path).status_code in (200, 404)
    assert len(st.Study.load(storage, name).history) == 1
    storage.close_connections()


def test_the_password_of_the_storage_is_on_no_page(storage, study):
    address = "postgresql://tuner:hunter2-secret@db.example/tune"
    study.tell(study.ask(), error=f"could not connect to {address} with hunter2-secret", cost=1.0)
    study.set_attr("where", address)
    site = Site(storage, Keys(TOKEN), address)
    browser, client = signed_in(site, make_app(site)), program(make_app(site))
    pages = ["/", "/studies/xgb", "/studies/xgb/trials/5", "/studies/xgb?q=connect", "/studies/xgb/pictures/parallel"]
    texts = [browser.get(path).text for path in pages] + [
        client.get(path).text for path in ("/api/studies", "/api/studies/xgb", "/api/studies/xgb/trials")
    ]
    assert [text for text in texts if "hunter2" in text] == []
    assert "could not connect" in texts[2]


def test_no_key_is_ever_in_a_log(site, app, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    key = site.keys.new_link_key()
    browser = signed_in(site, app, key)
    monkeypatch.setattr("shoestring.web.pages.studies_page", lambda catalog: 1 / 0)
    answer = browser.get("/")
    assert answer.status_code == 500
    assert "ZeroDivisionError" not in answer.text
    assert "ZeroDivisionError" in caplog.text
    program(app).get("/")
    for secret in (key, TOKEN, site.keys.read_only_key, *browser.cookies.values()):
        assert secret not in caplog.text
        assert secret not in repr(site.keys)


def test_a_web_socket_is_refused(app):
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(app({"type": "websocket", "path": "/", "headers": [(b"host", HOST.encode())]}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_a_token_that_can_be_guessed_is_refused():
    with pytest.raises(ValueError, match="16 or more"):
        Keys("short")
