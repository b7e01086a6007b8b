"""ShoestringSearch as the search algorithm of Ray Tune. Needs ray[tune].

    python examples/ray_tune_search.py             on a local Ray
    python examples/ray_tune_search.py without-ray the same calls that Tune makes, in this process

Tune runs the trials and keeps their results. The study chooses the configs, knows what each has cost, and ends the experiment.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import shoestring as st


def losses(config: dict[str, Any]) -> Iterator[float]:
    """Learning curves that stand in for a training: a loss after each epoch."""
    for epoch in range(1, 6):
        yield (config["lr"] - 0.1) ** 2 + 0.02 * abs(config["model"]["layers"] - 3) + 0.3 / epoch


def train(config: dict[str, Any]) -> None:
    from ray import tune

    for loss in losses(config):
        tune.report({"loss": loss})


def with_ray(search: Any, space: dict[str, Any]) -> None:
    from ray import tune

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with st.RayExecutor(), tempfile.TemporaryDirectory() as folder:  # starts Ray on this machine, and ends it
        tuner = tune.Tuner(
            train,
            param_space=space,
            tune_config=tune.TuneConfig(
                search_alg=search, metric="loss", mode="min",
                num_samples=-1,  # the search says when it is finished
                max_concurrent_trials=2,
            ),
            run_config=tune.RunConfig(name="demo", storage_path=folder, verbose=0),
        )  # fmt: skip
        results = tuner.fit()
        print(f"Ray Tune ran {len(results)} trials; its best loss is {results.get_best_result().metrics['loss']:.4f}")


def without_ray(search: Any, space: dict[str, Any]) -> None:
    search.set_search_properties("loss", "min", space)
    number = 0
    while isinstance(config := search.suggest(f"trial{number}"), dict):
        result: dict[str, Any] = {}
        for epoch, loss in enumerate(losses(config), start=1):
            result = {"loss": loss, "training_iteration": epoch, "time_total_s": 2.0 * epoch}
            search.on_trial_result(f"trial{number}", result)
        search.on_trial_complete(f"trial{number}", result)
        number += 1


def main() -> None:
    try:
        from ray import tune

        from shoestring.integrations.ray_tune import ShoestringSearch
    except ImportError as error:
        print(f"{error}\nno best config: nothing was run")
        return
    space = {"lr": tune.loguniform(1e-3, 1.0), "model": {"layers": tune.randint(1, 7)}, "epochs": 5}
    search = ShoestringSearch(budget=10, seed=0)
    (without_ray if "without-ray" in sys.argv else with_ray)(search, space)
    best = search.study.best
    print(f"best    {best.value:.4f} with {best.config}")
    print(f"spent   {search.study.history.spent:.1f} s on {len(search.study.history)} trials")
    print(f"stopped {search.stop_reason}")


if __name__ == "__main__":
    main()
