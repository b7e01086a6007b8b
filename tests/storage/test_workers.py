"""The name of a worker tells whether it has died on this machine; of other names nothing is known."""

import os
import subprocess
import sys

import pytest

from shoestring.storage import heartbeat
from shoestring.storage.heartbeat import PROC, lease_length, surely_dead, worker_name

PRINT_NAME = "from shoestring.storage.heartbeat import worker_name; print(worker_name())"

pytestmark = pytest.mark.skipif(not (PROC / "self/stat").exists(), reason="needs /proc")


def test_this_process_lives():
    assert not surely_dead(worker_name())


def test_a_process_that_has_ended_is_dead():
    ended = subprocess.run([sys.executable, "-c", PRINT_NAME], capture_output=True, text=True, check=True).stdout.strip()
    assert surely_dead(ended)


def test_a_zombie_is_dead():
    child = subprocess.Popen([sys.executable, "-c", PRINT_NAME], stdout=subprocess.PIPE, text=True)
    name = child.stdout.readline().strip()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert surely_dead(name)
    child.communicate()


def test_another_process_with_the_same_number_is_another_process():
    *rest, began = worker_name().split("/")
    assert surely_dead("/".join([*rest, str(int(began) + 1)]))


@pytest.mark.parametrize("name", ["", "worker 7", "a/b/c/d", "a/b/1/2/3", "//1/1", "elsewhere/boot/12/34"])
def test_of_other_names_nothing_is_known(name):
    assert not surely_dead(name)


def test_on_another_machine_nothing_is_known():
    host, *rest = worker_name().split("/")
    assert not surely_dead("/".join([f"not-{host}", *rest[:-1], "1"]))


def test_a_process_that_the_system_hides_is_not_dead(tmp_path, monkeypatch):
    """As ``hidepid=2`` shows /proc to other users: without the folder of the process."""
    name, (boot, namespace) = worker_name(), (PROC / "sys/kernel/random/boot_id", PROC / "self/ns/pid")
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text(boot.read_text())
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to(namespace.readlink())
    monkeypatch.setattr(heartbeat, "PROC", tmp_path)
    assert not surely_dead(name)
    ended = subprocess.Popen(["true"])
    ended.wait()
    host, place, _, started = name.split("/")
    assert surely_dead(f"{host}/{place}/{ended.pid}/{started}")  # the system says so of hidden processes too


def test_a_process_whose_files_may_not_be_read_is_not_dead(monkeypatch):
    """As ``hidepid=1`` does it."""
    name, ticks = worker_name(), heartbeat._start_ticks
    monkeypatch.setattr(heartbeat, "_start_ticks", lambda process: None if process == os.getpid() else ticks(process))
    assert not surely_dead(name)


def test_a_name_says_how_long_the_leases_of_the_worker_last():
    assert lease_length(worker_name(2.5)) == 2.5
    assert lease_length(worker_name()) is lease_length("asked on host") is lease_length("a/b/c/d/e") is None
    assert not surely_dead(worker_name(60.0))
