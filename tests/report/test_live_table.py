"""The live table: the last results, what runs, and the line below; for every width and height."""

import io
import json

import pytest
from rich.console import Console

import shoestring as st
from shoestring._format import uncertain, uncertain_amount
from shoestring.report.live_table import LiveTable, cost_error, plain_text, rich_text
from shoestring.report.progress import TerminalLine, TerminalTable, progress_for, table_in_terminal
from tests.report.test_progress import Clock, Stream

BUDGET = st.Budget(cost=40, unit="USD")
SPACE = st.Space(x=st.Float(0, 1), kind=st.Choice("a\x1b[31m", "b"))


@pytest.fixture
def clock():
    return Clock()


def made(*trials, **settings):
    study = st.Study(SPACE, st.Random(), unit="USD", **settings)
    for number, given in enumerate(trials):
        study.state.add(st.Trial(number, {"x": 0.25, "kind": "a\x1b[31m"}, **given))
    return study


def done(value=0.5, cost=2.0, **more):
    return {"state": st.State.DONE, "value": value, "cost": cost, "seconds": 3.0, **more}


def busy_study():
    """A result with folds, a failure, the best, and a running trial with a predicted cost."""
    return made(
        done(0.15, folds=(0.1, 0.2, 0.15)),
        {"state": st.State.FAILED, "cost": 1.0, "error": "CUDA out\nof memory \x1b[2J (log: a/b.err)"},
        done(0.05),
        {"suggestion": {"cost": 9.0, "gain": 0.3, "rule": {"bound": 0.012, "threshold": 0.01}}},
    )


def shown(study, width=100, height=24, **options):
    table = LiveTable()
    table.update(study.state, BUDGET)
    return plain_text(table.lines(width, height, **options)).splitlines()


def test_results_and_running_trials_are_rows_above_the_line():
    head, folds, failed, best, running, line, *facts = shown(busy_study(), 110)
    assert head.split() == ["trial", "state", "value", "cost", "time", "settings"]
    assert "  x = 0.25, kind = a" in folds
    assert "0.150 ± 0.037" in folds
    assert "2 USD" in folds
    assert failed.split()[:2] == ["1", "failed"]
    assert "log:" not in failed
    assert "0.05" in best
    assert running.split()[:2] == ["3", "running"]
    assert "about 9 USD" in running
    assert line.startswith("spent 5 USD of 40 USD | 3 trials, 1 failed | best 0.05")
    assert " | ".join(facts).startswith("bound on what is left to gain 0.012, stops at 0.01")
    assert facts[-1].endswith("expected further gain 0.0333 per USD: 0.3 for 9 USD")


@pytest.mark.parametrize("width", [120, 80, 40, 20])
def test_no_line_is_wider_than_the_terminal_and_no_character_moves_its_cursor(width):
    lines = shown(busy_study(), width, mark="* ")
    assert max(map(len, lines)) <= width
    assert "".join(lines).isprintable()
    assert any("running" in line for line in lines)
    assert ("cost" in lines[0]) == (width >= 80)


def test_a_long_fact_takes_several_lines_in_a_narrow_terminal():
    text = " ".join(shown(busy_study(), 40))
    assert "bound on what is left to gain 0.012, stops at 0.01" in text
    assert "0.0333 per USD: 0.3 for 9 USD" in text


def test_many_trials_fit_a_low_terminal():
    study = made(*[done() for _ in range(30)], *[{} for _ in range(20)])
    assert len(shown(study, height=10)) <= 10
    lines = shown(study, height=60)
    assert "and 12 more running" in lines
    assert len(lines) <= 20


def test_where_the_cost_is_time_no_time_is_shown_twice():
    study = st.Study(SPACE, st.Random())
    study.tell(study.ask(), 0.5, cost=2.0)
    assert shown(study)[0].split() == ["trial", "state", "value", "cost", "settings"]


def test_a_study_without_trials_or_a_budget_has_a_line():
    table = LiveTable()
    assert plain_text(table.lines(80)) == "starting"
    table.update(made().state, None)
    assert plain_text(table.lines(80)) == "0 trials | no result yet | spent 0 USD"


def test_predicted_costs_have_the_error_that_they_had_so_far():
    predicted = [done(cost=cost, suggestion={"cost": 10.0}) for cost in (12.0, 8.0, 12.0)]
    assert cost_error(made(*predicted[:2]).log) is None
    study = made(*predicted, {"suggestion": {"cost": 20.0}})
    assert cost_error(study.log) == pytest.approx(0.2)
    assert "about 20.0 ± 4.0 USD" in shown(study)[4]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.03123, 0.00114, "0.0312 ± 0.0011"), (0.5, None, "0.5"), (None, 1.0, "-"), (3.0, 0.0, "3"), (57.31, 12.0, "57 ± 12"),
        (1e-9, 1e-10, "1e-09 ± 1e-10"), (12345678.0, 3.0, "12345678 ± 3"), (float("inf"), 1.0, "inf"), (1.0, float("nan"), "1"),
    ],
)  # fmt: skip
def test_a_number_has_the_digits_that_its_error_leaves(value, error, text):
    assert uncertain(value, error) == text


def test_costs_have_units_on_both_sides_where_they_are_times():
    assert uncertain_amount(90.0, 12.0, "s") == "1 m 30 s ± 12 s"
    assert uncertain_amount(1.2, 0.3, "USD") == "1.20 ± 0.30 USD"
    assert uncertain_amount(1.2, None, "USD") == "1.2 USD"


def test_what_comes_from_the_study_may_be_cleaned():
    table = LiveTable(clean=lambda text: text.replace("CUDA", "***"))
    table.update(busy_study().state, BUDGET)
    assert "CUDA" not in plain_text(table.lines(200))


def test_the_study_is_read_at_most_twice_a_second(clock, monkeypatch):
    from shoestring.report import live_table

    looks, look = [], live_table.look
    monkeypatch.setattr(live_table, "look", lambda *args: looks.append(1) or look(*args))
    table, study = LiveTable(clock), busy_study()
    for _ in range(20):
        table.update(study.state, BUDGET)
        table.lines(80)
        clock.now += 0.05
    assert len(looks) == 2


# -- in a terminal ---------------------------------------------------------------------------------------------------


def test_shoestring_run_shows_the_table_in_a_terminal_and_other_runs_a_line(monkeypatch):
    Stream(monkeypatch, terminal=True)
    monkeypatch.setenv("TERM", "xterm")
    with progress_for(None) as shown:
        assert type(shown) is TerminalLine
    with table_in_terminal(), progress_for(None) as shown:
        assert type(shown) is TerminalTable


def written(clock, monkeypatch, **options):
    """What the display of a terminal of 40 columns writes."""
    stream = Stream(monkeypatch, terminal=True)
    console = Console(file=stream, force_terminal=True, width=40, height=20, **options)
    with TerminalTable(clock, console) as display:
        display.update(busy_study().state, BUDGET)
        display._live.refresh()
        return stream.getvalue()


def test_the_table_of_a_terminal_has_colours_unless_no_color_is_set(clock, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    red = "\x1b[31m    1  failed"
    assert red in written(clock, monkeypatch, color_system="standard")
    monkeypatch.setenv("NO_COLOR", "1")
    text = written(clock, monkeypatch, color_system="standard")
    assert "1  failed" in text
    assert red not in text


def test_a_text_of_rich_is_not_read_as_markup():
    study = made({"state": st.State.FAILED, "error": "[red]no[/red]"})
    table, out = LiveTable(), io.StringIO()
    table.update(study.state, BUDGET)
    Console(file=out, width=80).print(rich_text(table.lines(80)))
    assert "[red]no[/red]" in out.getvalue()


def test_facts_are_those_of_the_page():
    study = busy_study()
    facts = {each["label"]: each["text"] for each in json.loads(json.dumps(study.views("live", fit=False)))["facts"]}
    text = " ".join(shown(study, 200))
    for label in ("bound on what is left to gain", "expected further gain"):
        assert f"{label} {facts[label]}" in text
