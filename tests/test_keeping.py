"""Studies in a storage: found again, shared, resumed, extended, replayed."""

import os
import subprocess
import sys
import textwrap
import time

import pytest

import shoestring as st
from shoestring.storage import open_storage
from tests.kept import WIDER, bowl, configs, study


@pytest.fixture
def where(tmp_path):
    return f"sqlite:///{tmp_path / 'tune.db'}"


def test_a_study_is_saved_before_its_first_trial(where):
    study(where)
    assert [record.name for record in open_storage(where).studies()] == ["bowl"]


@pytest.mark.parametrize("method", ["auto", st.EI(), st.Random(), st.Sobol()])
def test_the_trials_are_those_of_a_study_in_memory_however_it_is_divided(where, method):
    whole = study(None, method=method)
    whole.minimize(bowl, 14)
    for count in (3, 10, 14):
        study(where, method=method).minimize(bowl, count)
    assert configs(study(where)) == configs(whole)
    assert [trial.value for trial in study(where).history] == [trial.value for trial in whole.history]


def in_another_process(code, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


MORE = """
    import sys
    import shoestring as st
    space = st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b"))
    bowl = lambda c: (c["x"] - 0.3) ** 2 + (c["y"] - 0.2) ** 2 + 0.1 * (c["kind"] == "a")
    st.Study(space, seed=3, stop=None, name="bowl", storage=sys.argv[1]).minimize(bowl, int(sys.argv[2]))
"""


def test_another_process_goes_on_as_this_one_would_have(where):
    whole = study(None)
    whole.minimize(bowl, 13)
    study(where).minimize(bowl, 6)
    assert in_another_process(MORE, where, 13).returncode == 0
    assert configs(study(where)) == configs(whole)


def test_what_another_process_tells_is_known_here(where):
    one, other = study(where), study(where)
    first, second = one.ask(), other.ask()
    assert (first.number, second.number) == (0, 1)
    assert first.config != second.config
    one.tell(first, 0.5, cost=1.0)
    other.tell(second, 0.25, cost=1.0)
    assert one.best.value == other.best.value == 0.25
    one.tell(1, 0.25, cost=1.0)  # once more, by somebody else: nothing changes
    with pytest.raises(st.TrialError, match="already done"):
        one.tell(1, 0.1, cost=1.0)
    assert one.ask().number == 2


def test_what_somebody_else_tells_of_a_running_trial_does_not_end_the_run(where, caplog):
    kept = study(where, method=st.Random())

    def told_by_hand(config, trial):
        if trial.number == 1:
            study(where).tell(1, 0.125, cost=1.0)
        return 0.5

    assert [trial.value for trial in kept.minimize(told_by_hand, 3).history] == [0.5, 0.125, 0.5]
    assert "trial 1 is already done with value 0.125" in caplog.text


def test_a_storage_that_does_not_take_a_report_fails_no_trial(where, monkeypatch, caplog):
    def away(*arguments):
        raise st.StorageError("it is away")

    kept = study(where, method=st.Random())
    monkeypatch.setattr(kept.storage, "report", away)
    [trial] = kept.minimize(lambda config, trial: trial.report(1.0) or 0.5, 1).history
    assert (trial.value, len(trial.reports)) == (0.5, 1)
    assert "it is away" in caplog.text


def test_what_is_enqueued_here_is_asked_there_once(where):
    one, other = study(where), study(where)
    one.enqueue({"x": 0.5, "y": 0.5, "kind": "a"})
    assert other.ask().config == {"x": 0.5, "y": 0.5, "kind": "a"}
    assert one.ask().config != {"x": 0.5, "y": 0.5, "kind": "a"}


def test_a_stop_is_heard_by_all(where):
    one, other = study(where), study(where)
    result = one.minimize(lambda config: other.halt("enough") or bowl(config), 50)
    assert len(result.history) == 1
    assert result.stop.reason == "enough"


def test_a_budget_is_that_of_the_study_not_of_the_process(where):
    study(where).minimize(bowl, 5)
    assert len(study(where).minimize(bowl, 5).history) == 5
    limited = study(where)
    other = study(where)

    def greedy(config):
        other.tell(other.ask(), 1.0, cost=1.0)
        return bowl(config)

    assert len(limited.minimize(greedy, 8).history) in (8, 9)  # the last one that the other asked had no budget to keep to


def test_the_trial_of_a_worker_that_is_gone_comes_back(where):
    gone = study(where, lease=0.5)
    lost = gone.ask(lease=0.2)
    time.sleep(0.6)
    going_on = study(where)
    again = going_on.ask()
    assert again.config == lost.config
    assert (again.number, going_on.history[lost.number].state) == (1, st.State.ABANDONED)


def test_a_late_result_is_kept_and_both_costs_are_charged(where):
    slow, quick = study(where, unit="USD"), study(where, unit="USD")
    first = slow.ask(lease=0.1)
    time.sleep(0.3)
    second = quick.ask()
    assert second.config == first.config
    slow.tell(first, 0.5, cost=3.0)
    quick.tell(second, 0.4, cost=2.0)
    assert [trial.value for trial in quick.history] == [0.5, 0.4]
    assert quick.history.spent == 5.0


def test_a_living_worker_keeps_its_trial(where):
    owner, other = study(where, lease=0.4), study(where)
    mine = owner.ask()
    time.sleep(1.2)  # three leases
    assert other.ask().config != mine.config
    assert other.history[mine.number].state is st.State.RUNNING


def test_a_killed_worker_leaves_its_trial_to_others(where):
    code = """
        import sys, os, signal
        import shoestring as st
        space = st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b"))
        study = st.Study(space, seed=3, stop=None, name="bowl", storage=sys.argv[1])
        study.minimize(lambda c: os.kill(os.getpid(), signal.SIGKILL), 5)
    """
    assert in_another_process(code, where).returncode == -9
    going_on = study(where)
    lost = going_on.history[0]
    assert lost.state is st.State.RUNNING
    going_on.minimize(bowl, 5)  # at once: it can be seen that the worker is dead
    found = going_on.history
    assert found[0].state is st.State.ABANDONED
    assert lost.config in [trial.config for trial in found.having(st.State.DONE)]
    assert len(found.having(st.State.DONE)) == 5


def test_what_a_killed_worker_had_reported_is_kept(where):
    code = """
        import sys, os, signal
        import shoestring as st
        def train(config, trial):
            trial.report(0.5, s=0.25)
            os.kill(os.getpid(), signal.SIGKILL)
        space = st.Space(x=st.Float(0, 1), s=st.Fidelity(0.0, 1.0))
        st.Study(space, method=st.EI(), stop=None, name="curve", storage=sys.argv[1]).minimize(train, 5)
    """
    assert in_another_process(code, where).returncode == -9
    going_on = st.Study.load(where)
    going_on.minimize(lambda config: config["x"], 3)
    assert going_on.history[0].state is st.State.ABANDONED
    assert [report["value"] for report in going_on.history[0].reports] == [0.5]


def test_more_at_once_than_there_are_gives_those_that_there_are(where):
    space = st.Space(a=st.Choice(1, 2, 3), b=st.Choice(1, 2, 3), c=st.Choice(1, 2, 3))
    kept = st.Study(space, storage=where, name="small", stop=None)
    batch = kept.ask_many(64)
    assert len({tuple(trial.config.values()) for trial in batch}) == len(batch) == 27
    with pytest.raises(st.SpaceExhausted):
        kept.ask_many(2)
    assert kept.replay().first_difference is None


def test_a_process_that_runs_while_the_space_is_extended_says_so(where):
    old = study(where)
    wider = st.Study(WIDER, storage=where, name="bowl", stop=None, extend=True)
    wider.add({"x": 0.5, "y": 0.5, "kind": "c"}, 0.3, cost=1.0)
    for _ in range(2):  # and once more, as nothing was half taken in
        with pytest.raises(st.StudyError, match="extended; open it again"):
            old.ask()
    assert len(study_again := st.Study.load(where).history) == 1
    assert study_again[0].value == 0.3


@pytest.mark.parametrize("lease", [0, -1, "soon", True])
def test_a_lease_is_a_positive_time(where, lease):
    with pytest.raises(st.ShoestringError):
        study(where, lease=lease)


def test_a_study_in_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(st.StorageError, match="nowhere"):
        study(tmp_path / "nowhere" / "tune.db")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_its_own_hands(where):
    parent = study(where, lease=0.6)
    held = parent.ask()
    child = os.fork()
    if child == 0:
        try:
            mine = parent.ask()
            parent.tell(mine, 1.0, cost=1.0)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert parent.history[1].value == 1.0
    parent.tell(held, 2.0, cost=1.0)
    assert [trial.value for trial in parent.history] == [2.0, 1.0]
