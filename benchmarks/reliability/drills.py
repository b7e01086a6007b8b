"""Items of which the tests hold a short form only, driven here by many processes, again and again."""

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import shoestring as st
from benchmarks.reliability import places
from benchmarks.reliability.suite import Row, row
from benchmarks.reliability.team import Failed, failures, together
from shoestring.data.trial import State, Trial
from shoestring.storage import Lease, open_storage

SPACE = st.Space(x=st.Float(0, 1), y=st.Float(0, 1))
SLOW_READER = 2.0  # seconds for which it keeps one moment of the database in view
PAGE = 0.1  # seconds between two looks of an open page
P99 = 1.0  # seconds that a tell may take
SIZES = (50, 500, 5000)  # observations
COST, COSTS = 60.0, (1.0, 4.0)  # of the study, and of a trial, at least and at most


# -- 1: first start --------------------------------------------------------------------------------------------------


def _open(gate: Any, address: str) -> tuple[int, bool]:
    gate.wait()
    storage = open_storage(address)
    record, made = storage.begin("study", {"seed": 0})
    storage.close_connections()
    return record.id, made


def first_start(address: Callable[[], str], storage: str, quick: bool) -> Row:
    """All succeed, one of them makes the study, and all have the same one."""
    began, processes, rounds = time.perf_counter(), *((8, 2) if quick else (32, 20))
    survived, why = 0, list[str]()
    for _ in range(rounds):
        where = address()
        answers = together(_open, [(where,)] * processes)
        good = [answer for answer in answers if not isinstance(answer, Failed)]
        right = len({study for study, _ in good}) == 1 and sum(made for _, made in good) == 1 and not open_storage(where).check()
        survived, why = survived + len(good) * right, why + failures(answers)
    what = f"{processes} processes open a fresh database together, {rounds} times"
    return row(1, what, storage, processes * rounds, survived, time.perf_counter() - began, **_why(why))


# -- 2: locks --------------------------------------------------------------------------------------------------------


def _tell(gate: Any, address: str, numbers: list[int]) -> list[float]:
    """How long each took; a lock that is not to be had is an exception."""
    storage, times = open_storage(address), []
    study = storage.find("study").id
    gate.wait()
    for number in numbers:
        began = time.perf_counter()
        storage.close(study, _trial(number).finish(State.DONE, value=float(number), cost=1.0))
        times.append(time.perf_counter() - began)
    storage.close_connections()
    return times


def _read(gate: Any, address: str, seconds: float, page: bool) -> list[float]:
    """A page that looks again and again, or a reader who keeps one moment in view."""
    storage = open_storage(address)
    study, until = storage.find("study").id, time.monotonic() + seconds
    gate.wait()
    if page:
        while time.monotonic() < until:
            storage.changes_since(study, 0)
            storage.best(study, False)
            time.sleep(PAGE)
    else:
        with storage._database.engine.connect() as connection, connection.begin():
            if connection.dialect.name == "postgresql":  # it cuts off our connections if they are idle, since ours never are
                connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
            connection.exec_driver_sql("SELECT count(*) FROM trials")
            time.sleep(seconds)
            connection.exec_driver_sql("SELECT count(*) FROM trials")
    storage.close_connections()
    return []


def _either(gate: Any, work: Callable[..., Any], *arguments: Any) -> Any:
    return work(gate, *arguments)


def locks(address: Callable[[], str], storage: str, quick: bool) -> Row:
    began, writers, each = time.perf_counter(), 16, 5 if quick else 100
    where, tells = address(), writers * each
    opened = open_storage(where)
    study = opened.begin("study", {"seed": 0})[0].id
    for number in range(tells):
        opened.write(study, _trial(number), lease=Lease("worker", str(number), 3600.0))
    calls = [(_tell, where, list(range(first, tells, writers))) for first in range(writers)]
    seconds = 0.5 if quick else SLOW_READER
    answers = together(_either, [*calls, (_read, where, seconds, False), (_read, where, seconds, True)])
    times = [each for answer in answers if not isinstance(answer, Failed) for each in answer]
    done = sum(each.trial.state is State.DONE for each in opened.changes_since(study, 0).trials)
    opened.close_connections()
    p99 = float(np.percentile(times, 99)) if times else float("inf")
    figures = {"p99_seconds": round(p99, 4), "slowest_seconds": round(max(times, default=0.0), 4), "p99_met": p99 < P99}
    what = f"{writers} writers, a slow reader and an open page: {tells} tells"
    return row(2, what, storage, tells, done, time.perf_counter() - began, **figures, **_why(failures(answers)))


def _trial(number: int) -> Trial:
    return Trial(number, {"x": number / 7919, "y": 0.5}, suggestion={"by": "drill"}, asked_at=time.time())


# -- 15: the budget --------------------------------------------------------------------------------------------------


def _objective(config: dict[str, Any]) -> st.Outcome:
    time.sleep(0.002)
    low, high = COSTS
    return st.Outcome(config["x"], cost=low + (high - low) * config["y"])


def _minimize(gate: Any, address: str, budget: st.Budget) -> int:
    """How many trials this process has evaluated."""
    st.set_verbosity("error")
    study, mine = st.Study(SPACE, st.Random(), stop=None, storage=address, unit="USD"), []
    gate.wait()
    study.minimize(_objective, budget, callbacks=lambda study, trial: mine.append(trial.number))
    study.storage.close_connections()
    return len(mine)


def budget(address: Callable[[], str], storage: str, quick: bool) -> Row:
    """By ``minimize`` in each of them. A trial too many or too few is lost, and so is a cost beyond what was in flight."""
    began, workers, trials, rounds = time.perf_counter(), *((4, 20, 1) if quick else (16, 100, 5))
    tried = survived = 0
    why, overshot = list[str](), list[float]()
    for _ in range(rounds):
        for limit in (st.Budget(trials=trials), st.Budget(cost=COST, unit="USD")):
            where = address()
            answers = together(_minimize, [(where, limit)] * workers)
            why += failures(answers)
            if not any(open_storage(where).studies()):
                tried += 1  # no process came so far as to make the study: lost, and ``why`` says how
                continue
            history = st.Study.load(where).history
            evaluated = sum(answer for answer in answers if not isinstance(answer, Failed))
            wrong = abs(evaluated - len(history)) + sum(trial.state is not State.DONE for trial in history)
            if limit.trials is not None:
                wrong += abs(len(history) - trials)
            else:
                overshot.append(round(history.spent - COST, 3))
                wrong += history.spent - COST > workers * COSTS[1]  # less is right where nothing fits any more
            tried, survived = tried + len(history), survived + max(0, len(history) - wrong)
    what = f"{workers} workers, {trials} trials, and again a cost of {COST:g}: {rounds} times"
    figures = {"overshot": overshot, "in_flight_at_most": workers * COSTS[1]}
    return row(15, what, storage, tried, survived, time.perf_counter() - began, **figures, **_why(why))


def _why(reasons: list[str]) -> dict[str, Any]:
    return {"failures": sorted(set(reasons))[:10]} if reasons else {}


# -- 26: the time of a suggestion --------------------------------------------------------------------------------------


def _p95(observations: int, asks: int) -> float:
    """Milliseconds of one processor that one suggestion in twenty takes longer than, in a study of so many observations.

    By the processor's clock and not by that on the wall: other programs may be running.
    """
    from benchmarks.peers import shoestring_space  # here, since they need packages that the other drills do without
    from benchmarks.timing import DIMENSIONS, PROBLEM, smooth

    study, times = st.Study(shoestring_space(PROBLEM), seed=0, stop=None), []
    for point in np.random.default_rng(observations).random((observations, DIMENSIONS)):
        config = {f"x{place}": float(x) for place, x in enumerate(point)}
        study.add(config, smooth(config), cost=1.0)
    with threadpool_limits(1):
        trial = study.ask()  # the first one fits its model from scratch
        for _ in range(asks):
            study.tell(trial, smooth(trial.config), cost=1.0)
            began = time.process_time()
            trial = study.ask()
            times.append(1e3 * (time.process_time() - began))
    return round(float(np.percentile(times, 95)), 1)


def suggestions(address: Callable[[], str], storage: str, quick: bool) -> Row:
    """Survived is a size whose p95 is at most ten times that of the size before: no more than the observations grew."""
    began, asks = time.perf_counter(), 5 if quick else 60
    found = {str(size): _p95(size, asks) for size in SIZES[: 2 if quick else 3]}
    times = list(found.values())
    survived = 1 + sum(now <= 10 * before for before, now in itertools.pairwise(times))
    figures = ", ".join(f"{ms:.0f} ms at {int(size):,}" for size, ms in found.items())
    what = f"p95 of ask by observations, in processor time, {asks} suggestions each: {figures}"
    return row(26, what, storage, len(found), survived, time.perf_counter() - began, p95_ms=found)


Drill = Callable[[Callable[[], str], str, bool], Row]
DRILLS: dict[int | str, Drill] = {1: first_start, 2: locks, 15: budget, 26: suggestions}
IN_MEMORY = (26,)


def places_of(number: int | str) -> tuple[str, ...]:
    """The storages that there is a drill for."""
    if number not in DRILLS:
        return ()
    return ("none",) if number in IN_MEMORY else places.KINDS
