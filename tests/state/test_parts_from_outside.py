"""What objectives and rules from outside may do, and what they cannot break."""

import threading
from dataclasses import dataclass
from typing import ClassVar

import pytest

import shoestring as st
from shoestring.search.pruning import pruning_forecast
from shoestring.state.registry import METHODS, acquisition_class
from shoestring.state.suggester import LazyBelief

SPACE = st.Space(x=st.Float(0, 1))


@pytest.mark.parametrize("options", [{}, {"threads": True, "workers": 2}], ids=["alone", "threads"])
def test_an_objective_that_changes_its_live_trial_does_not_change_the_study(options):
    def objective(config, trial):
        trial.config["x"] = 0.5
        config["x"] = 0.25
        return 1.0

    result = st.minimize(objective, SPACE, 6, method=st.Random(), progress=False, **options)
    assert len({trial.config["x"] for trial in result.history}) == 6
    assert result.study.replay().first_difference is None


def test_a_view_that_is_taken_while_a_trial_is_written_is_not_kept():
    study = st.Study(SPACE, st.Random())
    state, put, seen = study.state, study.state.table.put, []

    def looked_at_in_between(row, trial):
        put(row, trial)
        thread = threading.Thread(target=lambda: seen.append(len(state.history)))
        thread.start()
        thread.join()

    state.table.put = looked_at_in_between
    trial = study.ask()
    assert len(state.history) == 1
    study.tell(trial, 1.0)
    assert state.history.best.value == 1.0
    assert study.ask().number == 1


INFORMATION_SEEKERS = {"KG", "CFKG", "DKG", "CFDKG", "StochasticKG", "TraceKG", "ES", "PES", "MES", "BOCA"}


def test_the_methods_that_seek_information_are_these():
    assert {name for name in METHODS if acquisition_class(name).seeks_information} == INFORMATION_SEEKERS


@dataclass(frozen=True)
class Curious(st.Acquisition):
    seeks_information: ClassVar[bool] = True

    def select(self, belief, optimizer):
        return st.Selection(optimizer.candidates(1)[0])


def test_a_class_without_a_registered_name_is_known_by_its_study(monkeypatch):
    asked = []

    def spy(context, trial, reports, *, seeks_information, **options):
        asked.append(seeks_information)
        return pruning_forecast(context, trial, reports, seeks_information=seeks_information, **options)

    monkeypatch.setattr("shoestring.state.suggester.pruning_forecast", spy)
    study = st.Study(SPACE, Curious(), initial=1)
    for _ in range(3):
        trial = study.ask()
        study.pruning_forecast(trial, [])
        study.tell(trial, trial.config["x"])
    assert asked == [True, True, True]


def test_with_confirm_a_running_trial_may_not_use_what_is_kept_for_the_confirmation():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    left = []

    def objective(config, trial):
        left.append(trial.left().cost)
        return st.Outcome((config["x"] - 0.3) ** 2 + 1 / config["epochs"], cost=float(config["epochs"]))

    result = st.minimize(objective, space, st.Budget(cost=60.0), method=st.Random(), confirm=True, progress=False)
    spent = 0.0
    for trial, rest in list(zip(result.history, left, strict=True))[4:-3]:
        spent = sum(each.cost for each in result.history[: trial.number])
        assert rest < 60.0 - spent


class Never:
    def __init__(self):
        self.beliefs = []

    def check(self, history, belief):
        self.beliefs.append(belief)
        return st.Verdict(False, "no")


def test_a_rule_from_outside_costs_no_fit_unless_it_looks_at_the_belief(monkeypatch):
    fits, fit, rule = [], st.GP.fit, Never()
    monkeypatch.setattr(st.GP, "fit", lambda *args, **options: fits.append(1) or fit(*args, **options))
    study = st.Study(SPACE, st.Random(), stop=rule)
    study.minimize(lambda config: config["x"], 5, progress=False)
    assert fits == []
    assert rule.beliefs[0] is None
    assert isinstance(rule.beliefs[-1], LazyBelief)
    assert rule.beliefs[-1].incumbent < 3.0
    assert fits


@dataclass(frozen=True)
class Vandal(st.StopRule):
    def check(self, history, belief=None):
        for trial in history:
            trial.config["x"] = 0.5
        return st.Verdict(False, "no")


def test_a_rule_from_outside_gets_copies():
    result = st.minimize(lambda config: config["x"], SPACE, 5, method=st.Random(), stop=Vandal(), progress=False)
    assert 0.5 not in {trial.config["x"] for trial in result.history}


class SaysTrue:
    def check(self, history, belief):
        return True


def test_a_rule_that_returns_no_verdict_is_named_before_the_first_trial():
    calls = []
    with pytest.raises(st.MethodError, match=r"SaysTrue.check must return st\.Verdict"):
        st.minimize(calls.append, SPACE, 5, stop=SaysTrue(), progress=False)
    assert calls == []


class Selecting(st.SearchMethod):
    def select(self):
        return 0.5

    def suggest(self, context):
        return st.Suggestion({"x": self.select() / (context.number + 1)}, by="Selecting", why="a test")


def test_a_search_method_may_have_a_method_called_select():
    assert st.Study(SPACE, Selecting()).ask().config == {"x": 0.5}


def test_the_error_of_a_trial_names_the_users_file():
    result = st.minimize(lambda config: st.Space(x=st.Float("low", 1)), SPACE, 1, progress=False)
    assert "test_parts_from_outside.py" in result.history[0].error


def test_a_stored_study_that_was_not_read_yet_says_so(tmp_path):
    url = f"sqlite:///{tmp_path}/tune.db"
    st.minimize(lambda config: config["x"], SPACE, 3, storage=url, name="three", progress=False)
    assert "3 trials in" in repr(st.Study.load(url, "three"))


@pytest.mark.parametrize("bad", [None, 5, "[]", "{}", "no json"], ids=repr)
def test_what_is_no_study_is_refused(bad):
    with pytest.raises(st.StudyError):
        st.Study.from_json(bad)


@dataclass(frozen=True)
class Posterior:
    theta: tuple = ()
    parts: tuple = ()


class HalfACostModel(st.CostModel):
    def fit(self, costs, encoding, warm_start=None):
        return Posterior()


def test_a_cost_model_that_cannot_predict_is_refused_when_the_study_is_made():
    with pytest.raises(st.MethodError, match="log_cost"):
        st.Study(SPACE, cost_model=HalfACostModel())


@dataclass(frozen=True)
class FlatCost(st.CostModel):
    level: float = 1.0

    def fit(self, costs, encoding, warm_start=None):
        return st.LinearCost().fit(costs, encoding, warm_start)


def test_a_registered_cost_model_may_be_named_in_a_rule(tmp_path):
    st.register(FlatCost)
    url = f"sqlite:///{tmp_path}/tune.db"
    st.Study(SPACE, stop=st.WorthIt(1.0, cost_model=FlatCost(2.0)), storage=url, name="priced")
    assert st.Study.load(url, "priced").rule == st.WorthIt(1.0, cost_model=FlatCost(2.0))
