"""What all commands share: help, exit codes, errors, passwords, completion; and ``doctor`` and ``db``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import shoestring as st
from shoestring.cli import doctor as doctor_module
from shoestring.cli import show as show_module
from shoestring.cli.console import hide_passwords, sqlite_path, storage_arguments
from shoestring.cli.main import main
from tests.cli.programs import QUICK, SPACE, begin, call, environment, read, script
from tests.storage.test_addresses import LEAKY

SECRET = "s3cr:t%40"
ADDRESS = f"postgresql://me:{SECRET}@127.0.0.1:1/db"  # no server listens there


def test_every_command_has_help_with_a_first_line() -> None:
    text = call("--help").output
    for name, command in main.commands.items():
        assert f"  {name} " in text
        shown = call(name, "--help")
        assert shown.exit_code == 0
        assert len(command.get_short_help_str(200)) > 10
        if name not in ("completion", "import", "db", "mcp"):  # the output of mcp is a protocol
            assert "--json" in shown.output
    wanted = "run resume ls top mcp show best ask tell enqueue stop export import replay doctor db completion demo"
    assert set(wanted.split()) <= set(main.commands)


def test_exit_codes_are_in_the_help() -> None:
    for code in ("0 success", "1 failure", "2 wrong command line", "130 interrupted", "143"):
        assert code in call("--help").output


def test_importing_shoestring_does_not_import_the_command_line_and_help_needs_no_database() -> None:
    script = "import sys, shoestring; assert 'click' not in sys.modules; import shoestring.cli.main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "click" in loaded
    assert not {"sqlalchemy", "sklearn", "rich", "optuna", "matplotlib"} & set(loaded)


def test_an_unexpected_error_is_shown_without_passwords(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(here, trials=1)

    def broken(*words: object, **options: object) -> None:
        raise RuntimeError(f"could not reach {ADDRESS}")

    monkeypatch.setattr(show_module, "table_text", broken)
    run = call("ls")
    assert run.exit_code == 1
    assert "Traceback" in run.stderr
    assert run.stderr.splitlines()[-1] == "next: shoestring doctor"
    assert SECRET not in run.output
    assert "me:***@127.0.0.1" in run.stderr


@pytest.mark.parametrize("address", LEAKY)
def test_no_secret_of_an_address_is_printed(here: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoestring.storage.postgres.PostgresServer.first_wait_seconds", 0.0)
    said = [call("ls", "--storage", address), call("doctor", "--json", f"--storage={address}")]
    said += [call("import", "optuna", address), call("show", address), call("show", "a", address)]
    said.append(call("ls", f"--storge={address}"))
    if "\0" not in address:
        monkeypatch.setenv("SHOESTRING_STORAGE", address)
        said.append(call("show", "a"))
    assert [run.output for run in said if "s3cret" in run.output] == []
    assert 0 not in [run.exit_code for run in said]
    assert list(here.iterdir()) == []


def test_names_that_are_too_long_are_an_error_without_a_traceback_and_take_no_time(here: Path) -> None:
    begin(here, trials=1)
    long, start = "x" * 300, time.monotonic()
    lines = [["db", "backup", long], ["export", "-o", long], ["export", "-o", f"{long}/a.csv"], ["import", "optuna", long]]
    for words in (*lines, ["ls", "--storage", long], ["show", "x" * 100_000], ["show", "a.b-" * 25_000]):
        run = call(*words)
        assert run.exit_code == 1
        assert "Traceback" not in run.output
        assert "unexpected" not in run.output
    assert "cannot be used: File name too long; give another file or folder" in call(*lines[1]).stderr
    assert time.monotonic() - start < 10.0  # on a busy machine; a search for addresses in a long name took minutes


@pytest.mark.parametrize("words", [["ls"], ["ls", "--json"], ["doctor"], ["doctor", "--json"], ["show", "a"], ["db", "check"]])
def test_a_password_appears_nowhere(here: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the server cannot be reached."""
    monkeypatch.setattr("shoestring.storage.postgres.PostgresServer.first_wait_seconds", 0.1)
    run = call(*words, "--storage", ADDRESS)
    assert run.exit_code == 1
    assert SECRET not in run.output
    assert "127.0.0.1" in run.output
    if "--json" in words:
        json.loads(run.stdout)


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOESTRING_STORAGE", raising=False)
    assert hide_passwords(f"see {ADDRESS}, sorry") == "see postgresql://me:***@127.0.0.1:1/db, sorry"
    assert hide_passwords("see postgresql://u@h/d?password=x&sslmode=require&passwd=x") == (
        "see postgresql://u@h/d?password=***&sslmode=require&passwd=***"
    )
    assert hide_passwords("(postgresql://u:p/w:d@h:1/d)") == "(postgresql://u:***@h:1/d)"
    assert hide_passwords("host=h user=u password=x dbname=d") == "host=h user=u password=*** dbname=d"
    assert hide_passwords("sqlite:////tmp/a:b@c.db") == "sqlite:////tmp/a:b@c.db"
    assert sqlite_path("sqlite:///a/b.db") == Path("a/b.db")
    assert sqlite_path("sqlite:////a/b.db") == Path("/a/b.db")
    assert sqlite_path("b.db") == Path("b.db")
    assert sqlite_path(ADDRESS) is None
    assert storage_arguments("shoestring.db") == []
    assert storage_arguments(ADDRESS) == ["--storage", "postgresql://me:***@127.0.0.1:1/db"]
    monkeypatch.setenv("SHOESTRING_STORAGE", ADDRESS)
    assert storage_arguments(ADDRESS) == []
    assert storage_arguments("shoestring.db") == ["--storage", "shoestring.db"]


def test_doctor(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = call("doctor")
    assert run.exit_code == 0, run.output
    assert "does not exist yet" in run.stdout
    assert not (here / "shoestring.db").exists()
    for what in ("python", "numpy", "sqlalchemy", "blas threads", "storage", "disk", "clock", "[sklearn]"):
        assert what in run.stdout
    begin(here, trials=1)
    checks = {check["what"]: check for check in read("doctor")["checks"]}
    assert checks["storage"] == {"what": "storage", "state": "ok", "found": "shoestring.db, 1 study", "fix": ""}
    monkeypatch.setattr(doctor_module, "package_version", lambda package: None if package in ("emcee", "ray") else "1.0")
    monkeypatch.setattr(doctor_module, "usable_cores", lambda: 0)
    run = call("doctor", "--storage", "nowhere/a.db")
    assert run.exit_code == 1
    for text in ("bad   emcee", "-> pip install emcee", '-> pip install "shoestring[ray]"', "warn  blas", "-> mkdir -p"):
        assert text in run.stdout


def test_doctor_on_a_file_that_is_no_database(here: Path) -> None:
    (here / "shoestring.db").write_text("hello " * 1000)
    run = call("doctor")
    assert run.exit_code == 1
    assert "bad   storage" in run.stdout


def test_db(here: Path) -> None:
    begin(here, trials=2)
    run = call("db", "check")
    assert run.exit_code == 0, run.output
    assert "shoestring.db is intact" in run.stdout
    assert read("db", "check")["problems"] == []
    assert "version" in read("db", "upgrade")["done"]
    assert call("db", "backup", "copy.db").exit_code == 0
    assert read("show", "train", "--storage", "copy.db")["trials"] == 2
    again = call("db", "backup", "copy.db")
    assert again.exit_code == 1
    assert again.stderr.splitlines()[-1] == "next: shoestring db backup copy.db --yes"
    begin(here, trials=3)
    assert read("db", "backup", "copy.db", "--yes")["trials"] == 3
    assert read("show", "train", "--storage", "copy.db")["trials"] == 3
    assert read("db", "backup")["backup"].startswith("shoestring-backup-")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    run = call("completion", shell)
    assert run.exit_code == 0
    assert "_SHOESTRING_COMPLETE" in run.stdout


def complete(text: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The completions of the last word in bash."""
    words = text.split(" ")
    monkeypatch.setenv("COMP_WORDS", text)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setenv("_SHOESTRING_COMPLETE", "bash_complete")
    run = CliRunner().invoke(main, [], prog_name="shoestring")
    return [line.partition(",")[2] for line in run.stdout.splitlines() if line]


def test_commands_and_names_of_studies_complete(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete("shoestring sh", monkeypatch) == ["show"]
    assert complete("shoestring show x", monkeypatch) == []
    assert not (here / "shoestring.db").exists()
    for name, where in (("xgb", "shoestring.db"), ("xlm", "shoestring.db"), ("other", "b.db")):
        st.Study(st.Space(x=st.Float(0, 1)), storage=where, name=name)
    assert complete("shoestring show x", monkeypatch) == ["xgb", "xlm"]
    assert complete("shoestring tell xg", monkeypatch) == ["xgb"]
    assert complete("shoestring show --storage b.db o", monkeypatch) == ["other"]
    (here / "c.db").write_text("no database " * 999)
    assert complete("shoestring show --storage c.db x", monkeypatch) == []


def test_a_pipe_that_closes_early_is_no_traceback(here: Path) -> None:
    begin(here, trials=3)
    command = f"{sys.executable} -m shoestring export train --format jsonl | head -c 10"
    run = subprocess.run(["bash", "-c", command], cwd=here, env=environment(), capture_output=True, text=True, timeout=60)
    assert "Traceback" not in run.stderr


def test_no_command_waits_for_standard_input(here: Path) -> None:
    """Standard input is closed."""
    run = subprocess.run(
        [sys.executable, "-m", "shoestring", "run", *SPACE, *QUICK, "--budget", "2", "--", *script(here), "{x}", "{y}"],
        cwd=here, env=environment(), capture_output=True, text=True, timeout=60, preexec_fn=close_stdin,
    )
    assert run.returncode == 0, run.stderr
    lines = run.stderr.splitlines()
    assert [line.split(" shoestring: ")[1][:9] for line in lines] == ["trial 0: ", "trial 1: "]  # one line a trial in a pipe
    assert call("rm", "train", input="").exit_code == 1  # no input is not a yes


def close_stdin() -> None:
    os.close(0)
