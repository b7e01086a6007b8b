"""Runs that go on: which trial continues which, and what each has paid."""

import numpy as np
import pytest

import shoestring as st
from shoestring.data.dataset import to_dataset
from shoestring.data.training_run import idle_starts, started_rows, training_runs

SPACE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50, resumable=True))


def study(space=SPACE, **options):
    return st.Study(space, method=st.Random(), **options)


def ask(study, x, epochs, **more):
    study.enqueue({"x": x, "epochs": epochs, **more})
    return study.ask()


def tell(study, x, epochs, cost, **more):
    return study.tell(ask(study, x, epochs, **more), 1 / epochs, cost=cost)


def test_a_config_that_is_asked_at_more_epochs_goes_on_from_the_trial_before():
    own = study()
    tell(own, 0.5, 10, cost=10)
    trial = tell(own, 0.5, 50, cost=40)
    assert trial.resumed_from == (0, {"epochs": 10}, 10.0)
    assert tell(own, 0.25, 50, cost=50).resumed_from is None  # another config
    assert own.result.spent == 100.0


def test_what_was_paid_before_is_the_sum_over_the_run():
    own = study()
    for epochs, cost in ((5, 5), (10, 5), (40, 30)):
        trial = tell(own, 0.5, epochs, cost)
    assert trial.resumed_from == (1, {"epochs": 10}, 10.0)
    assert own.history.spent == 40.0


def test_the_cost_model_learns_the_cost_of_runs_from_their_start():
    own = study()
    for epochs, cost in ((5, 5), (10, 5), (40, 30)):
        tell(own, 0.5, epochs, cost)
    data = to_dataset(own.history)
    assert np.exp(data.log_cost) == pytest.approx([5, 10, 40])
    assert not data.censored.any()


def test_a_cost_that_is_not_known_makes_that_of_the_whole_run_unknown():
    own = study(unit="USD")
    own.add({"x": 0.1, "epochs": 3}, 0.5, cost=3.0)
    with_cost = ask(own, 0.5, 10)
    own.state.close(with_cost.finish(st.State.DONE, value=0.5))  # without a cost
    trial = tell(own, 0.5, 20, cost=10)
    assert trial.resumed_from == (1, {"epochs": 10}, None)
    assert np.exp(to_dataset(own.history).log_cost) == pytest.approx([3.0])


def test_a_lower_or_equal_fidelity_begins_a_new_run_in_a_folder_of_its_own(tmp_path):
    own = study(checkpoints=tmp_path)
    first = tell(own, 0.5, 20, cost=20)
    again = tell(own, 0.5, 20, cost=20)
    lower = tell(own, 0.5, 10, cost=10)
    assert again.resumed_from is None
    assert lower.resumed_from is None
    folders = {own.checkpoint_dir(trial) for trial in (first, again, lower)}
    assert len(folders) == 3
    onwards = tell(own, 0.5, 30, cost=10)
    assert onwards.resumed_from.number in (first.number, again.number)
    assert own.checkpoint_dir(onwards) == own.checkpoint_dir(onwards.resumed_from.number)


def test_two_trials_that_run_at_once_never_share_a_folder(tmp_path):
    own = study(checkpoints=tmp_path)
    tell(own, 0.5, 10, cost=10)
    one, other = ask(own, 0.5, 30), ask(own, 0.5, 50)
    assert one.resumed_from.number == 0
    assert other.resumed_from is None
    assert own.checkpoint_dir(one) != own.checkpoint_dir(other)
    own.tell(one, 0.1, cost=20)
    assert ask(own, 0.5, 40).resumed_from == (1, {"epochs": 30}, 30.0)


def test_a_trial_that_failed_is_gone_on_with_from_what_was_reached_before_it():
    own = study()
    tell(own, 0.5, 10, cost=10)
    own.tell(ask(own, 0.5, 50), error="out of memory", cost=12)
    trial = tell(own, 0.5, 50, cost=28)  # the failed one may have saved some of its epochs
    assert trial.resumed_from == (0, {"epochs": 10}, 10.0)
    assert trial.suggestion["interrupted"]
    data = to_dataset(own.history)
    assert data.censored.tolist() == [False, False, True]  # what the run has cost from its start is a lower bound
    assert own.result.spent == 50.0


def test_other_fidelities_must_be_equal(tmp_path):
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50, resumable=True), rows=st.Fidelity(0.1, 1.0))
    own = study(space, checkpoints=tmp_path)
    few = tell(own, 0.5, 10, cost=1, rows=0.1)
    assert tell(own, 0.5, 20, cost=2, rows=1.0).resumed_from is None
    assert tell(own, 0.5, 20, cost=1, rows=0.1).resumed_from == (0, {"epochs": 10}, 1.0)
    assert own.checkpoint_dir(few) != own.checkpoint_dir(1)
    assert own.checkpoint_dir(few) == own.checkpoint_dir(2)


def test_a_result_from_elsewhere_is_not_gone_on_with():
    own = study()
    own.add({"x": 0.5, "epochs": 10}, 0.1, cost=10)
    assert tell(own, 0.5, 50, cost=50).resumed_from is None


def test_a_config_that_differs_by_rounding_alone_is_the_same():
    space = st.Space(lr=st.Float(1e-5, 1.0, log=True), epochs=st.Fidelity(1, 50, resumable=True))
    own = study(space)
    own.enqueue({"lr": 0.1, "epochs": 10})
    own.tell(own.ask(), 0.5)
    own.enqueue({"lr": 0.1 * (1 + 1e-14), "epochs": 20})
    trial = own.ask()
    assert trial.resumed_from.number == 0
    assert trial.config == {"lr": 0.1, "epochs": 20}  # so that it finds the folder


@pytest.mark.parametrize("resumable", [None, False])
def test_nothing_goes_on_unless_it_is_said_or_files_were_saved(resumable):
    own = study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50, resumable=resumable)))
    tell(own, 0.5, 10, cost=10)
    trial = tell(own, 0.5, 50, cost=50)
    assert trial.resumed_from is None
    assert not {"run", "resumed_from"} & trial.suggestion.keys()
    assert np.exp(to_dataset(own.history).log_cost) == pytest.approx([10, 50])


def test_runs_that_may_go_on_are_those_below_the_target_whose_files_are_there():
    own = study()
    tell(own, 0.25, 10, cost=10)
    tell(own, 0.25, 20, cost=10)
    tell(own, 0.5, 50, cost=50)
    tell(own, 0.75, 5, cost=5)
    assert started_rows(own.history) == [1, 3]
    assert [run.complete for run in training_runs(own.history)] == [False, True, False]
    own.state.forget_checkpoints([3])
    assert started_rows(own.state.history) == [1]
    pending = ask(own, 0.25, 30)
    data = to_dataset(own.state.history)
    assert len(data.started) == 1
    assert len(idle_starts(data.started, data.pending, own.space)) == 0  # it is running
    own.tell(pending, 0.1, cost=10)
    assert started_rows(own.state.history) == [4]


def test_a_trial_that_began_from_the_start_after_all_counts_as_a_whole_run(caplog):
    def forgetful(config, trial):
        for epoch in (1, config["epochs"]):
            trial.report(1 / epoch, epoch)
        return st.Outcome(1 / config["epochs"], cost=config["epochs"])

    own = study()
    for epochs in (10, 50):
        own.enqueue({"x": 0.5, "epochs": epochs})
    result = own.minimize(forgetful, 2)
    assert result.history[1].resumed_from is None
    assert np.exp(to_dataset(result.history).log_cost[:2]) == pytest.approx([10, 50])
    assert "trial 1 was to go on from trial 0" in caplog.text


def test_the_costs_of_reports_count_from_the_start_of_the_run():
    def train(config, trial):
        done = 0 if trial.resumed_from is None else trial.resumed_from.fidelity["epochs"]
        for epoch in range(done + 1, config["epochs"] + 1):
            trial.report(1 / epoch, epoch, cost=epoch - done)
        return 1 / epoch

    own = study()
    for epochs in (4, 8):
        own.enqueue({"x": 0.5, "epochs": epochs})
    own.minimize(train, 2)
    data = to_dataset(own.history)
    epochs = own.space["epochs"].values(data.cost_points[:, 1])
    assert np.exp(data.log_cost) == pytest.approx(epochs)
    assert {5, 6, 7} <= set(epochs.tolist())
