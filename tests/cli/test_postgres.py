"""The command line on a PostgreSQL server: the password is never shown, and several processes share one study."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.programs import QUICK, SPACE, begin, call, environment, log_folder, script
from tests.storage.server import PASSWORD, QUOTED, Server


def test_a_password_is_never_printed_or_stored(here: Path, server: Server) -> None:
    """Neither in output nor in tables nor in files."""
    where = ["--storage", server.schema()]
    said = [begin(here, *where, trials=2).output]
    texts = "ls, show, show train 0, best, ask, export, doctor, db check, db upgrade, resume --budget 4, db backup, show none"
    for words in map(str.split, texts.split(", ")):
        for more in ([], ["--json"]):
            run = call(*words, *more, *where)
            assert run.exit_code == (1 if words[-1] in ("backup", "none") else 0), run.output
            if more:
                json.loads(run.stdout)
            said.append(run.output)
    said += [str(server.execute(f"SELECT * FROM place_{server.schemas}.{table}")) for table in ("studies", "trials")]
    said += [path.read_text(errors="replace") for path in here.rglob("*") if path.is_file()]
    assert any("shoe:***@127.0.0.1" in text for text in said)
    assert [text for text in said if PASSWORD in text or QUOTED in text] == []


@pytest.mark.slow
def test_several_coordinators_share_one_study(here: Path, server: Server) -> None:
    where = server.schema()
    command = [sys.executable, "-m", "shoestring", "run", *SPACE, *QUICK, "--budget", "30", "--workers", "2", "--json"]
    program = script(here)
    running = [
        subprocess.Popen(
            [*command, "--", *program, "{x}", "{y}"],
            cwd=here, env={**environment(), "SHOESTRING_STORAGE": where}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    for process in running:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
    found = json.loads(call("show", "train", "--json", "--storage", where).stdout)
    assert (found["trials"], found["states"]) == (30, {"done": 30})
    assert len(list(log_folder(here).glob("*.out"))) == 30
