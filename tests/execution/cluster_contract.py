"""What the executors of Dask and Ray must both do: run each trial once, cache nothing, and end what is cancelled or hangs.

Objectives that hold something are defined inside functions, so that they are serialized by value.
"""

import os
import signal
import time

import shoestring as st
from tests.execution.helpers import SPACE, alive, states, until


def bowl(config):
    return st.Outcome((config["x"] - 0.3) ** 2, cost=1.0 + config["x"])


def gives_the_trials_of_a_local_run(executor):
    def trials(**options):
        history = st.Study(SPACE, seed=3, initial=4).minimize(bowl, 7, **options).history
        return [(trial.config, trial.value, trial.cost) for trial in history]

    assert trials(executor=executor, workers=1) == trials()


def runs_a_killer_once_and_once_for_each_retry(executor, folder):
    """The error of its first trial."""

    def objective(config):
        with (folder / "runs").open("a") as file:
            file.write(".")
        os.kill(os.getpid(), signal.SIGKILL)

    history = st.Study(SPACE, st.Random()).minimize(objective, 2, executor=executor, workers=1, retries=1).history
    assert (folder / "runs").read_text() == ".."
    assert states(history) == ["failed"] * 2
    assert history[0].config == history[1].config
    assert all(trial.cost > 0 for trial in history)
    return history[0].error


def gives_three_results_for_the_same_config(executor, folder):
    def objective(config):
        with (folder / "runs").open("a") as file:
            file.write(".")
        return float((folder / "runs").stat().st_size)

    study = st.Study(SPACE, st.Random())
    for _ in range(3):
        study.enqueue({"x": 0.5})
    history = study.minimize(objective, 3, executor=executor, workers=1).history
    assert [trial.value for trial in history] == [1.0, 2.0, 3.0]


def ends_what_is_cancelled(executor, folder):
    def objective(config, trial):
        if config["x"] == 0.5:
            (folder / str(os.getpid())).touch()
            time.sleep(1000)
        until(lambda: list(folder.iterdir()))
        return 0.5

    def callback(study, trial):
        raise KeyboardInterrupt

    study = st.Study(SPACE, st.Random())
    study.enqueue({"x": 0.5})
    result = study.minimize(objective, 4, executor=executor, workers=2, callbacks=callback, on_interrupt="return")
    assert result.stop.kind == "interrupted"
    assert sorted(states(result.history))[0] == "abandoned"
    (pid,) = [int(path.name) for path in folder.iterdir()]
    until(lambda: not alive(pid))
    assert study.ask().config == {"x": 0.5}


def ends_what_hangs(executor):
    study = st.Study(SPACE, st.Random())
    study.enqueue({"x": 0.5})
    objective = lambda config: time.sleep(1000 * (config["x"] == 0.5)) or 0.5  # noqa: E731
    history = study.minimize(objective, 2, executor=executor, workers=2, timeout=1).history
    assert states(history) == ["failed", "done"]
    assert history[0].error == "timed out after 1 s"
    assert history[0].censored


def goes_on_with_a_run(executor, folder):
    def objective(config, trial):
        state = trial.checkpoint_dir / "epochs"
        done = int(state.read_text()) if state.exists() else 0
        assert done == (0 if trial.resumed_from is None else trial.resumed_from.fidelity["epochs"])
        state.write_text(str(config["epochs"]))
        return st.Outcome(0.5, cost=config["epochs"] - done)

    study = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50, resumable=True)), st.Random(), checkpoints=folder)
    for epochs in (10, 50):
        study.enqueue({"x": 0.5, "epochs": epochs})
        result = study.minimize(objective, len(study.history) + 1, executor=executor, workers=1, raise_errors=True)
    assert [trial.cost for trial in result.history] == [10, 40]
    assert result.history[1].resumed_from == (0, {"epochs": 10}, 10.0)
