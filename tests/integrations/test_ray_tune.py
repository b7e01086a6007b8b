"""ShoestringSearch as a searcher of Ray Tune: driven by Tune's own classes, and once (slow) by a real local Ray."""

import json
import os
import pickle
import warnings

import pytest

import shoestring as st

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Ray has warnings of its own, of many kinds
    tune = pytest.importorskip("ray.tune", reason="ray[tune] is not installed", exc_type=ImportError)
    from ray.tune.search import ConcurrencyLimiter, Repeater, Searcher, SearchGenerator

    from shoestring.integrations.ray_tune import ShoestringSearch

pytestmark = pytest.mark.filterwarnings("ignore")

SPACE = {"lr": tune.uniform(0.0, 1.0), "model": {"depth": tune.randint(1, 5)}, "seed": 7}


def searcher(**options):
    options = {"metric": "loss", "mode": "min", "method": st.Random(), "stop": None, **options}
    return ShoestringSearch(options.pop("space", SPACE), **options)


def run(search, trial_id):
    config = search.suggest(trial_id)
    if isinstance(config, dict):
        loss = (config["lr"] - 0.3) ** 2 + 0.01 * config["model"]["depth"]
        search.on_trial_result(trial_id, {"loss": loss + 1, "training_iteration": 1, "time_total_s": 1.0})
        search.on_trial_complete(trial_id, {"loss": loss, "training_iteration": 2, "time_total_s": 2.0})
    return config


@pytest.mark.parametrize("wrong", [{"method": "EEI"}, {"stop": "sometimes"}, {"cost_model": "cheap"}])
def test_a_wrong_method_rule_or_cost_model_is_an_error_at_once(wrong):
    with pytest.raises(st.MethodError, match=next(iter(wrong.values()))):
        searcher(**wrong)


def test_a_budget_in_dollars_needs_a_cost_or_a_price_when_the_search_is_made():
    with pytest.raises(st.MethodError, match=r"costs are in USD, but cost='time_total_s' counts seconds; .* per_hour=2\.5"):
        searcher(budget="5 USD")
    assert searcher(budget="5 USD", per_hour=2.0).study.unit == searcher(budget="5 USD", cost="dollars").study.unit == "USD"


def test_it_is_a_searcher_that_ends_with_tune_s_word():
    search = searcher(budget=2)
    assert isinstance(search, Searcher)
    assert [isinstance(run(search, str(i)), dict) for i in range(2)] == [True, True]
    assert search.suggest("2") == Searcher.FINISHED
    assert search.stop_reason == "the budget of 2 trials is used up"
    assert search.verdict.kind == "budget"
    assert [len(trial.reports) for trial in search.study.history] == [1, 1]


def test_space_metric_and_mode_come_from_the_tuner():
    search = ShoestringSearch(method=st.Random())
    assert search.set_search_properties("score", "max", SPACE, num_samples=3)
    assert (search.metric, search.mode) == ("score", "max")
    assert set(search.suggest("a")) == {"lr", "model"}
    assert search.study.direction == "maximize"
    assert not search.set_search_properties("score", "max", SPACE)  # Tune says then that the space is there already


def test_with_a_space_of_its_own_it_still_takes_metric_and_mode():
    search = ShoestringSearch(st.Space(x=st.Float(0, 1)), method=st.Random())
    assert not search.set_search_properties("loss", "min", {"constant": 1})
    assert set(search.suggest("a")) == {"x"}


def test_what_is_missing_or_wrong_is_said():
    with pytest.raises(st.SpaceError, match="there is no search space; give Tuner"):
        ShoestringSearch(metric="loss", mode="min").suggest("a")
    with pytest.raises(st.MethodError, match="there is no mode"):
        ShoestringSearch(SPACE, metric="loss").suggest("a")
    with pytest.raises(st.MethodError, match='mode must be "min" or "max", not \'low\''):
        ShoestringSearch(mode="low")
    with pytest.raises(st.MethodError, match="one objective"):
        ShoestringSearch(metric=["a", "b"], mode=["min", "min"])
    with pytest.raises(st.MethodError, match="metric is 'loss' in ShoestringSearch and 'score' in the TuneConfig"):
        ShoestringSearch(metric="loss").set_search_properties("score", "min", SPACE)
    with pytest.raises(st.SpaceError, match="nothing to search"):
        ShoestringSearch().set_search_properties("loss", "min", {"constant": 1})
    conditional = {"x": st.Choice("a", "b"), "y": st.Float(0, 1, when={"x": "a"})}
    with pytest.raises(st.SpaceError, match="y: a conditional parameter cannot be in param_space"):
        ShoestringSearch().set_search_properties("loss", "min", conditional)
    with pytest.raises(st.SpaceError, match=r"space= must be an st.Space or a dict"):
        ShoestringSearch([1, 2])
    with pytest.raises(st.MethodError, match="cost= must be a key of the results"):
        ShoestringSearch(cost=3)


def test_objects_as_options_reach_the_trainable_as_they_are():
    space = {"act": tune.choice([max, min]), "layers": tune.choice([(8, 8), (4,)]), "lr": tune.uniform(0, 1)}
    search = searcher(space=space, points_to_evaluate=[{"act": min, "layers": (4,), "lr": 0.5}])
    assert search.suggest("a") == {"act": min, "layers": (4,), "lr": 0.5}
    assert search.suggest("b")["act"] in (max, min)


def test_a_conditional_parameter_is_absent_where_it_is_not_active():
    space = st.Space(kind=st.Choice("a", "b"), x=st.Float(0, 1, when={"kind": "a"}))
    search = searcher(space=space, points_to_evaluate=[{"kind": "b"}])
    assert search.suggest("a") == {"kind": "b"}


def test_a_restored_searcher_makes_the_same_next_suggestion(tmp_path):
    search = searcher(method=st.EI(), initial=3)
    for i in range(5):
        run(search, str(i))
    search.save_to_dir(str(tmp_path), "now")  # as Tune does
    same, bare = searcher(method=st.EI(), initial=3), ShoestringSearch(method=st.EI(), stop=None)
    copied = pickle.loads(pickle.dumps(search))
    for each in (same, bare):
        each.restore_from_dir(str(tmp_path))
    assert search.suggest("next") == same.suggest("next") == bare.suggest("next") == copied.suggest("next")
    assert (bare.metric, bare.mode) == ("loss", "min")


def test_a_searcher_that_has_not_begun_can_be_saved_pickled_and_restored(tmp_path):
    fresh = ShoestringSearch(budget=3)
    fresh.save(str(tmp_path / "state"))
    other = pickle.loads(pickle.dumps(fresh))
    other.restore(str(tmp_path / "state"))
    assert other.set_search_properties("loss", "min", SPACE)
    assert isinstance(other.suggest("a"), dict)


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "state").write_text("no state")
    with pytest.raises(st.MethodError, match=r"is not a file that save\(\) wrote"):
        searcher().restore(str(tmp_path / "state"))
    (tmp_path / "state").write_text('{"shoestring_tune": 1}')
    for search in (searcher(), ShoestringSearch()):
        with pytest.raises(st.StudyError, match=r"is not complete: metric, .* missing or damaged; give the file"):
            search.restore(str(tmp_path / "state"))


def test_results_of_earlier_trials_are_learned_from():
    search = searcher()
    search.add_evaluated_point({"lr": 0.5, "model": {"depth": 2}}, 0.1)
    search.add_evaluated_point({"lr": 0.6, "model": {"depth": 2}}, 0.0, pruned=True)
    search.add_evaluated_point({"lr": 0.7, "model": {"depth": 2}}, 0.0, error=True)
    assert [trial.state for trial in search.study.history] == [st.State.DONE, st.State.FAILED]


def test_tune_s_limiter_and_repeater_work_around_it():
    limited = ConcurrencyLimiter(searcher(), max_concurrent=1)
    first = limited.suggest("a")
    assert limited.suggest("b") is None
    limited.on_trial_complete("a", {"loss": 1.0, "time_total_s": 1.0})
    assert limited.suggest("b") not in (None, first)
    inner = searcher()
    repeated = Repeater(inner, repeat=2)
    assert repeated.suggest("a")["lr"] == repeated.suggest("b")["lr"]
    for trial_id, loss in (("a", 1.0), ("b", 3.0)):
        repeated.on_trial_complete(trial_id, {"loss": loss, "time_total_s": 1.0})
    assert [trial.value for trial in inner.study.history] == [2.0]


def test_tune_s_generator_makes_trials_until_it_is_finished(tmp_path):
    def trainable(config):
        return {"loss": config["lr"]}

    generator = SearchGenerator(searcher(space=None, budget=3, metric=None, mode=None))
    assert generator.set_search_properties("loss", "min", SPACE)
    experiment = tune.Experiment("demo", trainable, config=SPACE, num_samples=2**62, storage_path=str(tmp_path))
    generator.add_configurations([experiment])
    made = []
    while not generator.is_finished() and len(made) < 9:
        if (trial := generator.next_trial()) is not None:
            made.append(trial)
            generator.on_trial_complete(trial.trial_id, {"loss": trial.config["lr"], "time_total_s": 1.0})
    assert len(made) == 3
    assert all(trial.config["seed"] == 7 and 0 <= trial.config["lr"] <= 1 for trial in made)


@pytest.mark.slow
def test_a_real_ray_runs_fails_stops_and_goes_on(tmp_path, monkeypatch):
    """An experiment on a local Ray, with a trial that fails; then it is restored and continued with a larger budget."""
    monkeypatch.setenv("RAY_AIR_NEW_OUTPUT", "0")

    def train(config):
        if config["lr"] > 0.99:
            raise ValueError("diverged")
        for epoch in range(1, 4):
            tune.report({"loss": (config["lr"] - 0.3) ** 2 + 1 / epoch})

    with st.RayExecutor():  # starts a local Ray on loopback
        first = [{"lr": 1.0, "model": {"depth": 1}}]
        search = ShoestringSearch(budget=4, method=st.Random(), stop=None, points_to_evaluate=first)
        config = tune.TuneConfig(search_alg=search, metric="loss", mode="min", num_samples=-1, max_concurrent_trials=2)
        where = tune.RunConfig(name="demo", storage_path=str(tmp_path), verbose=0)
        grid = tune.Tuner(train, param_space=SPACE, tune_config=config, run_config=where).fit()
        assert len(grid) == 4
        assert search.stop_reason == "the budget of 4 trials is used up"
        states = [trial.state for trial in search.study.history]
        assert (states.count(st.State.FAILED), states.count(st.State.DONE)) == (1, 3)
        best = grid.get_best_result()
        assert best.metrics["loss"] == search.study.best.value
        assert best.config["seed"] == 7
        done = [trial for trial in search.study.history if trial.state is st.State.DONE]
        assert all(len(trial.reports) == 3 and 0 < trial.cost < 60 for trial in done)

        again = ShoestringSearch(budget=5, method=st.Random(), stop=None, space=SPACE, metric="loss", mode="min")
        again.restore_from_dir(os.path.join(str(tmp_path), "demo"))
        assert [trial.value for trial in again.study.history] == [trial.value for trial in search.study.history]
        search.study.budget = 5
        assert again.suggest("next") == search.suggest("next")
        names = [name for name in os.listdir(tmp_path / "demo") if name.startswith("searcher-state")]
        assert json.loads((tmp_path / "demo" / names[0]).read_text())["metric"] == "loss"

        restored = tune.Tuner.restore(str(tmp_path / "demo"), trainable=train, restart_errored=True)
        assert len(restored.fit()) == 4  # the failed one is run again, and fails again


@pytest.mark.parametrize("text", ["{}", "[1]"])
def test_a_file_that_is_no_saved_search_is_refused(tmp_path, text):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(st.StudyError, match=r"not the state of a ShoestringSearch .* give the file that save\(\) wrote"):
        ShoestringSearch().restore(str(tmp_path / "other.json"))
