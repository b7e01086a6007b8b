"""Tools for agents: what each does, what a wrong call is told, and that they work with the protocol's own client."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from jsonschema import Draft202012Validator

import shoestring as st
from shoestring.integrations.agent_tools import SPACE_EXAMPLE, TOOLS
from shoestring.integrations.mcp_server import BY_NAME, answered, make_server
from shoestring.storage.url import open_storage
from shoestring.web.catalog import Catalog
from tests.cli.programs import call as command
from tests.cli.programs import environment

if TYPE_CHECKING:
    from mcp import Client  # it takes seconds to import: only the tests that talk to it do so

SPACE = {"x": {"kind": "float", "low": 0, "high": 1}, "n": {"kind": "int", "low": 1, "high": 9}}


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(open_storage("memory"))


def right(catalog: Catalog, tool: str, **arguments: Any) -> dict[str, Any]:
    wrong, document = answered(catalog, tool, arguments)
    assert not wrong, document
    return json.loads(json.dumps(document, allow_nan=False))  # type: ignore[no-any-return]


def wrong(catalog: Catalog, tool: str, **arguments: Any) -> dict[str, str]:
    is_wrong, document = answered(catalog, tool, arguments)
    assert is_wrong, document
    assert set(document) == {"error", "where", "fix"}
    assert all(document.values())
    return document


def begun(catalog: Catalog, trials: int = 0, **options: Any) -> None:
    right(catalog, "create_study", **({"name": "a", "space": SPACE, "budget": 20, "method": "Random", "unit": "USD"} | options))
    for _ in range(trials):
        asked = right(catalog, "ask", study="a")
        right(catalog, "tell", study="a", number=asked["number"], value=asked["config"]["x"] + asked["config"]["n"], cost=2.0)


# -- what the tools do -------------------------------------------------------------------------------------------------


def test_an_agent_makes_a_study_asks_tells_and_looks(catalog: Catalog) -> None:
    begun(catalog, 6)
    assert [study["name"] for study in right(catalog, "list_studies")["studies"]] == ["a"]
    found = right(catalog, "summary", study="a")
    trials = right(catalog, "trials", study="a", count=4)
    assert (found["trials"], found["spent"], found["unit"], found["budget"]["trials"]) == (6, 12.0, "USD", 20)
    assert found["facts"]["spent"] == "12 USD"
    assert (len(trials["trials"]), trials["next"]) == (4, 4)
    rest = right(catalog, "trials", study="a", **{"from": 4})["trials"]
    assert found["best"]["value"] == min(trial["value"] for trial in trials["trials"] + rest)
    shares = right(catalog, "importance", study="a")["importance"]
    assert max(shares, key=shares.__getitem__) == "n"


def test_a_cost_that_seconds_cannot_stand_for_must_be_told(catalog: Catalog) -> None:
    begun(catalog, budget="3 USD")
    right(catalog, "ask", study="a")
    refused = wrong(catalog, "tell", study="a", number=0, value=1.0)
    assert (refused["where"], refused["error"]) == ("cost", "the cost is missing: this study counts costs in USD")
    assert right(catalog, "tell", study="a", number=0, value=1.0, cost=0)["cost"] == 0.0
    begun(catalog, name="b", budget="3 USD", per_hour=3600.0)
    right(catalog, "ask", study="b")
    assert right(catalog, "tell", study="b", number=0, value=1.0)["cost"] > 0


def test_what_is_expected_of_the_next_trial_is_what_ask_then_gives_and_reserves_nothing(catalog: Catalog) -> None:
    begun(catalog, 5, method="EI", seed=3)
    catalog.study("a").state.settings.initial = 4
    first, second = right(catalog, "expect_next", study="a"), right(catalog, "expect_next", study="a")
    assert first == second
    assert right(catalog, "summary", study="a")["trials"] == 5
    assert first["next"]["config"] == right(catalog, "ask", study="a")["config"]
    assert (first["stop_now"], first["unit"]) == (False, "USD")


@pytest.mark.parametrize(("budget", "unit", "reason"), [("10s", "s", "10 s"), ("10 USD", "USD", "10 USD"), (1, "USD", "1 trial")])
def test_a_study_without_budget_left_says_that_it_is_time_to_stop(
    catalog: Catalog, budget: str | int, unit: str, reason: str
) -> None:
    begun(catalog, budget=budget, unit=unit)
    assert right(catalog, "expect_next", study="a")["stop_now"] is False
    right(catalog, "tell", study="a", number=right(catalog, "ask", study="a")["number"], value=1.0, cost=100.0)
    found = right(catalog, "expect_next", study="a")
    assert (found["stop_now"], found["next"], found["method"]) == (True, None, None)
    assert found["stop"] == found["why"] == f"the budget of {reason} is used up"
    assert wrong(catalog, "ask", study="a")["where"] == "study"  # as it says


def test_where_nothing_fits_into_the_budget_it_is_time_to_stop_once_no_trial_runs(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_fits(*given: Any) -> None:
        raise st.NothingFits("no config fits")

    begun(catalog, 1, budget="10 USD")
    number = right(catalog, "ask", study="a")["number"]
    monkeypatch.setattr("shoestring.integrations.agent_tools.filter_by_budget", nothing_fits)
    found = right(catalog, "expect_next", study="a")
    assert (found["stop_now"], found["stop"], found["next"]) == (False, "no config fits", None)
    right(catalog, "tell", study="a", number=number, value=1.0, cost=1.0)
    assert right(catalog, "expect_next", study="a")["stop_now"] is True


def test_a_stopped_study_and_one_whose_space_is_exhausted_say_that_it_is_time_to_stop(catalog: Catalog) -> None:
    begun(catalog, 1)
    right(catalog, "stop", study="a", reason="good enough")
    found = right(catalog, "expect_next", study="a")
    assert (found["stop_now"], found["stop"], found["next"]) == (True, "the study was stopped: good enough", None)
    begun(catalog, name="b", space={"n": {"kind": "int", "low": 1, "high": 2}})
    for _ in range(2):
        right(catalog, "tell", study="b", number=right(catalog, "ask", study="b")["number"], value=1.0, cost=1.0)
    found = right(catalog, "expect_next", study="b")
    assert (found["stop_now"], found["next"]) == (True, None)
    assert wrong(catalog, "ask", study="b")["error"] == found["stop"]


@pytest.mark.parametrize("method", ["Hyperband", "BOCA"])
def test_a_method_that_cannot_work_in_the_space_is_refused_before_the_study_is_stored(catalog: Catalog, method: str) -> None:
    refused = wrong(catalog, "create_study", name="a", space=SPACE, budget=3, method=method)
    assert refused["where"] == "method"
    assert '{"kind": "fidelity", "low": 1, "high": 81}' in refused["fix"]
    assert right(catalog, "list_studies")["studies"] == []
    epochs = {"epochs": {"kind": "fidelity", "low": 1, "high": 81}}
    assert right(catalog, "create_study", name="a", space=SPACE | epochs, budget=3, method=method)["trials"] == 0
    assert right(catalog, "ask", study="a")["number"] == 0


def test_an_enqueued_config_is_what_comes_next(catalog: Catalog) -> None:
    begun(catalog)
    catalog.study("a").enqueue({"x": 0.5, "n": 3})
    assert right(catalog, "expect_next", study="a")["next"]["config"] == {"x": 0.5, "n": 3}


def test_no_trial_is_asked_beyond_the_budget(catalog: Catalog) -> None:
    begun(catalog, 2, budget=2)
    refused = wrong(catalog, "ask", study="a")
    assert "2 of 2 trials" in refused["error"]
    assert "larger budget" in refused["fix"]


def test_a_budget_in_cost_ends_asking_too(catalog: Catalog) -> None:
    begun(catalog, 2, budget="4 USD")
    assert wrong(catalog, "ask", study="a")["where"] == "study"


def test_a_budget_in_time_limits_the_time_of_the_evaluations(catalog: Catalog) -> None:
    right(catalog, "create_study", name="a", space=SPACE, budget="10m")
    assert right(catalog, "summary", study="a")["budget"] == {"trials": None, "seconds": None, "cost": 600.0}
    assert "in USD" in wrong(catalog, "create_study", name="b", space=SPACE, budget="10m", unit="USD")["fix"]


def test_a_stopped_study_answers_no_ask(catalog: Catalog) -> None:
    begun(catalog, 1)
    assert right(catalog, "stop", study="a", reason="good enough")["halted"] == "good enough"
    assert "good enough" in wrong(catalog, "ask", study="a")["error"]


def test_the_same_result_twice_is_one_result_and_another_is_refused(catalog: Catalog) -> None:
    begun(catalog)
    number = right(catalog, "ask", study="a", lease="30m")["number"]
    for _ in range(2):
        assert right(catalog, "tell", study="a", number=number, value=0.5, cost=1.0)["value"] == 0.5
    assert "already done" in wrong(catalog, "tell", study="a", number=number, value=0.75)["error"]


def test_folds_and_errors_are_results_too(catalog: Catalog) -> None:
    begun(catalog)
    for result in ({"folds": [0.25, 0.75]}, {"error": "out of memory"}):
        right(catalog, "tell", study="a", number=right(catalog, "ask", study="a")["number"], cost=1.0, **result)
    states = [(trial["state"], trial["value"]) for trial in right(catalog, "trials", study="a")["trials"]]
    assert states == [("done", 0.5), ("failed", None)]


# -- wrong calls -------------------------------------------------------------------------------------------------------

STUDY = {"name": "b", "space": SPACE, "budget": 3}


@pytest.mark.parametrize(
    ("tool", "arguments", "where", "fix"),
    [
        ("askk", {}, "name", "create_study"),
        ("ask", {}, "arguments", 'call ask for example with {"study": "xgb"}'),
        ("ask", {"study": "b"}, "study", "give one of a"),
        ("ask", {"study": "a", "lease": "soon"}, "lease", "30m"),
        ("ask", {"study": "a", "count": 2}, "arguments", "call ask"),
        ("tell", {"study": "a", "number": "0", "value": 1}, "number", "call tell"),
        ("tell", {"study": "a", "number": 0}, "arguments", "value"),
        ("tell", {"study": "a", "number": 99, "value": 1.0}, "number", "ask"),
        ("tell", {"study": "a", "number": 0, "value": "low"}, "value", "0.25"),
        ("trials", {"study": "a", "from": -1}, "from", "call trials"),
        ("importance", {"study": "a"}, "study", "more trials"),
        ("create_study", STUDY | {"budget": "12 parsecs"}, "budget", "20 USD"),
        ("create_study", STUDY | {"budget": 0}, "budget", "20 USD"),
        ("create_study", {"name": "b", "space": SPACE}, "arguments", "budget"),
        ("create_study", STUDY | {"space": {"x": {"kind": "float", "low": 2, "high": 1}}}, "space", '"kind": "float"'),
        ("create_study", STUDY | {"space": {"x": {"kind": "real"}}}, "space.x.kind", "call create_study"),
        ("create_study", STUDY | {"space": {"x": {"kind": "float"}}}, "space", '"low"'),
        ("create_study", STUDY | {"space": {}}, "space", "call create_study"),
        ("create_study", STUDY | {"method": "Magic"}, "method", "auto"),
        ("create_study", STUDY | {"stop": "never"}, "stop", "auto"),
        ("create_study", STUDY | {"name": "a"}, "name", "another name"),
        ("create_study", STUDY | {"name": " "}, "name", "xgb"),
        ("create_study", STUDY | {"budget": "3 USD", "unit": "EUR"}, "arguments", "correct"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_told_what_where_and_how_to_fix_it(
    catalog: Catalog, tool: str, arguments: dict[str, Any], where: str, fix: str
) -> None:
    begun(catalog)
    document = wrong(catalog, tool, **arguments)
    assert document["where"] == where
    assert fix in document["fix"]
    assert len(right(catalog, "list_studies")["studies"]) == 1  # nothing was made


def test_a_defect_of_ours_is_an_answer_too_and_ends_nothing(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Catalog, "records", lambda self: 1 / 0)
    assert "unexpected error: ZeroDivisionError" in wrong(catalog, "list_studies")["error"]


def test_every_tool_has_a_schema_that_its_own_example_fits() -> None:
    for tool in TOOLS:
        Draft202012Validator.check_schema(tool.schema)
        Draft202012Validator(tool.schema).validate(tool.example)
        assert len(tool.about) > 40
    assert {"create_study", "ask", "tell", "summary", "trials", "importance", "expect_next", "stop"} <= set(BY_NAME)


def test_no_tool_runs_a_program_deletes_or_names_a_file() -> None:
    names = {name for tool in TOOLS for name in tool.properties}
    assert not names & {"command", "program", "path", "file", "storage", "code", "url"}
    assert not {"run", "resume", "delete", "rm", "exec"} & set(BY_NAME)


# -- with the client of the protocol -----------------------------------------------------------------------------------


async def converse(client: Client) -> dict[str, Any]:
    """A short conversation: a study, three trials, a wrong call."""
    made = await client.call_tool("create_study", {"name": "a", "space": SPACE_EXAMPLE, "budget": 3, "method": "Random"})
    assert not made.is_error
    for _ in range(3):
        asked = (await client.call_tool("ask", {"study": "a"})).structured_content
        await client.call_tool("tell", {"study": "a", "number": asked["number"], "value": asked["config"]["lr"]})
    refused = await client.call_tool("ask", {"study": "a"})
    assert refused.is_error
    [content] = refused.content
    assert content.text.startswith("error: ")  # type: ignore[union-attr]
    assert "\nfix: " in content.text  # type: ignore[union-attr]
    found = await client.call_tool("summary", {"study": "a"})
    assert json.loads(found.content[0].text) == found.structured_content  # type: ignore[union-attr]
    return found.structured_content  # type: ignore[no-any-return]


def test_the_client_of_the_protocol_lists_and_calls_the_tools() -> None:
    from mcp import Client

    storage = open_storage("memory")

    async def session() -> dict[str, Any]:
        async with Client(make_server(storage, lambda text: text.replace("depth", "d***"), "1.2.3")) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == set(BY_NAME)
            assert tools["summary"].annotations.read_only_hint  # type: ignore[union-attr]
            assert tools["tell"].input_schema["required"] == ["study", "number"]
            return await converse(client)

    found = anyio.run(session)
    assert found["trials"] == 3
    assert "d***" in found["space"]  # texts are cleaned on the way out
    assert st.Study.load(storage, "a").space.names == ("lr", "depth", "act")


@pytest.mark.slow
def test_the_command_serves_the_tools_on_its_pipes(tmp_path: Any) -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    words = ["-m", "shoestring", "mcp", "--storage", str(tmp_path / "tune.db")]

    async def session() -> dict[str, Any]:
        server = StdioServerParameters(command=sys.executable, args=words, env=environment(), cwd=tmp_path)
        async with Client(stdio_client(server)) as client:
            return await converse(client)

    assert anyio.run(session)["trials"] == 3
    assert len(st.Study.load(str(tmp_path / "tune.db"), "a").history) == 3


def test_without_the_package_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoestring.cli.mcp.is_installed", lambda module: False)
    run = command("mcp")
    assert run.exit_code == 1
    assert run.stderr.splitlines()[-1] == "next: pip install 'shoestring[agents]'"
