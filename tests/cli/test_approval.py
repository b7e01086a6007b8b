"""What ``resume`` may run: only what the user has run before, whatever the database says."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import shoestring as st
from shoestring.cli import approval, console
from shoestring.cli.execute_plan import ApprovedObjective
from shoestring.program import CommandTemplate
from shoestring.program.command import Cancelled
from shoestring.program.result_reader import Logs
from shoestring.storage import open_storage
from tests.cli.programs import QUICK, begin, call, log_folder, read, script


@pytest.fixture(autouse=True)
def configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty configuration folder."""
    folder = tmp_path_factory.mktemp("configuration")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return folder


def where() -> str:
    return os.environ.get("SHOESTRING_STORAGE", "shoestring.db")


def change(name: str = "train", **settings: Any) -> None:
    """Change the settings of a study past the command line, as somebody with access to the database can."""
    storage = open_storage(where())
    record = storage.find(name)
    assert record is not None
    storage.revise(record.id, {key: value(record.settings.get(key)) for key, value in settings.items()})
    storage.close_connections()


def forged(here: Path) -> dict[str, Any]:
    """A plan with a program of its own, and a log folder in which that program is noted as the user's own."""
    command = ["touch", "boom-{x}-{y}"]
    logs = here / "stranger"
    logs.mkdir()
    (logs / "command.json").write_text(json.dumps(command))
    return {"command": command, "logs": str(logs)}


def test_a_program_of_a_stranger_does_not_run(anywhere: Path) -> None:
    begin(anywhere, trials=1)
    more = forged(anywhere)
    change(run=lambda run: {**run, **more})
    run = call("resume", "train", "--budget", "2")
    assert run.exit_code == 1
    assert "touch 'boom-{x}-{y}'" in run.stderr
    assert "this has changed: its program, the file of its program" in run.stderr
    assert run.stderr.splitlines()[-1] == "next: shoestring resume train --yes"
    assert list(anywhere.glob("boom*")) == []
    assert call("resume", "train", "--budget", "2", "--yes").exit_code == 0
    assert len(list(anywhere.glob("boom*"))) == 1
    assert sorted(path.name for path in (anywhere / "stranger").iterdir()) == ["command.json"]  # no logs where the database says
    again = call("resume", "train", "--budget", "3")  # --yes has approved it
    assert "you have not run" not in again.stderr
    assert len(list(anywhere.glob("boom*"))) == 2


def test_a_database_from_elsewhere_runs_nothing(anywhere: Path, configuration: Path) -> None:
    begin(anywhere, trials=1)
    for path in configuration.rglob("*.json"):
        path.unlink()  # as on another machine
    run = call("resume", "--budget", "2", "--json")
    assert run.exit_code == 1
    assert "has a program that you have not run from here\n" in json.loads(run.stdout)["error"]
    assert read("show")["trials"] == 1


def test_an_option_that_is_forged_into_the_space_does_not_run(anywhere: Path) -> None:
    command = ["sh", "-c", "echo {opt} > seen; echo 1"]
    assert call("run", "--param", "opt=a,b", *QUICK, "--budget", "1", "--name", "sh", "--", *command).exit_code == 0

    def worse(space: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(space)
        assert '"a", "b"' in text
        return dict(json.loads(text.replace('"a", "b"', '"a", "b", "$(touch boom)"')))

    change("sh", space=worse)
    run = call("resume", "sh", "--budget", "9")
    assert run.exit_code == 1
    assert "this has changed: its space" in run.stderr
    assert "one of a, b, $(touch boom)" in run.stderr
    assert not (anywhere / "boom").exists()


def test_settings_outside_of_the_approved_space_do_not_reach_the_program(tmp_path: Path) -> None:
    """Another process may extend the space while a run goes on."""
    template = CommandTemplate(("touch", str(tmp_path / "ran-{opt}")), st.Space(opt=st.Choice("a", "b")))
    objective = ApprovedObjective(template, Logs(tmp_path), "sh")

    class Live:
        number = 3

    with pytest.raises(Cancelled):
        objective.evaluate({"opt": "$(touch boom)"}, Live())  # type: ignore[arg-type]
    assert "trial 3 is outside of it" in str(objective.refused)
    assert list(tmp_path.iterdir()) == []


def refused(words: tuple[str, ...] = ("resume", "--budget", "1")) -> str | None:
    """Why a run is not approved; None if it is."""
    run = call(*words)
    assert run.exit_code in (0, 1), run.output
    return run.stderr if "you have not run from here" in run.stderr else None


def test_what_decides_which_code_runs_has_to_be_the_same(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert begin(here, trials=1).exit_code == 0
    assert refused() is None
    monkeypatch.setenv("SOME_VARIABLE", "1")
    assert refused() is None
    for variable in ("PYTHONPATH", "LD_PRELOAD"):
        with monkeypatch.context() as patch:
            patch.setenv(variable, "/tmp/elsewhere")
            assert "this has changed: the environment\n" in str(refused())
    other = here / "elsewhere"
    other.mkdir()
    with monkeypatch.context() as patch:
        patch.chdir(other)
        there = ("resume", "--budget", "1", "--storage", "../shoestring.db")
        assert "this has changed: the working folder\n" in str(refused(there))
    change(run=lambda run: {**run, "command": ["python3", *run["command"][1:]]})
    assert call("resume", "--budget", "1", "--yes").exit_code == 0
    assert refused() is None
    (here / "bin" / "python3").symlink_to(sys.executable)  # the same word now means another file
    assert "this has changed: the file of its program\n" in str(refused())


def test_a_removed_and_remade_study_is_not_the_approved_one(here: Path) -> None:
    begin(here, trials=1)
    approved = read("show")
    assert call("rm", "train", "--yes").exit_code == 0
    remade = st.Study(st.Space(x=st.Float(0, 1), y=st.Float(0, 1)), storage="shoestring.db", name="train")
    change(run=lambda _: approved["run"])
    assert remade.id != approved["id"]
    assert refused() is not None


def test_an_approval_is_the_users_alone(here: Path, configuration: Path) -> None:
    begin(here, trials=1)
    [file] = configuration.rglob("*.json")
    folders = [file.parent, file.parent.parent]
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, *folders)] == [0o600, 0o700, 0o700]
    assert file.name.startswith(read("show")["id"])
    assert refused() is None
    for path, mode in ((file, 0o620), (file, 0o602), (file.parent, 0o777)):
        before = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode)
        assert refused() is not None
        path.chmod(before)
    assert refused() is None
    noted = json.loads(file.read_text())
    file.write_text(json.dumps({**noted, "digest": "0" * 64}))
    assert refused() is not None
    file.write_text("{")
    assert refused() is not None


def test_an_approval_that_cannot_be_stored_is_reported(here: Path, configuration: Path) -> None:
    (configuration / "shoestring").write_text("a file")
    run = begin(here, trials=1)
    assert run.exit_code == 0
    assert "your approval of this program could not be stored" in run.stderr


@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_it_asks(here: Path, configuration: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    begin(here, trials=1)
    for path in configuration.rglob("*.json"):
        path.unlink()
    monkeypatch.setattr(console, "can_ask", lambda: True)
    run = call("resume", "--budget", "2", input=f"{answer}\n")
    assert "Run it? [y/N]" in run.stderr
    assert "train.py '{x}' '{y}'" in run.stderr
    assert (run.exit_code, read("show")["trials"]) == ((0, 2) if answer == "y" else (1, 1))
    kept = call("rm", "train", input="n\n")
    assert kept.exit_code == 1
    assert "Delete it? [y/N]" in kept.stderr
    assert call("rm", "train", input="y\n").exit_code == 0
    assert read("ls") == []


def test_a_study_from_before_there_were_identities_is_approved_once(here: Path) -> None:
    begin(here, trials=1)
    change(id=lambda _: None)
    assert refused() is not None
    assert call("resume", "--budget", "2", "--yes").exit_code == 0
    assert read("show")["id"] is not None
    assert refused() is None


def test_a_plan_that_cannot_be_read_is_an_error(here: Path) -> None:
    begin(here, trials=1)
    for command in ("touch boom", [], [1], None):
        change(run=lambda run, command=command: {**run, "command": command})
        run = call("resume", "--yes")
        assert run.exit_code == 1
        assert "cannot be read" in run.stderr


def test_the_configuration_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", given)
        assert approval.approval_folder() == tmp_path / ".config" / "shoestring" / "approvals"


# -- folders -----------------------------------------------------------------------------------------------------------

CONTINUES = """
import os, pathlib
state = pathlib.Path(os.environ["SHOESTRING_CHECKPOINT_DIR"], "state")
if not state.exists():
    state.write_text(pathlib.Path("data").read_text())
print(state.read_text())
"""


def train(here: Path, data: str, *words: str) -> list[float]:
    """The values of a run whose program continues from what it finds in its checkpoint folder."""
    (here / "data").write_text(data)
    program = [*script(here, CONTINUES), "{n}"]
    run = call("run", "--param", "n=1,2", *QUICK, "--budget", "2", *words, "--json", "--", *program)
    assert run.exit_code == 0, run.output
    document = json.loads(run.stdout)
    more = ["--storage", words[words.index("--storage") + 1]] if "--storage" in words else []
    return [trial["value"] for trial in read("export", document["study"], *more)["trials"]]


def test_no_study_continues_from_the_checkpoints_of_another(anywhere: Path) -> None:
    assert train(anywhere, "1", "--name", "net 1") == [1.0, 1.0]
    assert train(anywhere, "2", "--name", "net/1") == [2.0, 2.0]
    assert train(anywhere, "3", "--name", "net 1", "--storage", "other.db") == [3.0, 3.0]
    storage = open_storage(where())
    record = storage.find("net 1")
    assert record is not None
    storage.delete(record.id)  # past the command line, so that the folder stays
    storage.close_connections()
    assert train(anywhere, "4", "--name", "net 1") == [4.0, 4.0]
    assert len(list((anywhere / "shoestring-logs").iterdir())) == 4
    assert train(anywhere, "5", "--name", "a", "--logs", "mine") == [5.0, 5.0]
    with pytest.raises(AssertionError, match=r"mine is not of this study: it belongs to study [0-9a-f-]{36}; give another"):
        train(anywhere, "6", "--name", "b", "--logs", "mine")


def test_rm_removes_the_folder_of_the_study_and_no_other(anywhere: Path) -> None:
    train(anywhere, "1", "--name", "a")
    train(anywhere, "1", "--name", "b", "--logs", "mine")
    train(anywhere, "1", "--name", "c")
    (anywhere / "mine" / "notes").write_text("keep")
    (anywhere / "mine" / "checkpoints" / "notes").write_text("keep")
    folder = log_folder(anywhere, "a")
    asked = call("rm", "a")
    assert asked.exit_code == 1
    assert f"its logs and checkpoints in shoestring-logs/{folder.name} and cannot be undone; add --yes" in asked.stderr
    assert folder.is_dir()
    (log_folder(anywhere, "c") / "study.json").write_text('{"study": "another"}')
    assert call("rm", "a", "--yes").stdout.startswith(f"study a is deleted, with shoestring-logs/{folder.name}\n")
    assert not folder.exists()
    assert read("rm", "b", "--yes")["folders"] == ["mine"]
    assert sorted(str(path.relative_to(anywhere / "mine")) for path in (anywhere / "mine").rglob("*")) == (
        ["checkpoints", "checkpoints/notes", "notes"]
    )
    assert read("rm", "c", "--yes")["folders"] == []
    assert (log_folder(anywhere, "c") / "trial-00000.out").is_file()


def test_resume_and_show_find_the_log_folder_that_the_user_chose(here: Path) -> None:
    train(here, "1", "--name", "a", "--logs", "mine")
    assert call("resume", "a", "--budget", "3").exit_code == 0
    assert read("show", "a", "0")["logs"]["out"] == "mine/trial-00000.out"
    assert not (here / "shoestring-logs").exists()
    change("a", run=lambda run: {**run, "logs": "/etc"})
    assert read("show", "a", "0")["logs"]["out"] == "mine/trial-00000.out"


def test_only_the_user_may_read_what_a_run_writes(here: Path) -> None:
    before = os.umask(0o022)
    try:
        program = [*script(here, CONTINUES + "\nopen(os.environ['SHOESTRING_RESULT'], 'w').write('1')"), "{n}"]
        (here / "data").write_text("1")
        assert call("run", "--param", "n=1,2", *QUICK, "--budget", "2", "--", *program).exit_code == 0
        assert call("export", "train", "-o", "out.csv").exit_code == 0
        assert call("db", "backup", "copy.db").exit_code == 0
    finally:
        os.umask(before)
    made = [*(here / "shoestring-logs").rglob("*"), here / "shoestring-logs", *here.glob("*.db*"), here / "out.csv"]
    own = [path for path in made if path.name != "state"]  # that one is the program's own, in a folder that nobody else may enter
    assert {path.name for path in own} >= {"trial-00000.result", "trial-00000.out", "trial-00000.err", "study.json", "copy.db"}
    assert [path for path in own if stat.S_IMODE(path.stat().st_mode) != (0o700 if path.is_dir() else 0o600)] == []
