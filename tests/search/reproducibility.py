"""What every search method promises, as checks that their tests share."""

import shoestring as st
from tests.problems import mixed_space


def configs(study):
    return [trial.config for trial in study.history]


def same_seed_same_trials(method, objective, count, space=None):
    space = space or mixed_space()
    first, again = (configs(st.minimize(objective, space, count, method=method, seed=1, initial=5)) for _ in range(2))
    other = configs(st.minimize(objective, space, 6, method=method, seed=2, initial=5))
    assert first == again
    assert first[:6] != other


def stored_and_read_it_goes_on_alike(method, objective, k, count, space=None):
    whole, part = (st.Study(space or mixed_space(), method, seed=1, initial=5) for _ in range(2))
    whole.minimize(objective, count)
    part.minimize(objective, k)
    rest = st.Study.from_json(part.to_json(), method)
    rest.minimize(objective, count)
    assert configs(rest) == configs(whole)
    assert [trial.suggestion for trial in rest.history] == [trial.suggestion for trial in whole.history]
