import pytest

import shoestring as st
from shoestring.execution.runner import check_budget
from tests.problems import bowl, plane


def paid_study(count):
    study = st.Study(plane(), st.Random())
    study.minimize(lambda config: st.Outcome(bowl(config), cost=1.0), count)
    return study


@pytest.mark.parametrize(
    ("budget", "stop", "said"),
    [
        (st.Budget(trials=5), True, "5 trials"),
        (st.Budget(trials=6), False, "left"),
        (st.Budget(cost=5.0, unit="USD"), True, "5 USD"),
        (st.Budget(cost=5.1), False, "left"),
        (st.Budget(seconds=7), True, "7 s"),
        (st.Budget(seconds=8), False, "left"),
        (st.Budget(trials=6, cost=4.0, seconds=100), True, "4 s"),
    ],
)
def test_whichever_limit_is_reached_first_ends_it(budget, stop, said):
    verdict = check_budget(budget, paid_study(5).history, 7.5)
    assert bool(verdict) is verdict.stop is stop
    assert said in verdict.reason
    assert verdict.evidence["trials"] == 5
    assert verdict.evidence["cost"] == 5.0


def test_running_trials_count_and_abandoned_ones_do_not():
    study = paid_study(2)
    study.ask()
    assert check_budget(st.Budget(trials=3), study.history, 0.0)

    def interrupt(config):
        raise KeyboardInterrupt

    other = paid_study(2)
    other.minimize(interrupt, 5, on_interrupt="return")
    assert len(other.history) == 3
    assert not check_budget(st.Budget(trials=3), other.history, 0.0)
