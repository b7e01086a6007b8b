"""Intermediate values that trials report while others are suggested: replay uses those that were there at that moment."""

import threading
from dataclasses import replace

import pytest

import shoestring as st
from shoestring.data.trial import State

SPACE = st.Space(x=st.Float(0, 1), s=st.Fidelity(1, 9))
PLAIN = st.Space(x=st.Float(0, 1))


def curve(config, step):
    return (config["x"] - 0.3) ** 2 + 1.0 / step


def reports(trial, *steps):
    return [{"value": curve(trial.config, step), "fidelity": {"s": step}, "cost": None} for step in steps]


class CountingReports:
    """A method that looks at what running trials have reported: it may, so replay must know it."""

    def suggest(self, context):
        told = sum(len(trial.reports) for trial in context.history if trial.state is State.RUNNING)
        return st.Random().suggest(replace(context, seed=told))


def study(place, method, space=SPACE, **options):
    return st.Study(space, method=method, stop=None, name="curve", storage=place.open(), initial=2, **options)


def replayed(place, method):
    found = st.Study.load(place.open(), "curve", method=method).replay()
    return found.checked, found.first_difference


def keep(kept, trial, *steps):
    """Of a trial that this process holds; not more than once a second by the ledger itself."""
    assert kept.storage.report(kept.state.study, trial.number, kept.state.heartbeat.token(trial.number), reports(trial, *steps))


@pytest.mark.parametrize("space", [SPACE, PLAIN], ids=["fidelity", "plain"])
def test_a_method_that_looks_at_reports_of_running_trials(sqlite_place, space):
    kept = study(sqlite_place, CountingReports(), space)
    first, second = kept.ask(), kept.ask()
    keep(kept, first, 1, 2)
    assert kept.ask().basis["reports"] == {"0": 2}
    keep(kept, second, 1)
    keep(kept, first, 1, 2, 3, 4)
    assert kept.ask().basis["reports"] == {"0": 4, "1": 1}
    kept.state.close(kept.state.trials[0].finish(State.DONE, value=1.0, cost=1.0, reports=tuple(reports(first, 1, 2, 3, 4, 5))))
    assert kept.ask().basis["reports"] == {"1": 1}
    kept.tell(second, 1.0, cost=1.0)
    assert "reports" not in kept.ask().basis
    assert replayed(sqlite_place, CountingReports()) == (6, None)


@pytest.mark.parametrize("method", [pytest.param(st.CFKG(), marks=pytest.mark.slow), "auto"], ids=["CFKG", "auto"])
def test_a_late_result_of_an_abandoned_trial_does_not_hide_what_it_had_reported(sqlite_place, method):
    """Its reports are data until its config is asked again."""
    kept = study(sqlite_place, method)
    for _ in range(4):
        trial = kept.ask()
        kept.tell(trial, curve(trial.config, trial.config["s"]), cost=float(trial.config["s"]))
    lost = kept.ask()
    keep(kept, lost, 1, 2, 3)
    kept.refresh()
    before = kept.state.trials[lost.number]
    kept.state.close(before.finish(State.ABANDONED, cost=1.0))
    assert kept.ask().basis["reports"] == {str(lost.number): 3}
    kept.state.close(before.finish(State.DONE, value=0.5, cost=5.0, reports=tuple(reports(lost, 1, 2, 3, 4))))
    kept.ask()
    assert replayed(sqlite_place, method) == (7, None)


@pytest.mark.parametrize("method", [st.CFKG(), pytest.param("auto", marks=pytest.mark.slow)], ids=["CFKG", "auto"])
def test_trials_that_report_in_threads(sqlite_place, method):
    reported = [threading.Event() for _ in range(6)]

    def train(config, trial):
        for step in range(1, int(config["s"]) + 1):
            trial.report(curve(config, step), s=step)
        reported[trial.number].set()
        if trial.number < 5:  # it ends, and the next is asked, while another one that has reported runs
            assert reported[trial.number + 1].wait(60)
        return st.Outcome(curve(config, config["s"]), cost=float(config["s"]))

    kept = study(sqlite_place, method)
    kept.minimize(train, 6, workers=2, threads=True)
    assert all("reports" in trial.basis for trial in kept.history[2:])
    assert replayed(sqlite_place, method) == (6, None)


def test_a_trial_that_was_stopped_early_is_seen_as_it_was_asked(sqlite_place):
    seen = []

    class Looking:
        def suggest(self, context):
            seen.append([(trial.config, trial.fidelity) for trial in context.history])
            return st.Random().suggest(context)

    kept = study(sqlite_place, Looking())
    first = kept.ask()
    kept.ask()
    asked = dict(first.fidelity)
    cut = replace(
        kept.state.trials[0],
        config={**first.config, "s": 1},
        fidelity={"s": 1},
        suggestion={**first.suggestion, "asked": asked, "stopped": {"kind": "hopeless"}},
    )
    kept.state.close(cut.finish(State.DONE, value=1.0, cost=1.0))
    kept.ask()
    then, seen = seen, []
    kept.replay()
    assert seen == then
