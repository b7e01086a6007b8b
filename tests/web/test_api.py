"""Ask and tell over HTTP: what storage promises holds here too, and each wrong request says what, where and how to fix it."""

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest

import shoestring as st
from shoestring.storage.url import open_storage
from shoestring.web.app import make_app
from shoestring.web.keys import Keys
from shoestring.web.site import Site
from tests.web.visitor import TOKEN, program


def serve(storage):
    return program(make_app(Site(storage, Keys(TOKEN))))


def test_ask_and_tell(client, study):
    asked = client.post("/api/studies/xgb/ask", json={"lease": "30m"})
    assert asked.status_code == 200
    trial = asked.json()
    assert (trial["study"], trial["number"], trial["lease_seconds"]) == ("xgb", 5, 1800.0)
    assert study.space.check(trial["config"]) == trial["config"]
    told = client.post(
        "/api/studies/xgb/tell",
        json={"number": 5, "value": 0.125, "cost": 3.0, "metrics": {"accuracy": 0.9}, "attrs": {"host": "a"}},
    )
    assert (told.status_code, told.json()["state"], told.json()["value"], told.json()["late"]) == (200, "done", 0.125, False)
    assert study.best.value == 0.125
    assert study.history[5].metrics == {"accuracy": 0.9}


def test_an_empty_body_is_fine_for_ask(client):
    assert client.post("/api/studies/xgb/ask").status_code == 200


def test_the_same_result_twice_is_one_result_and_another_one_is_409(client, storage):
    number = client.post("/api/studies/xgb/ask").json()["number"]
    result = {"number": number, "value": 0.5, "cost": 1.0}
    first = client.post("/api/studies/xgb/tell", json=result)
    clock = storage.find("xgb").clock
    again = client.post("/api/studies/xgb/tell", json=result)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert storage.find("xgb").clock == clock
    other = client.post("/api/studies/xgb/tell", json=result | {"value": 0.75})
    assert other.status_code == 409
    assert "already done with value 0.5" in other.json()["error"]
    assert other.json()["fix"]


def test_folds_and_errors_are_results_too(client, study):
    for result in ({"folds": [0.25, 0.75], "cost": 2.0}, {"error": "out of memory", "cost": 1.0}):
        number = client.post("/api/studies/xgb/ask").json()["number"]
        assert client.post("/api/studies/xgb/tell", json={"number": number, **result}).status_code == 200
    assert (study.history[5].value, study.history[6].error) == (0.5, "out of memory")


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"{", "body"), (b"[]", "body"), (b'{"number": 4, "value": NaN}', "body"), (b'{"number": 4, "value": Infinity}', "body"),
        (b"{}", "body.number"), (b'{"number": "4", "value": 1}', "body.number"), (b'{"number": true, "value": 1}', "body.number"),
        (b'{"number": 4}', "body"), (b'{"number": 4, "value": "0.5"}', "body.value"),
        (b'{"number": 4, "value": true}', "body.value"),
        (b'{"number": 4, "value": 1, "cost": -1}', "body"), (b'{"number": 4, "value": 1, "cost": "x"}', "body.cost"),
        (b'{"number": 4, "cost": 1, "value": 1, "error": "x"}', "body"), (b'{"number": 4, "folds": 3}', "body.folds"),
        (b'{"number": 4, "cost": 1, "folds": ["x"]}', "body"), (b'{"number": 4, "value": 1, "metrics": [1]}', "body.metrics"),
        (b'{"number": 4, "cost": 1, "value": 1, "metrics": {"a": "b"}}', "body"),
        (b'{"number": 4, "cost": 1, "value": 1, "gradient": {"none": 1}}', "body"),
        (b'{"number": 4, "value": 1}', "body.cost"),
        (b'{"number": 4, "value": 1, "volue": 1}', "body.volue"), (b'{"number": 4, "error": 3}', "body.error"),
        (b"\xff\xfe", "body"), (b"[" * 100_000, "body"),
    ],
)  # fmt: skip
def test_a_bad_result_is_422_with_what_where_and_how_and_the_trial_stays_open(client, study, body, where):
    answer = client.post("/api/studies/xgb/tell", content=body)
    assert answer.status_code == 422, answer.text
    document = answer.json()
    assert document["where"] == where
    assert document["error"]
    assert document["fix"]
    assert study.history[4].state == "running"


@pytest.mark.parametrize("lease", ["soon", -1, 0, True, None, [], "400 days", 1e9])
def test_a_lease_that_cannot_be_read_is_422(client, lease, storage):
    answer = client.post("/api/studies/xgb/ask", json={"lease": lease})
    assert (answer.status_code, answer.json()["where"]) == (422, "body.lease")
    assert storage.find("xgb").trials == 5


def test_what_is_not_there_is_404(client):
    assert client.post("/api/studies/none/ask").status_code == 404
    assert client.get("/api/studies/none").json()["fix"]
    assert client.post("/api/studies/xgb/tell", json={"number": 77, "value": 1.0}).status_code == 404
    assert client.post("/api/studies/xgb/tell", json={"number": -1, "value": 1.0}).status_code == 404


def test_a_stopped_study_is_asked_no_more(client, study):
    study.halt("enough")
    answer = client.post("/api/studies/xgb/ask")
    assert answer.status_code == 409
    assert "enough" in answer.json()["error"]
    assert client.post("/api/studies/xgb/tell", json={"number": 4, "value": 0.5, "cost": 2.0}).status_code == 200


def test_the_budget_holds_for_programs_too(storage):
    study = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=storage, name="three", budget=3)
    client = serve(storage)
    assert [client.post("/api/studies/three/ask").status_code for _ in range(4)] == [200, 200, 200, 409]
    assert len(study.history) == 3


def test_a_space_that_is_used_up_is_409(storage):
    st.Study(st.Space(x=st.Choice("a", "b")), st.Random(), storage=storage, name="two")
    client = serve(storage)
    answers = [client.post("/api/studies/two/ask") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 409]
    assert answers[2].json()["fix"]


def test_a_trial_whose_lease_has_ended_is_asked_again_and_its_late_result_is_kept(tmp_path):
    """The client was killed: with kill -9, nothing else happens than that it does not call any more."""
    storage = open_storage(f"{tmp_path}/tune.db")
    st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=storage, name="lost")
    client = serve(storage)
    first = client.post("/api/studies/lost/ask", json={"lease": 0.05}).json()
    time.sleep(0.1)
    again = serve(storage).post("/api/studies/lost/ask").json()  # the server was killed too: another one goes on
    assert again["number"] == 1
    assert again["config"] == first["config"]
    late = client.post("/api/studies/lost/tell", json={"number": 0, "value": 0.5, "cost": 1.0})
    assert (late.status_code, late.json()["late"]) == (200, True)
    assert client.post("/api/studies/lost/tell", json={"number": 1, "value": 0.5}).status_code == 200
    storage.close_connections()


def test_a_lease_is_renewed_by_its_token_and_lost_once_the_trial_was_asked_again(tmp_path):
    storage = open_storage(f"{tmp_path}/tune.db")
    st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=storage, name="long")
    client = serve(storage)
    asked = client.post("/api/studies/long/ask", json={"lease": 0.05}).json()
    held = {"number": 0, "lease_token": asked["lease_token"]}
    renewed = client.post("/api/studies/long/renew", json=held | {"lease": "2h"})
    assert (renewed.status_code, renewed.json()) == (200, {"number": 0, "lease_seconds": 7200.0, "halted": None})
    time.sleep(0.06)  # the first lease would have ended
    assert client.post("/api/studies/long/ask").json()["number"] == 1
    assert storage.find("long").running == 2
    assert client.post("/api/studies/long/renew", json=held | {"lease_token": "another"}).status_code == 409
    assert client.post("/api/studies/long/renew", json={"number": 0}).json()["where"] == "body.lease_token"
    assert client.post("/api/studies/long/renew", json=held | {"lease": 0.01}).status_code == 200
    time.sleep(0.02)
    client.post("/api/studies/long/ask")  # it finds the end of the lease
    lost = serve(storage).post("/api/studies/long/renew", json=held)  # by another server
    assert lost.status_code == 409
    assert "late result is kept" in lost.json()["fix"]
    storage.close_connections()


def test_a_study_in_memory_has_no_leases_to_renew(client, study):
    asked = client.post("/api/studies/xgb/ask").json()
    assert asked["lease_token"] is None
    study.halt("enough")
    renewed = client.post("/api/studies/xgb/renew", json={"number": asked["number"], "lease": 60})
    assert (renewed.status_code, renewed.json()["halted"]) == (200, "enough")
    assert client.post("/api/studies/xgb/renew", json={"number": 0}).status_code == 409  # it has a result
    assert client.post("/api/studies/xgb/renew", json={"number": 99}).status_code == 404
    assert client.post("/api/studies/xgb/renew", json={}).json()["where"] == "body.number"


def test_intermediate_values_are_reported_over_http_and_stay_with_the_result(tmp_path):
    storage = open_storage(f"{tmp_path}/tune.db")
    study = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)), st.Random(), storage=storage, name="curves")
    client = serve(storage)
    asked = client.post("/api/studies/curves/ask").json()
    held = {"number": 0, "lease_token": asked["lease_token"]}
    for epochs in (1, 3):
        reached = {"value": 1 / epochs, "fidelity": {"epochs": epochs}, "cost": epochs}
        sent = client.post("/api/studies/curves/report", json=held | reached)
        assert sent.status_code == 200, sent.text
    assert sent.json() == {"number": 0, "reports": 2, "halted": None}
    wrong = {"value": "x", "fidelity": {"epochs": 2}, "cost": "x"}  # 2 goes backwards
    for field, value in wrong.items():
        answer = client.post("/api/studies/curves/report", json=held | {"value": 0.5} | {field: value})
        assert (answer.status_code, answer.json()["where"]) == (422, f"body.{field}")
    told = client.post("/api/studies/curves/tell", json={"number": 0, "value": 0.25})
    assert told.status_code == 200
    study.refresh()
    assert [each["fidelity"]["epochs"] for each in study.history[0].reports] == [1, 3]
    assert client.post("/api/studies/curves/report", json=held | {"value": 0.5}).status_code == 409
    storage.close_connections()


@contextmanager
def real_server(file):
    """``shoestring serve`` as a process, and a function that sends a request to it."""
    command = [sys.executable, "-m", "shoestring", "serve", str(file), "--port", "0", "--json", "--token", TOKEN]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        text = ""
        for line in process.stdout:
            text += line
            if line.startswith("}") or (text.startswith("{") and text.rstrip().endswith("}")):
                break
        address = json.loads(text)["page"].partition("/#")[0]

        def post(path, **body):
            return httpx.post(f"{address}{path}", json=body, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)

        yield process, post
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.slow
def test_a_server_and_a_client_that_are_killed_lose_no_trial_and_no_result(tmp_path):
    file = tmp_path / "tune.db"
    st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=file, name="killed").close()
    with real_server(file) as (process, post):
        first = post("/api/studies/killed/ask", lease=60).json()
        orphan = post("/api/studies/killed/ask", lease=0.2).json()  # its client is killed: it never calls again
        process.send_signal(signal.SIGKILL)
        process.wait()
    with real_server(file) as (process, post):
        held = {"number": first["number"], "lease_token": first["lease_token"]}
        assert post("/api/studies/killed/renew", **held).status_code == 200
        time.sleep(0.25)
        again = post("/api/studies/killed/ask", lease=60).json()
        assert (again["number"], again["config"]) == (2, orphan["config"])
        assert post("/api/studies/killed/tell", number=0, value=0.5, cost=1.0).status_code == 200
        process.send_signal(signal.SIGKILL)  # the client does not know whether its result has arrived
        process.wait()
    with real_server(file) as (_, post):
        assert post("/api/studies/killed/tell", number=0, value=0.5, cost=1.0).status_code == 200
        assert post("/api/studies/killed/tell", number=0, value=0.75).status_code == 409
        assert post("/api/studies/killed/tell", number=2, value=0.25).status_code == 200
    history = st.Study.load(file, "killed").history
    assert [(trial.number, str(trial.state), trial.value) for trial in history] == [
        (0, "done", 0.5), (1, "abandoned", None), (2, "done", 0.25),
    ]  # fmt: skip


def test_trials_come_in_parts(client):
    first = client.get("/api/studies/xgb/trials?count=2").json()
    assert [trial["number"] for trial in first["trials"]] == [0, 1]
    rest = client.get(f"/api/studies/xgb/trials?from={first['next']}").json()
    assert ([trial["number"] for trial in rest["trials"]], rest["next"]) == ([2, 3, 4], None)
    assert client.get("/api/studies/xgb/trials?from=x").status_code == 422


def test_the_numbers_of_a_picture_are_json(client):
    view = client.get("/api/studies/xgb/views/best_against_cost").json()
    assert view["title"]
    assert view["series"]
    assert client.get("/api/studies/xgb/views/none").status_code == 404


def test_a_study_whose_code_is_not_stored_takes_results_but_gives_no_suggestions(storage):
    class Own:
        def suggest(self, context):
            return st.Suggestion({"x": 0.5}, by="Own", why="always")

    study = st.Study(st.Space(x=st.Float(0, 1)), Own(), storage=storage, name="own")
    study.ask()
    client = serve(storage)
    assert client.post("/api/studies/own/ask").status_code == 409
    assert client.post("/api/studies/own/tell", json={"number": 0, "value": 0.5}).status_code == 200


def test_a_storage_that_is_away_is_503_and_the_same_request_works_later(client, storage, monkeypatch):
    close = storage.close

    def away(*arguments, **options):
        raise st.StorageUnavailable("the server is down")

    monkeypatch.setattr(storage, "close", away)
    answer = client.post("/api/studies/xgb/tell", json={"number": 4, "value": 0.5, "cost": 2.0})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    monkeypatch.setattr(storage, "close", close)
    assert client.post("/api/studies/xgb/tell", json={"number": 4, "value": 0.5, "cost": 2.0}).status_code == 200


def test_the_description_has_every_route_of_the_interface(app, client):
    document = client.get("/openapi.json").json()
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    routed = {
        (method, re.sub(r":\w+}", "}", route.path))
        for route in app.app.routes
        if route.path.startswith("/api/")
        for method in route.methods - {"HEAD"}
    }
    assert described == routed
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", "1.2.3")
    known = set(document["components"]["schemas"])
    assert set(re.findall(r"#/components/schemas/(\w+)", str(document))) <= known
    names = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert len(set(names)) == len(names)
