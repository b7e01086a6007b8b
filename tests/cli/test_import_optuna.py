"""``import optuna``: databases that Optuna wrote, read without Optuna."""

from __future__ import annotations

import ast
import contextlib
import json
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import shoestring as st
from shoestring.errors import StudyError
from shoestring.integrations import optuna_database
from shoestring.integrations.optuna_database import read_study
from tests.cli.programs import call, read

optuna = pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two Optuna studies: one with every kind of parameter, one with two objectives."""
    path = tmp_path_factory.mktemp("optuna") / "optuna.db"
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        url = f"sqlite:///{path}"
        sampler = optuna.samplers.RandomSampler(seed=0)
        study = optuna.create_study(storage=url, study_name="xgb", direction="maximize", sampler=sampler)
        study.optimize(objective, n_trials=20, catch=ValueError)
        study.ask()
        study.enqueue_trial({"lr": 0.1})
        optuna.create_study(storage=url, study_name="two", directions=["minimize", "maximize"])
        study._storage.remove_session()
        study._storage._backend.engine.dispose()
    return path


def objective(trial: Any) -> float:
    booster = trial.suggest_categorical("booster", ["dart", "gbtree", None])
    layers = trial.suggest_int("layers", 1, 3)
    units = [trial.suggest_int(f"units{i}", 16, 128, step=16) for i in range(layers)]
    value = trial.suggest_float("lr", 1e-5, 1e-1, log=True) + trial.suggest_int("n", 1, 1000, log=True)
    if booster == "dart":
        value += trial.suggest_float("drop", 0, 0.5, step=0.1)
    trial.suggest_int("constant", 3, 3)
    if trial.number == 3:
        raise ValueError
    if trial.number == 4:
        raise optuna.TrialPruned
    return float("inf") if trial.number == 5 else value + sum(units)


def test_the_space_is_inferred_from_the_trials(database: Path) -> None:
    found = read_study(f"sqlite:///{database}", "xgb")
    assert found.direction == "maximize"
    expected = st.Space(
        booster=st.Choice("dart", "gbtree", None),
        layers=st.Int(1, 3),
        units0=st.Int(16, 128, step=16),
        lr=st.Float(1e-5, 1e-1, log=True),
        n=st.Int(1, 1000, log=True),
        units1=st.Int(16, 128, step=16, when={"layers": [2, 3]}),
        units2=st.Int(16, 128, step=16, when={"layers": 3}),
        drop=st.Float(0, 0.5, step=0.1, when={"booster": "dart"}),
    )
    assert {name: found.space[name].to_dict() for name in found.space} == {name: expected[name].to_dict() for name in expected}
    assert any("constant is always 3" in note for note in found.notes)
    assert any("drop is taken to be drawn only when booster is 'dart'" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "attributes", "kind", "fields"),
    [
        ("UniformDistribution", {"low": 0.0, "high": 1.0}, "float", {"log": False, "step": None}),
        ("LogUniformDistribution", {"low": 0.1, "high": 1.0}, "float", {"log": True, "step": None}),
        ("DiscreteUniformDistribution", {"low": 0.0, "high": 1.0, "q": 0.25}, "float", {"log": False, "step": 0.25}),
        ("IntUniformDistribution", {"low": 1, "high": 9, "step": 2}, "int", {"log": False, "step": 2}),
        ("IntLogUniformDistribution", {"low": 1, "high": 9, "step": 1}, "int", {"log": True, "step": None}),
    ],
)
def test_old_distributions_are_known(name: str, attributes: dict[str, Any], kind: str, fields: dict[str, Any]) -> None:
    text = json.dumps({"name": name, "attributes": attributes})
    expected = {"low": attributes["low"], "high": attributes["high"], **fields}
    assert optuna_database.read_distribution(text, "x") == (kind, expected)


def test_a_study_is_imported_with_its_values(here: Path, database: Path) -> None:
    before = database.read_bytes()
    run = call("import", "optuna", f"sqlite:///{database}", "xgb")
    assert run.exit_code == 0, run.output
    assert "19 trials, 2 failed" in run.stdout
    assert "1 pruned, 1 running, 1 waiting" in run.stdout
    assert run.stdout.splitlines()[-1] == "next: shoestring ask xgb"
    assert database.read_bytes() == before
    original = optuna.load_study(study_name="xgb", storage=f"sqlite:///{database}")
    complete = [trial for trial in original.trials if trial.state.name == "COMPLETE" and trial.number != 5]
    trials = [trial for trial in read("export", "xgb")["trials"] if trial["state"] == "done"]
    assert [trial["value"] for trial in trials] == [trial.value for trial in complete]
    for mine, theirs in zip(trials, complete, strict=True):
        assert mine["config"] == pytest.approx({key: value for key, value in theirs.params.items() if key != "constant"})
        assert mine["cost"] == pytest.approx(theirs.duration.total_seconds())
    assert read("best", "xgb")["value"] == max(trial.value for trial in complete)
    assert set(read("ask", "xgb")["config"]) >= {"booster", "layers", "lr"}


def test_a_second_import_needs_another_name(here: Path, database: Path) -> None:
    words = ["import", "optuna", str(database), "xgb"]
    assert read(*words)["imported"] == {"done": 17, "failed": 2, "pruned": 1, "running": 1, "waiting": 1}
    run = call(*words)
    assert run.exit_code == 1
    assert run.stderr.splitlines()[-1] == f"next: shoestring import optuna {database} xgb --name xgb-2"
    assert call(*words, "--name", "xgb-2").exit_code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sqlite:///none.db"], "there is no file none.db"),
        (["DATABASE"], "which study? there are 'xgb', 'two'"),
        (["DATABASE", "abc"], "there is no study 'abc'; there are 'xgb', 'two'"),
        (["DATABASE", "x' OR 1=1 --"], "there is no study"),
        (["DATABASE", "two"], "2 objectives"),
        (["text.db"], "not a database of Optuna's"),
        (["empty.db"], "not a database of Optuna's"),
        (["old.db"], "schema 9 is not known"),
        (["nosuch://user:secret@host/db"], "a database at nosuch://... cannot be read here"),
    ],
)
def test_the_error_says_why_a_study_cannot_be_imported(here: Path, database: Path, words: list[str], says: str) -> None:
    (here / "text.db").write_text("hello")
    sqlite3.connect(here / "empty.db").close()
    with sqlite3.connect(here / "old.db") as old:
        old.executescript("CREATE TABLE version_info (schema_version INTEGER); INSERT INTO version_info VALUES (9)")
    old.close()
    run = call("import", "optuna", *(str(database) if word == "DATABASE" else word for word in words))
    assert run.exit_code == 1, run.output
    assert says in run.stderr
    assert "secret" not in run.output
    assert "next: shoestring import" in run.stderr
    assert not (here / "shoestring.db").exists()


def test_a_bomb_in_a_cell_does_not_run(here: Path, database: Path) -> None:
    """Distributions are parsed as JSON; nothing in the database is unpickled or evaluated."""
    import pickle
    import shutil

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (open, (str(here / "boom"), "w"))

    shutil.copy(database, here / "bomb.db")
    data = pickle.dumps(Bomb())
    connection = sqlite3.connect(here / "bomb.db")
    for table in ("trial_system_attributes", "study_system_attributes", "trial_user_attributes"):
        owner = "study_id" if table.startswith("study") else "trial_id"
        connection.execute(f"INSERT INTO {table} ({owner}, key, value_json) VALUES (1, 'cma:0', ?)", (data,))
    connection.commit()
    assert call("import", "optuna", "bomb.db", "xgb").exit_code == 0
    connection.execute("UPDATE trial_params SET distribution_json = ? WHERE param_id = 1", ("__import__('os')",))
    connection.commit()
    connection.close()
    run = call("import", "optuna", "bomb.db", "xgb", "--name", "again")
    assert run.exit_code == 1
    assert "cannot be read" in run.stderr
    assert not (here / "boom").exists()


FORGED = ["x", 1e308, None, "[]", '{"name": "IntDistribution", "attributes": {}}', "[" * 99_999]


def test_a_damaged_database_is_an_error_and_never_a_raw_traceback(tmp_path: Path, database: Path) -> None:
    good, path, failures = database.read_bytes(), tmp_path / "optuna.db", 0
    tables = ["version_info", "studies", "study_directions", "trials", "trial_params", "trial_values"]
    for table in tables:
        with closing(sqlite3.connect(database)) as connection:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        for column in columns:
            for forged in FORGED:
                path.write_bytes(good)
                with closing(sqlite3.connect(path)) as connection, contextlib.suppress(sqlite3.Error):
                    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = 1", (forged,))
                    connection.commit()
                try:
                    read_study(f"sqlite:///{path}", "xgb")
                except StudyError:
                    failures += 1
    assert failures > 30


def test_a_torn_database_is_an_error(tmp_path: Path, database: Path) -> None:
    path = tmp_path / "optuna.db"
    for size in (0, 100, 4096, 20_000):
        path.write_bytes(database.read_bytes()[:size])
        with pytest.raises(StudyError, match="not a database of Optuna's, or it cannot be read"):
            read_study(f"sqlite:///{path}", "xgb")


def test_neither_optuna_nor_pickle_is_needed() -> None:
    imported = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(Path(optuna_database.__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert not {"optuna", "pickle", "cloudpickle"} & imported
