"""Lock files: in a private temporary folder, shared by all processes that use a database, and removed at the end."""

import gc
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from shoestring.storage import open_storage
from shoestring.storage.locks import LockFiles, private_folder

pytest.importorskip("fcntl")
POLL = 0.0005


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The folder for temporary files, empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def is_free(files, purpose="write"):
    with files.lock(purpose, 0.0, 0.0) as held:
        return held


# -- who shares a lock -------------------------------------------------------------------------------------------------


def test_a_lock_excludes_others_until_it_is_released(tmp_path):
    one, other = LockFiles(tmp_path / "tune.db"), LockFiles(tmp_path / "tune.db")
    with one.lock("write", 1.0, POLL) as held:
        assert held
        assert not is_free(other)
        assert not is_free(one)  # another thread of the same process
        assert is_free(other, "ask-1")
        assert is_free(LockFiles(tmp_path / "another.db"))
    assert is_free(other)


def test_relative_paths_and_links_to_a_database_share_its_locks(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "linked").symlink_to("data")
    (tmp_path / "link.db").symlink_to("data/tune.db")  # also before there is a database
    monkeypatch.chdir(tmp_path)
    one = LockFiles(tmp_path / "data" / "tune.db")
    names = ["data/tune.db", "linked/tune.db", "link.db", "./data/../data/tune.db"]
    others = [LockFiles(Path(name)) for name in names]
    monkeypatch.chdir("data")
    others.append(LockFiles(Path("tune.db")))
    with one.lock("write", 1.0, POLL):
        assert [is_free(other) for other in others] == [False] * 5


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_with_another_working_directory_shares_the_lock_and_a_killed_one_releases_it(tmp_path, temporary):
    (tmp_path / "link.db").symlink_to("tune.db")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.chdir(tmp_path)
        with LockFiles(Path("link.db")).lock("write", 1.0, POLL) as held:
            os.write(writer, b"held" if held else b"free")
            signal.pause()
    assert os.read(reader, 4) == b"held"
    files = LockFiles(tmp_path / "tune.db")
    assert not is_free(files)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    assert is_free(files)  # the file that the killed process has left is used again
    files.remove()
    assert os.listdir(temporary) == []


# -- nothing is left behind --------------------------------------------------------------------------------------------


def use(storage):
    study = storage.begin("study", {})[0].id
    with storage.ask_lock(study):
        storage.enqueue(study, {"x": 1}, {})


def test_no_lock_files_are_left_behind(tmp_path, temporary):
    storage = open_storage(tmp_path / "tune.db")
    use(storage)
    assert sorted(name.rpartition(".")[2] for name in os.listdir(private_folder())) == ["ask-1", "write"]
    storage.close_connections()
    assert sorted(os.listdir(tmp_path)) == ["temporary", "tune.db"]
    assert os.listdir(temporary) == []
    storage.enqueue(1, {"x": 2}, {})  # after a close it is opened again
    storage.close_connections()
    assert os.listdir(temporary) == []


def test_a_storage_that_nobody_uses_any_more_leaves_nothing(tmp_path, temporary):
    use(open_storage(tmp_path / "tune.db"))
    gc.collect()
    assert os.listdir(temporary) == []


INTERRUPTED = """
import shoestring as st

def objective(config, trial):
    trial.checkpoint_dir
    if trial.number == 2:
        raise KeyboardInterrupt
    return config["x"]

st.minimize(objective, st.Space(x=st.Float(0, 1)), 5, method=st.Random(), storage="tune.db")
"""


def test_a_process_that_ends_leaves_the_database_alone_in_its_folder(tmp_path, temporary):
    environment = os.environ | {"TMPDIR": str(temporary)}
    subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=tmp_path, env=environment, capture_output=True)
    assert sorted(os.listdir(tmp_path)) == ["temporary", "tune.db"]
    assert os.listdir(temporary) == []
    with closing(sqlite3.connect(tmp_path / "tune.db")) as connection:
        assert connection.execute("SELECT count(*) FROM trials").fetchone() == (3,)


def test_a_lock_that_is_held_is_not_removed(tmp_path, temporary):
    one, other = LockFiles(tmp_path / "tune.db"), LockFiles(tmp_path / "tune.db")
    with one.lock("write", 1.0, POLL):
        assert not is_free(other)
        other.remove()
        assert not is_free(other)
    one.remove()
    assert os.listdir(temporary) == []


def test_locks_exclude_each_other_while_their_files_are_removed_all_the_time(tmp_path):
    alone, clashes = threading.Lock(), []

    def work():
        files = LockFiles(tmp_path / "tune.db")
        for _ in range(50):
            with files.lock("write", 60.0, 1e-5) as held:
                clashes.append(not held or not alone.acquire(blocking=False))
                time.sleep(1e-5)  # lets the others try
                if not clashes[-1]:
                    alone.release()
            files.remove()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clashes == [False] * 200


# -- where there can be no lock ----------------------------------------------------------------------------------------


def test_a_folder_that_is_not_private_is_not_used(tmp_path, temporary):
    name = f"shoestring-locks-{os.getuid()}"
    (tmp_path / "theirs").mkdir(mode=0o700)
    (temporary / name).symlink_to(tmp_path / "theirs")
    assert not is_free(LockFiles(tmp_path / "tune.db"))
    (temporary / name).unlink()
    (temporary / name).mkdir()
    (temporary / name).chmod(0o777)
    use(open_storage(tmp_path / "tune.db"))  # goes on without locks
    assert os.listdir(temporary / name) == os.listdir(tmp_path / "theirs") == []


def test_a_folder_that_the_system_has_removed_is_made_again(tmp_path, temporary):
    files = LockFiles(tmp_path / "tune.db")
    assert is_free(files)
    for path in [*temporary.rglob("*.write"), Path(private_folder())]:
        path.unlink() if path.is_file() else path.rmdir()
    assert is_free(files)
    assert Path(private_folder()).stat().st_mode & 0o777 == 0o700
