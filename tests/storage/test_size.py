"""Large studies: the number of statements does not grow with them, and every search uses an index."""

import pytest
from sqlalchemy import event

from shoestring.data.trial import State
from shoestring.storage import Limits
from tests.storage.places import done, lease, running


def fill(database, trials):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    if trials <= 1000:
        for number in range(trials):
            storage.write(study, done(number, float((number * 7919) % trials)))
        return storage, study
    from shoestring.storage import codec, rows, schema, trial_lifecycle

    def trial_rows():
        for number in range(trials):
            trial, clock = done(number, float((number * 7919) % trials)), number + 1
            row = {"study": study, "number": number, "at_target": True, "token": str(number), "asked": 0.0}
            yield row | rows.trial_columns(trial, codec.encode_trial(trial), (clock, None, clock), clock)

    totals = trial_lifecycle.Totals(trials, trials, 0, float(trials), 0.0)

    def work(connection):
        connection.execute(schema.trials.insert(), list(trial_rows()))
        connection.execute(schema.studies.update().values(clock=trials, **rows.totals_columns(totals)))

    storage._database.write(work)
    return storage, study


def statements_of(storage, call):
    """The statements that a call takes."""
    seen = []

    def note(connection, cursor, statement, parameters, context, many):
        seen.append(statement)

    event.listen(storage._database.engine, "before_cursor_execute", note)
    call()
    event.remove(storage._database.engine, "before_cursor_execute", note)
    return seen


CALLS = {
    "open": lambda storage, study: storage.changes_since(study, 0),
    "nothing new": lambda storage, study: storage.changes_since(study, 10**9),
    "best": lambda storage, study: storage.best(study, False),
    "reap": lambda storage, study: storage.reap(study, 1.0),
    "renew": lambda storage, study: storage.renew(study, {0: "token", 1: "token"}, 60.0),
    "find": lambda storage, study: storage.find("study"),
    "write": lambda storage, study: storage.write(
        study, running(storage.find("study").trials), lease=lease(), limits=Limits(10**9, 1e18), expected=1.0
    ),
    "close": lambda storage, study: storage.close(study, done(storage.find("study").trials - 1)),
}


def test_the_number_of_statements_does_not_grow(database):
    small, few = fill(database, 5)
    for name, call in CALLS.items():
        assert len(statements_of(small, lambda call=call: call(small, few))) <= 6, name


def test_every_search_goes_by_an_index(sqlite_place):
    storage, study = fill(sqlite_place, 200)
    storage.write(study, running(200), lease=lease())
    storage.enqueue(study, {}, {})
    for name, call in CALLS.items():
        for statement in statements_of(storage, lambda call=call: call(storage, study)):
            if statement.startswith(("SELECT", "UPDATE")) and "VALUES" not in statement:
                blank = statement.replace("?", "1")
                plan = " ".join(str(row[3]) for row in sqlite_place.execute(f"EXPLAIN QUERY PLAN {blank}"))
                assert "SEARCH" in plan, (name, statement)
                assert ("trials_by_lease" in plan) == (name == "reap"), (name, statement, plan)
                assert "SCAN" not in plan.replace("SCAN CONSTANT ROW", ""), (name, statement, plan)


def everything_in_a_large_study(database, trials):
    storage, study = fill(database, trials)
    changes = database.open().changes_since(study, 0)
    assert [each.trial.number for each in changes.trials] == list(range(trials))
    assert changes.trials[trials // 3].trial == done(trials // 3, float((trials // 3 * 7919) % trials))
    assert storage.best(study, False).value == 0.0
    assert storage.best(study, True).value == trials - 1.0
    assert storage.changes_since(study, changes.clock).trials == []
    storage.write(study, running(trials), lease=lease(), limits=Limits(trials + 1, trials + 1.0), expected=1.0)
    assert storage.close(study, done(trials, -1.0)).trial.state is State.DONE
    assert [each.trial.number for each in storage.changes_since(study, changes.clock).trials] == [trials]
    assert storage.best(study, False).number == trials
    assert storage.check() == []


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_a_large_study(database):
    everything_in_a_large_study(database, 5_000)


@pytest.mark.slow
def test_a_very_large_study(database):
    everything_in_a_large_study(database, 100_000)
