"""The name of a worker tells whether it has died on this machine; of other names nothing is known."""

import os
import subprocess
import sys

import pytest

from shoestring.storage.heartbeat import PROC, surely_dead, worker_name

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
