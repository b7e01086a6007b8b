"""Studies in a storage: found again, shared, resumed, extended, replayed."""

import logging
import os
import subprocess
import sys
import textwrap
import time

import pytest

import shoestring as st
from shoestring.storage import open_storage

SPACE = st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b"))


WIDER = st.Space(x=st.Float(0, 2), y=st.Float(0.0001, 1, log=True), kind=st.Choice("a", "b", "c"))


def bowl(config):
    return (config["x"] - 0.3) ** 2 + (config["y"] - 0.2) ** 2 + 0.1 * (config["kind"] == "a")


@pytest.fixture
def where(tmp_path):
    return f"sqlite:///{tmp_path / 'tune.db'}"


def configs(study):
    return [trial.config for trial in study.history if trial.state is not st.State.ABANDONED]


def study(where, **options):
    return st.Study(SPACE, **({"seed": 3, "stop": None, "name": "bowl"} | options), storage=where)


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


# -- another space ----------------------------------------------------------------------------------------------------


def test_another_space_is_refused_and_nothing_is_lost(where):
    study(where).minimize(bowl, 4)
    with pytest.raises(st.StudyError, match=r"study 'bowl' has another space: .*y is missing.*extend=True"):
        st.Study(st.Space(x=st.Float(0, 2)), storage=where, name="bowl")
    assert len(study(where).history) == 4


def test_a_space_can_be_widened_and_old_trials_stay_in_use(where):
    study(where).minimize(bowl, 10)
    before = configs(study(where))
    wider = st.Study(WIDER, storage=where, name="bowl", stop=None, extend=True)
    wider.minimize(bowl, 14)
    assert configs(wider)[:10] == before
    assert len(wider.result.history) == 14
    assert st.Study.load(where).space == WIDER


def test_a_process_that_knows_the_narrower_space_does_not_write_it_back(where):
    older = study(where, method=st.Random())
    wide = st.Space(x=st.Float(0, 2), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b"))
    st.Study(wide, storage=where, name="bowl", extend=True)
    older.minimize(bowl, 2)
    assert st.Study.load(where).space == wide


@pytest.mark.parametrize(
    "space",
    [
        st.Space(x=st.Float(0.5, 2), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b")),
        st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1), kind=st.Choice("a", "b")),
        st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1, log=True), kind=st.Choice("b", "c")),
        st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b"), more=st.Int(1, 3)),
        st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1, log=True)),
        st.Space(x=st.Int(0, 1), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b")),
    ],
)
def test_a_space_cannot_be_narrowed(where, space):
    study(where).minimize(bowl, 2)
    with pytest.raises(st.StudyError, match="cannot be extended"):
        st.Study(space, storage=where, name="bowl", extend=True)
    assert len(study(where).history) == 2


def test_the_order_of_parameters_does_not_make_another_space(where):
    study(where).minimize(bowl, 9)
    turned = st.Study(st.Space(**dict(reversed(list(SPACE.items())))), storage=where, name="bowl", stop=None)
    turned.minimize(bowl, 12)
    whole = study(None)
    whole.minimize(bowl, 12)
    assert configs(turned) == configs(whole)


# -- found again ------------------------------------------------------------------------------------------------------


def test_settings_of_the_study_go_before_those_given(where, caplog):
    study(where, seed=7).minimize(bowl, 3)
    with caplog.at_level(logging.INFO, logger="shoestring"):
        again = study(where, seed=8)
    assert again.seed == 7
    assert "goes on with its own seed=7" in caplog.text


def test_of_two_that_begin_a_study_at_once_both_go_on_with_one_seed(where, monkeypatch):
    storage = open_storage(where)
    first = study(where, seed=None)
    monkeypatch.setattr(storage, "find", lambda name: None)  # as long as the first one had not begun it
    assert study(storage, seed=None).seed == first.seed


def test_a_study_that_maximizes_goes_on_maximizing(where):
    study(where).maximize(lambda config: -bowl(config), 4)
    again = study(where)
    assert again.direction == "maximize"
    again.maximize(lambda config: -bowl(config), 6)
    assert again.best.value == max(trial.value for trial in again.history)
    with pytest.raises(st.MethodError, match="begun to maximize"):
        again.minimize(bowl, 8)


@pytest.mark.parametrize(
    "code",
    [
        {"method": st.EIAlpha(0.5), "stop": st.RegretBound(0.01) | st.Patience(30) & st.EIBelow(0.1)},
        {"method": st.KG(), "stop": st.WorthIt(2.0), "cost_model": st.LinearCost(2)},
        {"model": st.GP(kernel="se", warp=True), "subset": st.KMeansSubset(10)},
        {"model": st.VFE(12), "subset": None},
        {},
    ],
)
def test_load_brings_the_code_along(where, code):
    study(where, **code).minimize(bowl, 2)
    again, fresh = st.Study.load(where), st.Study(SPACE, **({"stop": None} | code))
    for part in ("method", "rule", "model", "cost_model"):
        assert getattr(again, part) == getattr(fresh, part)


def test_a_study_goes_on_with_the_method_that_was_given_last(where):
    study(where, method=st.EI()).minimize(bowl, 2)
    study(where, method=st.KG()).minimize(bowl, 3)
    assert st.Study.load(where).method == st.Study(SPACE, method=st.KG()).method


def test_load_asks_for_code_of_which_there_is_no_text(where):
    known = st.KnownCost(lambda config: 1.0)
    study(where, cost_model=known)
    with pytest.raises(st.MethodError, match="cost_model"):
        st.Study.load(where)
    assert st.Study.load(where, cost_model=known).name == "bowl"


def test_a_stop_from_before_does_not_end_the_next_run(where):
    study(where).halt("enough")
    assert len(study(where).minimize(bowl, 3).history) == 3


def test_load_says_what_is_there(where):
    with pytest.raises(st.StudyError, match="there are: none"):
        st.Study.load(where)
    study(where)
    with pytest.raises(st.StudyError, match=r"no study 'cup'.*'bowl'"):
        st.Study.load(where, "cup")
    study(where, name="second")
    with pytest.raises(st.StudyError, match="which study"):
        st.Study.load(where)


# -- replay -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", st.EI(), st.Random(), st.EICool()])
def test_every_suggestion_comes_out_the_same_again(where, method):
    study(where, method=method).minimize(bowl, 12)
    found = st.Study.load(where).replay()
    assert (found.checked, found.first_difference) == (12, None)


def test_replay_of_trials_that_ran_side_by_side(where):
    one, other = study(where, method=st.EI(), initial=2), study(where, method=st.EI(), initial=2)
    held = []
    for step in range(12):
        asking = one if step % 2 else other
        held.append(asking.ask())
        if len(held) == 3:
            done = held.pop(step % 3)
            other.tell(done, bowl(done.config), cost=1.0)
    batch = one.ask_many(3)
    one.tell(batch[1], 0.5, cost=1.0)
    found = st.Study.load(where).replay()
    assert (found.checked, found.first_difference) == (15, None)


def test_replay_of_a_batch_with_an_enqueued_trial_while_another_process_tells(where, monkeypatch):
    one, other = study(where, method=st.EI(), initial=2), study(where, method=st.EI(), initial=2)
    for value in (0.1, 0.2, 0.4):
        one.tell(one.ask(), value, cost=1.0)
    held = other.ask()
    one.enqueue({"x": 0.77, "y": 0.1, "kind": "a"})
    write = one.storage.write

    def told_meanwhile(*arguments, **options):
        monkeypatch.undo()
        other.tell(held, -3.0, cost=1.0)
        return write(*arguments, **options)

    monkeypatch.setattr(one.storage, "write", told_meanwhile)
    one.ask_many(2)
    found = one.replay()
    assert (found.checked, found.first_difference) == (5, None)


def test_replay_names_the_first_that_differs(where):
    study(where, method=st.EI()).minimize(bowl, 10)
    found = st.Study.load(where, method=st.Random()).replay()
    number, how = found.first_difference
    assert number <= 9
    assert " was " in how


def test_enqueued_and_added_trials_are_passed_over(where):
    kept = study(where)
    kept.add({"x": 0.1, "y": 0.1, "kind": "a"}, 0.3, cost=1.0)
    kept.enqueue({"x": 0.2, "y": 0.1, "kind": "a"})
    kept.minimize(bowl, 5)
    found = kept.replay()
    assert (found.checked, found.passed_over, found.first_difference) == (3, 2, None)


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
