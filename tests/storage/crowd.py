"""Many processes at once, and what each of them does.

They come from a server that has loaded everything already, so that a crowd of them starts in a moment. Each has nothing in common
with the process that runs the tests.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from shoestring.errors import Conflict, OverBudget
from shoestring.storage import Limits, open_storage
from tests.storage.places import done, lease, running

context = multiprocessing.get_context("forkserver")
LOADED = ("pytest", "psycopg", *(f"shoestring.storage.{name}" for name in ("sqlite", "postgres", "sql")))
context.set_forkserver_preload([*LOADED, "tests.storage.crowd", "tests.stored_study"])


def crowd(work: Callable[..., Any], calls: Sequence[tuple[Any, ...]], seconds: float = 120.0) -> list[Any]:
    """The results of all calls, made at the same moment; an exception in one of them is raised here."""
    answers, gate = context.SimpleQueue(), context.Barrier(len(calls))
    processes = [context.Process(target=_do, args=(work, call, gate, answers, place)) for place, call in enumerate(calls)]
    for process in processes:
        process.start()
    until, results = time.monotonic() + seconds, {}
    while len(results) < len(calls):
        if answers.empty():
            assert time.monotonic() < until, f"{len(calls) - len(results)} of {len(calls)} processes did not answer"
            assert any(process.is_alive() for process in processes) or not answers.empty(), "a process died"
            time.sleep(0.01)
            continue
        place, result = answers.get()
        results[place] = result
    for process in processes:
        process.join(seconds)
        process.close()
    for result in results.values():
        if isinstance(result, BaseException):
            raise result
    return [results[place] for place in range(len(calls))]


def _do(work: Callable[..., Any], call: tuple[Any, ...], gate: Any, answers: Any, place: int) -> None:
    gate.wait()
    try:
        result = work(*call)
    except BaseException as error:
        result = RuntimeError(f"{type(error).__name__}: {error}")
    answers.put((place, result))


@contextmanager
def worker(work: Callable[..., Any], *arguments: Any) -> Iterator[tuple[Any, Any]]:
    """A process that does ``work(pipe, *arguments)``, and the other end of its pipe; it does not outlive the block."""
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()


# -- what they do ----------------------------------------------------------------------------------------------------------


def begin(address: str, name: str) -> tuple[int, bool]:
    storage = open_storage(address)
    record, made = storage.begin(name, {"seed": 0})
    storage.close_connections()
    return record.id, made


def work_on(address: str, limits: Limits, cost: float = 1.0) -> list[int]:
    """Ask and tell until there is no room; the numbers that were asked."""
    storage = open_storage(address)
    study, clock, next_number, numbers = storage.find("study").id, 0, 0, []
    while True:
        changes = storage.changes_since(study, clock)
        clock = changes.clock
        next_number = max([next_number, *(each.trial.number + 1 for each in changes.trials)])
        try:
            storage.write(study, running(next_number), lease=lease(), limits=limits, expected=cost)
        except Conflict:
            continue
        except OverBudget:
            storage.close_connections()
            return numbers
        numbers.append(next_number)
        storage.close(study, done(next_number, float(next_number), cost))


def empty_queue(address: str) -> list[int]:
    """Ask and tell while something waits; what it was."""
    storage = open_storage(address)
    study, found = storage.find("study").id, []
    while True:
        changes = storage.changes_since(study, 0)
        if not changes.queue:
            storage.close_connections()
            return found
        entry = changes.queue[0]
        try:
            storage.write(study, running(len(changes.trials)), lease=lease(), queued=entry.id)
        except Conflict:
            continue
        found.append(entry.config["job"])


def tell(address: str, numbers: Sequence[int]) -> int:
    storage = open_storage(address)
    study = storage.find("study").id
    for number in numbers:
        storage.close(study, done(number, float(number)))
    storage.close_connections()
    return len(numbers)


def read_slowly(address: str, seconds: float) -> int:
    """A reader that keeps one moment of the database in view for a while, as a page does."""
    storage = open_storage(address)
    study = storage.find("study").id
    with storage._database.engine.connect() as connection, connection.begin():
        from shoestring.storage.rows import SELECT_TRIALS

        if connection.dialect.name == "postgresql":  # it cuts off connections of ours that are idle, as a suspended worker's is
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        rows = connection.execute(SELECT_TRIALS, {"study_": study})
        first = rows.fetchmany(1)
        time.sleep(seconds)
        rest = rows.fetchall()
    storage.close_connections()
    return len(first) + len(rest)


def tell_for_ever(address: str, pipe: Any, first: int) -> None:
    """Ask and tell, and write the number of each result that was kept, until this process is killed."""
    storage = open_storage(address)
    study, number = storage.find("study").id, first
    while True:
        storage.write(study, running(number), lease=lease())
        storage.close(study, done(number, float(number)))
        os.write(pipe.fileno(), b"%d\n" % number)
        number += 1
