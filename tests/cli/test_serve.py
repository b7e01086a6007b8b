"""``serve``, ``run --serve`` and ``demo --open``: who may listen where, and what is printed."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import shoestring as st
from shoestring.web.app import make_app
from shoestring.web.keys import Keys
from shoestring.web.server import Server
from shoestring.web.site import Site
from tests.cli.programs import begin, call, read
from tests.cli.test_demo import Quick
from tests.web.visitor import program

TOKEN = "a-token-for-the-tests"
LINK = re.compile(r"http://127\.0\.0\.1:\d+/#key=[\w-]{40,}")


@pytest.fixture
def study(here: Path, monkeypatch: pytest.MonkeyPatch) -> st.Study:
    monkeypatch.delenv("SHOESTRING_TOKEN", raising=False)
    made = st.Study(st.Space(x=st.Float(0, 1)), storage="shoestring.db", name="hand", method=st.Random())
    made.tell(made.ask(), 0.5)
    return made


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    """The servers that would have run until Ctrl-C."""
    found: list[Server] = []

    def run(server: Server) -> None:
        found.append(server)
        server.socket.close()
        server.site.close()

    monkeypatch.setattr(Server, "run", run)
    return found


def test_serve_prints_a_link_that_works_once_and_a_read_only_one(study: st.Study, served: list[Server]) -> None:
    run = call("serve", "--port", "0")
    assert run.exit_code == 0, run.output
    page, read_only = LINK.findall(run.stdout)
    assert page != read_only
    keys = served[0].site.keys
    assert keys.exchange(page.partition("#key=")[2]) == "write"
    assert keys.exchange(page.partition("#key=")[2]) is None
    assert [keys.exchange(read_only.partition("#key=")[2]) for _ in range(2)] == ["read", "read"]
    assert served[0].socket.fileno() == -1


def test_serve_takes_the_storage_as_an_argument_and_prints_json(study: st.Study, served: list[Server], here: Path) -> None:
    run = call("serve", str(here / "shoestring.db"), "--port", "0", "--json")
    assert json.loads(run.stdout).keys() == {"page", "read_only", "storage"}
    assert "there is no file" in call("serve", "other.db").output


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "tuner.lan"])
def test_an_address_that_others_can_reach_needs_a_token(study: st.Study, served: list[Server], host: str) -> None:
    run = call("serve", "--host", host, "--port", "0")
    assert run.exit_code == 1
    assert "needs a token that you choose" in run.output
    assert served == []


def test_a_short_token_is_refused_and_a_long_one_is_never_printed(study: st.Study, served: list[Server]) -> None:
    assert "16 or more" in call("serve", "--token", "short").output
    run = call("serve", "--host", "0.0.0.0", "--port", "0", "--token", TOKEN)
    assert run.exit_code == 0, run.output
    assert TOKEN not in run.output
    assert served[0].site.keys.role_of_token(TOKEN) == "write"


def test_a_port_in_use_is_said_if_it_was_asked_for_and_replaced_if_not(
    study: st.Study, served: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        run = call("serve", "--port", str(port))
        assert run.exit_code == 1
        assert "give another --host or --port" in run.output
        monkeypatch.setattr("shoestring.web.server.DEFAULT_PORT", port)
        assert call("serve").exit_code == 0
        assert served[0].port != port


def test_without_the_packages_it_says_what_to_install(study: st.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoestring.cli.serve.is_installed", lambda package: package != "uvicorn")
    run = call("serve")
    assert run.exit_code == 1
    assert "pip install 'shoestring[web]'" in run.output


VISITOR = """
import json, urllib.request
request = urllib.request.Request(open("address").read() + "/api/studies/train", headers={"Authorization": "Bearer TOKEN"})
print(json.load(urllib.request.urlopen(request))["states"]["running"])
"""


def test_a_run_with_a_page_prints_its_link_and_answers_while_it_runs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOESTRING_TOKEN", TOKEN)
    monkeypatch.setattr("shoestring.web.server.DEFAULT_PORT", 0)
    original = Server.in_background

    def in_background(server: Server) -> Any:
        (here / "address").write_text(server.address)
        return original(server)

    monkeypatch.setattr(Server, "in_background", in_background)
    run = begin(here, "--serve", code=VISITOR.replace("TOKEN", TOKEN), trials=2)
    assert run.exit_code == 0, run.output
    assert LINK.search(run.stderr)
    assert TOKEN not in run.output
    assert [trial.value for trial in st.Study.load("shoestring.db").history] == [1.0, 1.0]
    with pytest.raises(urllib.error.URLError):  # it has ended with the run
        urllib.request.urlopen((here / "address").read_text(), timeout=2)


@pytest.mark.slow
def test_a_server_answers_a_program_and_ends_by_ctrl_c_with_nothing_in_its_log(study: st.Study, here: Path) -> None:
    words = [sys.executable, "-m", "shoestring", "serve", "--port", "0"]
    environment = os.environ | {"SHOESTRING_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, env=environment, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", first)
        assert found
        request = urllib.request.Request(f"{found[0]}/api/studies/hand", headers={"Authorization": f"Bearer {TOKEN}"})
        assert json.load(urllib.request.urlopen(request))["best"]["value"] == 0.5
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{found[0]}/?token={TOKEN}")
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        rest = process.stdout.read() + process.stderr.read()
    assert TOKEN not in first + rest
    assert "Traceback" not in rest


@contextmanager
def server_process(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real server, and its address."""
    words = [sys.executable, "-m", "shoestring", "serve", "--port", "0"]
    environment = os.environ | {"SHOESTRING_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert found
        try:
            yield process, found[0]
        finally:
            process.kill()


def post(address: str, path: str, document: Any) -> Any:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    request = urllib.request.Request(f"{address}{path}", json.dumps(document).encode(), headers, method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_a_server_that_is_killed_loses_nothing_and_another_one_goes_on(study: st.Study, here: Path) -> None:
    with server_process(here) as (process, address):
        first = post(address, "/api/studies/hand/ask", {"lease": "1h"})
        lost = post(address, "/api/studies/hand/ask", {"lease": 0.2})
        assert post(address, "/api/studies/hand/tell", {"number": first["number"], "value": 0.25, "cost": 1.0})["value"] == 0.25
        process.kill()  # SIGKILL
        process.wait()
    with server_process(here) as (_, address):
        told = {"number": first["number"], "value": 0.25, "cost": 1.0}
        assert post(address, "/api/studies/hand/tell", told)["value"] == 0.25  # as a client does that got no answer
        with pytest.raises(urllib.error.HTTPError, match="409"):
            post(address, "/api/studies/hand/tell", told | {"value": 0.5})
        again = post(address, "/api/studies/hand/ask", {})
        assert (again["config"], again["number"]) == (lost["config"], lost["number"] + 1)
    assert [str(trial.state) for trial in study.history] == ["done", "done", "abandoned", "running"]


def test_the_page_and_the_command_line_give_the_same_numbers(study: st.Study) -> None:
    study.tell(study.ask(), 0.125, cost=2.0, metrics={"accuracy": 0.9})
    study.tell(study.ask(), error="out of memory", cost=1.0)
    site = Site(study.storage, Keys(TOKEN))
    served, shown = program(make_app(site)).get("/api/studies/hand").json(), read("show", "hand")
    same = served.keys() & shown.keys()
    assert {"trials", "interrupted", "states", "spent", "unit", "best", "direction", "waiting", "halted", "space"} <= same
    assert {name: served[name] for name in same} == {name: shown[name] for name in same}


def test_the_demo_opens_its_page(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("shoestring.cli.serve.webbrowser.open", lambda link: opened.append(link) or True)
    monkeypatch.setattr("shoestring.web.server.DEFAULT_PORT", 0)
    monkeypatch.setattr("shoestring.cli.demo.Digits", Quick)
    monkeypatch.delenv("SHOESTRING_TOKEN", raising=False)
    run = call("demo", "--budget", "2", "--open", "--json")
    assert run.exit_code == 0, run.output
    assert LINK.fullmatch(opened[0])
    assert json.loads(run.stdout)["trials"] == 2
    assert opened[0] not in run.output  # a link of its own: the printed one still works
