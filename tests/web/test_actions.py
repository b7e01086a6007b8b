"""Each action does what it says, and says what is wrong where it cannot."""

import threading

import pytest

import shoestring as st
from tests.web.visitor import HOST


def stopped(answer):
    """The words of a page that says why something was not done."""
    assert answer.status_code == 422
    return answer.text


def test_stop_ends_a_running_study_and_resume_withdraws_it(browser, storage, study):
    answer = browser.act("xgb", "stop", reason="seen enough")
    assert (answer.status_code, answer.headers["location"]) == (303, "/studies/xgb?done=stop")
    assert storage.find("xgb").halted == "seen enough"
    assert "stop requested: seen enough" in browser.get("/studies/xgb").text
    assert browser.act("xgb", "resume").status_code == 303
    assert storage.find("xgb").halted is None
    assert "not stopped" in stopped(browser.act("xgb", "resume"))


def test_a_run_in_another_thread_hears_the_stop(storage, browser):
    study = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=storage, name="long")
    begun, results = threading.Event(), []

    def objective(config):
        begun.set()
        return config["x"]

    run = threading.Thread(target=lambda: results.append(study.minimize(objective, 10_000)))
    run.start()
    assert begun.wait(10)
    browser.act("long", "stop", reason="from the page")
    run.join(20)
    assert results[0].stop.reason == "from the page"


def test_enqueued_settings_are_asked_next(browser, study):
    answer = browser.act("xgb", "enqueue", **{"p:lr": "0.001", "p:depth": "5", "p:act": '"tanh"'})
    assert answer.status_code == 303
    assert study.ask().config == {"lr": 0.001, "depth": 5, "act": "tanh"}
    browser.act("xgb", "enqueue", **{"p:lr": "", "p:depth": "7", "p:act": ""})
    assert study.ask().config["depth"] == 7


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "no value is given"),
        ({"p:depth": "99"}, "depth"),
        ({"p:none": "1"}, "none"),
        ({"p:depth": "many"}, "depth"),
        ({"p:lr": "NaN"}, "lr"),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_the_reason(browser, storage, fields, reason):
    assert reason in stopped(browser.act("xgb", "enqueue", **fields))
    assert storage.find("xgb").waiting == 0


def test_a_failed_trial_is_tried_again(browser, study):
    answer = browser.act("xgb", "retry", trial="3", back="3")
    assert answer.headers["location"] == "/studies/xgb/trials/3?done=retry"
    assert study.ask().config == study.log[3].config
    assert "running" in stopped(browser.act("xgb", "retry", trial="4"))
    assert "there is no trial" in stopped(browser.act("xgb", "retry", trial="77"))
    assert "there is no trial" in stopped(browser.act("xgb", "retry", trial="-1"))


def test_notes_are_kept_with_the_study_and_with_a_trial(browser, study):
    browser.act("xgb", "note", text="first look")
    browser.act("xgb", "note", text="too hot", trial="3", back="3")
    assert [note["text"] for note in study.attrs["notes"]] == ["first look", "too hot"]
    assert study.attrs["notes"][1]["trial"] == 3
    assert "too hot" in browser.get("/studies/xgb/trials/3").text
    assert "first look" not in browser.get("/studies/xgb/trials/3").text
    assert "first look" in browser.get("/studies/xgb").text
    assert "empty" in stopped(browser.act("xgb", "note", text="  "))
    assert "2001" in stopped(browser.act("xgb", "note", text="x" * 2001))


def test_notes_that_are_written_at_the_same_moment_are_all_kept(site, study):
    from shoestring.web.actions import act

    threads = [threading.Thread(target=act, args=(site.catalog, "xgb", "note", {"text": str(number)})) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(note["text"] for note in study.attrs["notes"]) == [str(number) for number in range(8)]


def test_the_budget_is_extended_for_the_whole_study(browser, storage):
    assert browser.act("xgb", "extend", budget="80 USD").status_code == 303
    assert storage.find("xgb").settings["budget"] | {"per_hour": None} == {
        "trials": 20,
        "seconds": None,
        "cost": 80.0,
        "unit": "USD",
        "per_hour": None,
    }
    assert "7 USD of 80 USD" in browser.get("/").text
    browser.act("xgb", "extend", budget="30")
    assert storage.find("xgb").settings["budget"]["trials"] == 30
    assert "used up already" in stopped(browser.act("xgb", "extend", budget="3"))
    assert "USD, not in EUR" in stopped(browser.act("xgb", "extend", budget="90 EUR"))
    assert "cannot be read" in stopped(browser.act("xgb", "extend", budget="many"))
    assert "missing" in stopped(browser.act("xgb", "extend", budget=""))


def test_the_budget_of_a_program_is_the_one_that_resume_uses(browser, storage, study):
    plan = {
        "command": ["python", "train.py"],
        "budget": {"trials": 9, "seconds": None, "cost": None, "unit": None, "per_hour": None},
        "workers": 2,
    }
    storage.revise(study.state.study, {"run": plan})
    browser.act("xgb", "extend", budget="25")
    stored = storage.find("xgb").settings["run"]
    assert (stored["budget"]["trials"], stored["workers"], stored["command"]) == (25, 2, ["python", "train.py"])
    assert "shoestring resume xgb" in browser.get("/studies/xgb").text


def test_an_action_that_does_not_exist_is_404(browser):
    assert browser.act("xgb", "explode").status_code == 404
    assert browser.act("none", "stop").status_code == 404
    assert browser.get("/studies/xgb/actions/stop", headers={"Origin": f"http://{HOST}"}).status_code in (404, 405)
