"""The first mistakes of an Optuna user: docs/troubleshooting.md says what one sees, and here each mistake is made.

The page and the tests cannot differ. The rows are read from the page. The words in code style in the second and third column must
be what the library says; ``...`` in them stands for words that are left out. The case of a row is a function that is called like
the mistake.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import shoestring as st
from tests.cli.programs import call

PAGE = Path(__file__).parent.parent / "docs" / "troubleshooting.md"
TABLE = re.compile(r"<!-- mistakes:begin -->\n(?P<rows>.*?)<!-- mistakes:end -->", re.DOTALL)
NUMBER_OF_ROWS = 25

Case = Callable[[Path], object]
IN_PYTHON: dict[str, Case] = {}
ON_THE_COMMAND_LINE: dict[str, Case] = {}


class Row(NamedTuple):
    """A row of the table: the name of the mistake, and the words that one sees."""

    slug: str
    python: list[str]
    command_line: list[str]


def rows() -> list[Row]:
    """The table of the page. The name of a mistake is in bold."""
    table = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert table is not None
    found = []
    for line in table["rows"].splitlines()[2:]:
        mistake, python, command_line = (cell.strip() for cell in line[1:-1].split(" | "))
        title = re.match(r"\*\*(.+?)\.?\*\*", mistake)
        assert title is not None, line
        slug = re.sub(r"\W+", "-", title[1].lower()).strip("-")
        found.append(Row(slug, re.findall(r"`([^`]+)`", python), re.findall(r"`([^`]+)`", command_line)))
    return found


ROWS = rows()


def assert_seen(quotes: list[str], seen: str) -> None:
    """All quoted words are there, in their order."""
    words = " ".join(seen.split())
    for quote in quotes:
        rest = words
        for part in filter(None, (each.strip() for each in quote.split("..."))):
            assert part in rest, f"{part!r} is not in:\n{seen}"
            rest = rest.partition(part)[2]


def seen_in(action: Callable[[], object]) -> str:
    """What one sees of a call: its result, or the exception with its notes."""
    try:
        return str(action())
    except Exception as error:
        return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


def in_python(case: Case) -> Case:
    IN_PYTHON[case.__name__.replace("_", "-")] = case
    return case


def on_the_command_line(case: Case) -> Case:
    ON_THE_COMMAND_LINE[case.__name__.replace("_", "-")] = case
    return case


def test_the_page_has_as_many_mistakes_as_its_title_says_and_each_has_a_case() -> None:
    assert len(ROWS) == NUMBER_OF_ROWS
    assert {row.slug for row in ROWS} == set(IN_PYTHON)
    assert {row.slug for row in ROWS if row.command_line} == set(ON_THE_COMMAND_LINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.slug)
def test_python_says_what_the_page_says(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert row.python, "the page says nothing about Python"
    with caplog.at_level(logging.INFO, "shoestring"):
        seen = seen_in(lambda: IN_PYTHON[row.slug](tmp_path))
    assert_seen(row.python, f"{seen}\n{caplog.text}")


@pytest.mark.parametrize("row", [row for row in ROWS if row.command_line], ids=lambda row: row.slug)
def test_the_command_line_says_what_the_page_says(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOESTRING_STORAGE", raising=False)
    assert_seen(row.command_line, str(ON_THE_COMMAND_LINE[row.slug](tmp_path)))


# -- the cases ---------------------------------------------------------------------------------------------------------

SPACE = st.Space(lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12))
PARAMETERS = ("--param", "lr=log:1e-5:1e-1", "--param", "depth=int:2:12")


def train(config: dict[str, Any]) -> float:
    return abs(float(config["lr"]) - 0.01) + float(config["depth"])


def minimize(objective: Any, space: st.Space = SPACE, budget: Any = 5, **options: Any) -> st.Result:
    return st.minimize(objective, space, budget, method=st.Random(), **options)


def run(*program: str, options: tuple[str, ...] = (), parameters: tuple[str, ...] = PARAMETERS, budget: str = "5") -> str:
    """What ``shoestring run`` prints."""
    given = ("--budget", budget) if budget else ()
    return command("run", *parameters, "--method", "random", *given, *options, "--", *program)


def command(*words: str) -> str:
    return call(*words).output


TRAINED = ("echo", "{depth}")  # a program that prints one of its parameters as its result


def call_with_parameters(lr: float, depth: int, width: int) -> float:
    return lr + depth + width


@in_python
def suggest_is_called(folder: Path) -> object:
    return minimize(lambda trial: trial.suggest_float("lr", 1e-5, 1e-1))


@in_python
def nothing_is_returned(folder: Path) -> object:
    def forgetful(config: dict[str, Any]) -> None:
        train(config)

    return minimize(forgetful)


@on_the_command_line
def nothing_is_returned(folder: Path) -> object:  # noqa: F811
    return run("true")


@in_python
def more_than_a_number_is_returned(folder: Path) -> object:
    returned: tuple[Any, ...] = ((0.3, "model"), "0.93")
    return "\n".join(seen_in(lambda each=each: minimize(lambda config: each)) for each in returned)  # type: ignore[misc]


@on_the_command_line
def more_than_a_number_is_returned(folder: Path) -> object:  # noqa: F811
    return run("echo", "loss", "0.3", "{lr}", "{depth}")


@in_python
def a_name_is_not_in_the_space(folder: Path) -> object:
    return minimize(lambda config: config["learning_rate"])


@on_the_command_line
def a_name_is_not_in_the_space(folder: Path) -> object:  # noqa: F811
    return run("echo", "{learning_rate}", "{depth}")


@in_python
def the_objective_cannot_be_called(folder: Path) -> object:
    return minimize(train({"lr": 0.01, "depth": 3}))


@on_the_command_line
def the_objective_cannot_be_called(folder: Path) -> object:  # noqa: F811
    return run(sys.executable, "-S", "trian.py", "{lr}", "{depth}")


@in_python
def the_objective_takes_other_parameters(folder: Path) -> object:
    return minimize(call_with_parameters)


@on_the_command_line
def the_objective_takes_other_parameters(folder: Path) -> object:  # noqa: F811
    return run("echo", "{lr}")


@in_python
def an_import_is_missing(folder: Path) -> object:
    return minimize(lambda config: np.abs(config["lr"]))  # type: ignore[name-defined]  # noqa: F821


@on_the_command_line
def an_import_is_missing(folder: Path) -> object:  # noqa: F811
    (folder / "train.py").write_text("import pandsa")
    return run(sys.executable, "-S", "train.py", "{lr}", "{depth}")


@in_python
def the_bounds_are_reversed(folder: Path) -> object:
    return st.Float(1e-1, 1e-5)


@on_the_command_line
def the_bounds_are_reversed(folder: Path) -> object:  # noqa: F811
    return run("echo", "{lr}", parameters=("--param", "lr=1e-1:1e-5"))


@in_python
def a_log_scale_starts_at_zero(folder: Path) -> object:
    return seen_in(lambda: st.Space(lr=st.Float(0, 1, log=True))) + seen_in(lambda: st.Space(lr=st.Float(1, 9, log=True, step=2)))


@on_the_command_line
def a_log_scale_starts_at_zero(folder: Path) -> object:  # noqa: F811
    return run("echo", "{lr}", parameters=("--param", "lr=log:0:1")) + run("echo", "{lr}", parameters=("--param", "lr=log:1:9:2"))


@in_python
def the_options_are_a_list(folder: Path) -> object:
    return st.Choice(["relu", "tanh"])


@in_python
def the_options_are_classes(folder: Path) -> object:
    return st.Space(lock=st.Choice(threading.Event, threading.Barrier))


@in_python
def the_budget_is_named_as_in_optuna(folder: Path) -> object:
    wrong: tuple[dict[str, Any], ...] = ({"n_trials": 20}, {"timeout": 600}, {"budget": 600.0})
    return "\n".join(seen_in(lambda given=given: st.minimize(train, SPACE, **given)) for given in wrong)  # type: ignore[misc]


@on_the_command_line
def the_budget_is_named_as_in_optuna(folder: Path) -> object:  # noqa: F811
    return run(*TRAINED, "{lr}", budget="") + run(*TRAINED, "{lr}", budget="", options=("--n-trials", "20"))


@in_python
def a_sampler_is_the_method(folder: Path) -> object:
    class TPESampler:
        """Stands for that of Optuna, which takes a second to import."""

    return "\n".join(seen_in(lambda given=given: st.Study(SPACE, method=given)) for given in (TPESampler(), "bayes"))


@on_the_command_line
def a_sampler_is_the_method(folder: Path) -> object:  # noqa: F811
    return run(*TRAINED, "{lr}", options=("--method", "TPESampler"))


@in_python
def the_direction_changes(folder: Path) -> object:
    return minimize(train).study.maximize(train, 6)  # type: ignore[attr-defined]


@on_the_command_line
def the_direction_changes(folder: Path) -> object:  # noqa: F811
    run("echo", "{depth}", parameters=PARAMETERS[2:], budget="2")
    return run("echo", "{depth}", parameters=PARAMETERS[2:], options=("--maximize",))


@in_python
def the_second_run_does_nothing(folder: Path) -> object:
    minimize(train, storage="tune.db")
    return minimize(train, storage="tune.db")


@on_the_command_line
def the_second_run_does_nothing(folder: Path) -> object:  # noqa: F811
    run("echo", "{depth}", parameters=PARAMETERS[2:], budget="2")
    return run("echo", "{depth}", parameters=PARAMETERS[2:], budget="2")


@in_python
def two_objectives_share_a_storage(folder: Path) -> object:
    def other(config: dict[str, Any]) -> float:
        return -train(config)

    return [minimize(objective, storage="tune.db").study for objective in (train, other)]


@on_the_command_line
def two_objectives_share_a_storage(folder: Path) -> object:  # noqa: F811
    for name in ("train.py", "other.py"):
        (folder / name).write_text("import sys; print(sys.argv[1])")
        run(sys.executable, "-S", name, "{depth}", parameters=PARAMETERS[2:], budget="1")
    return command("ls")


@in_python
def the_space_has_changed(folder: Path) -> object:
    minimize(train, storage="tune.db")
    return minimize(train, st.Space(lr=st.Float(1e-6, 1e-1, log=True), depth=st.Int(2, 12)), storage="tune.db")


@on_the_command_line
def the_space_has_changed(folder: Path) -> object:  # noqa: F811
    run("echo", "{depth}", parameters=PARAMETERS[2:], budget="1")
    return run("echo", "{depth}", parameters=("--param", "depth=int:2:16"))


@in_python
def the_study_does_not_exist(folder: Path) -> object:
    missing = seen_in(lambda: st.Study.load("tunes.db"))
    assert not (folder / "tunes.db").exists()
    minimize(train, storage="tune.db")
    return missing + "\n" + seen_in(lambda: st.Study.load("tune.db", "trian"))


@on_the_command_line
def the_study_does_not_exist(folder: Path) -> object:  # noqa: F811
    missing = command("show", "--storage", "tunes.db")
    run("echo", "{depth}", parameters=PARAMETERS[2:], budget="1")
    return missing + command("show", "trian")


@in_python
def an_enqueued_config_does_not_fit(folder: Path) -> object:
    study = st.Study(SPACE)
    wrong = ({"lr": 0.5, "depth": 3}, {"learning_rate": 0.01})
    return "\n".join(seen_in(lambda given=given: study.enqueue(given)) for given in wrong)  # type: ignore[misc]


@on_the_command_line
def an_enqueued_config_does_not_fit(folder: Path) -> object:  # noqa: F811
    run("echo", "{depth}", parameters=PARAMETERS[2:], budget="1")
    return command("enqueue", "echo", "depth=99") + command("enqueue", "echo", "deep=3")


@in_python
def trials_are_pruned_as_in_optuna(folder: Path) -> object:
    def reports(config: dict[str, Any], trial: Any) -> float:
        trial.report(0.3, 1)  # there is no fidelity
        return 0.3

    def prunes(config: dict[str, Any], trial: Any) -> float:
        return 0.3 if trial.should_prune() else 0.2

    class TrialPruned(Exception):
        """Stands for that of Optuna."""

    def raises(config: dict[str, Any], trial: Any) -> float:
        raise TrialPruned

    return "\n".join(seen_in(lambda objective=objective: minimize(objective)) for objective in (reports, prunes, raises))


@in_python
def nan_is_returned(folder: Path) -> object:
    return minimize(lambda config: float("nan") if config["depth"] > 7 else 0.1)


@on_the_command_line
def nan_is_returned(folder: Path) -> object:  # noqa: F811
    return run("echo", "nan")


@in_python
def the_objective_holds_a_lock(folder: Path) -> object:
    lock = threading.Lock()
    return minimize(lambda config: train(config) + lock.locked(), workers=2)


@in_python
def results_are_read_as_in_optuna(folder: Path) -> object:
    result = minimize(train)
    return "\n".join(
        seen_in(look)
        for look in (
            lambda: result.study.best_params,  # type: ignore[attr-defined]
            lambda: result.best_value,  # type: ignore[attr-defined]
            lambda: st.create_study,
        )
    )


@on_the_command_line
def results_are_read_as_in_optuna(folder: Path) -> object:  # noqa: F811
    return command("best-trial", "--study-name", "train")


@in_python
def a_conditional_parameter_is_read_where_it_does_not_apply(folder: Path) -> object:
    space = st.Space(optimizer=st.Choice("adam", "sgd"), momentum=st.Float(0, 1, when={"optimizer": "sgd"}))
    return minimize(lambda config: config["momentum"], space, budget=8)


@in_python
def a_trial_is_told_twice(folder: Path) -> object:
    study = st.Study(SPACE, method=st.Random())
    trial = study.ask()
    study.tell(trial, 0.3)
    return study.tell(trial, 0.2)


@on_the_command_line
def a_trial_is_told_twice(folder: Path) -> object:  # noqa: F811
    run("echo", "{depth}", parameters=PARAMETERS[2:], budget="1")
    return command("tell", "echo", "0", "0.01")
