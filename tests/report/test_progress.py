import pytest

import shoestring as st
from shoestring.report.progress import ProgressLine, progress_for, progress_line
from tests.problems import bowl, plane, told_study


@pytest.mark.parametrize(
    ("budget", "parts"),
    [
        (st.Budget(trials=20), ["5 trials of 20", "spent 5 s", "best 0."]),
        (st.Budget(cost=40, unit="s"), ["spent 5 s of 40 s", "5 trials"]),
        (st.Budget(cost=9, unit="USD"), ["spent 5 USD of 9 USD"]),
        (st.Budget(seconds=600), ["of 10 m 00 s"]),
    ],
)
def test_the_line_says_what_was_spent_and_what_was_found(budget, parts):
    text = progress_line(told_study(plane(), bowl, 5, unit=budget.unit or "s").state, budget)
    assert "\n" not in text
    for part in parts:
        assert part in text


def test_before_the_first_result():
    assert "no result yet" in progress_line(st.Study(plane()).state, st.Budget(trials=3))


def test_the_expected_gain_of_the_present_trial_is_shown():
    study = told_study(plane(), bowl, 12)
    before = progress_line(study.state, st.Budget(trials=20))
    study.ask()
    assert "gain" not in before
    assert "gain" in progress_line(study.state, st.Budget(trials=20))


def test_silent_in_a_pipe_and_live_when_wanted():
    for wanted, kind in ((None, type(None)), (False, type(None)), (True, ProgressLine)):
        with progress_for(wanted) as shown:
            assert isinstance(shown, kind)


def test_a_pipe_stays_clean(capfd):
    st.minimize(bowl, plane(), 3)
    assert capfd.readouterr() == ("", "")


def test_a_live_line_writes_to_standard_error_only(capfd):
    st.minimize(bowl, plane(), 3, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in err
