"""Log lines: one a trial, shown on standard error until the user configures logging."""

import contextlib
import logging
import sys

import pytest

import shoestring as st
from shoestring.data.trial import State
from shoestring.report import trial_log
from shoestring.report.trial_log import configure_logging, log_trial, one_line, set_verbosity, trial_text
from tests.problems import bowl, plane

log = logging.getLogger("shoestring")


@pytest.fixture(autouse=True)
def _without_our_handler():
    yield
    trial_log._step_back()


@contextlib.contextmanager
def logging_not_configured():
    """Without the handlers that pytest puts on the root logger."""
    root = logging.getLogger()
    handlers, root.handlers, level = root.handlers, [], root.level
    try:
        yield root
    finally:
        root.handlers = handlers
        root.setLevel(level)


def three_trials(**options):
    """A study with a result, a better one, and a failure."""
    study = st.Study(st.Space(lr=st.Float(0, 1), depth=st.Int(1, 9)), method=st.Random(), **options)
    study.enqueue({"lr": 0.5, "depth": 3})
    study.enqueue({"lr": 0.001, "depth": 5})
    study.tell(study.ask(), 0.5, cost=12.0)
    study.tell(study.ask(), 0.031213, cost=70.0)
    study.enqueue({"lr": 0.25, "depth": 1})
    study.tell(study.ask(), error="KeyError: 'lr' (train.py, line 12)", cost=3.0)
    return study.history


def run(count=3, **options):
    return st.minimize(bowl, plane(), count, method=st.Random(), seed=0, **options)


# -- the line --------------------------------------------------------------------------------------------------------


def test_a_line_has_the_value_the_time_the_best_and_the_config():
    history = three_trials()
    assert trial_text(history[0], history, "s") == "trial 0: 0.5 in 12 s (best 0.03121, trial 1): lr = 0.5, depth = 3"
    assert trial_text(history[1], history, "s") == "trial 1: 0.03121 in 1 m 10 s (new best): lr = 0.001, depth = 5"


def test_a_line_of_a_failure_has_its_reason():
    history = three_trials()
    text = trial_text(history[2].finish(State.FAILED, seconds=3.0), history, "s")
    assert text == "trial 2 failed after 3 s: KeyError: 'lr' (train.py, line 12): lr = 0.25, depth = 1"
    assert trial_text(history[2].finish(State.ABANDONED, seconds=3.0), history, "s").startswith("trial 2 abandoned after 3 s: ")


def test_a_cost_that_is_no_time_is_shown_beside_the_time():
    history = three_trials(unit="USD")
    assert "trial 0: 0.5 for 12 USD in 2 s (" in trial_text(history[0].finish(State.DONE, seconds=2.0), history, "USD")


def test_a_line_is_one_short_line():
    assert one_line("a\n\tb\x1b[2Jc", 99) == "a b\N{REPLACEMENT CHARACTER}[2Jc"
    assert one_line("x" * 50, 10) == "xxxxxxx..."


def test_a_failure_is_a_warning_and_other_trials_are_information(caplog):
    caplog.set_level(logging.INFO, "shoestring")
    history = three_trials()
    for trial in history:
        log_trial(trial, history, "s")
    log_trial(history[2].finish(State.ABANDONED), history, "s")
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO", "WARNING", "INFO"]


def test_nothing_is_formatted_for_a_line_that_nobody_sees(monkeypatch):
    monkeypatch.setattr(trial_log, "trial_text", lambda *args: pytest.fail("formatted"))
    history = three_trials()
    log_trial(history[0], history, "s")
    set_verbosity("error")
    log_trial(history[2], history, "s")


def test_a_run_logs_one_line_a_trial(caplog):
    caplog.set_level(logging.INFO, "shoestring")
    run(4)
    assert [record.getMessage()[:8] for record in caplog.records] == ["trial 0:", "trial 1:", "trial 2:", "trial 3:"]


# -- where it goes ---------------------------------------------------------------------------------------------------


def test_lines_are_shown_on_standard_error_if_nobody_has_configured_logging(capsys):
    with logging_not_configured():
        st.minimize(lambda c: 1 / c["x"], st.Space(x=st.Choice(0, 2)), 2, method=st.Random(), seed=0)
        log.debug("hidden")
    out, err = capsys.readouterr()
    failed, done = sorted((line.partition(" shoestring")[2] for line in err.splitlines()), reverse=True, key=len)
    assert out == ""
    assert failed.startswith(" warning: trial ")
    assert "ZeroDivisionError" in failed
    assert done.startswith(": trial ")
    assert done.endswith("(new best): x = 2")


def test_after_basic_config_the_level_of_the_root_logger_counts(capsys):
    with logging_not_configured():
        run(1)
        logging.basicConfig(level=logging.WARNING)
        run(3)
        assert len(capsys.readouterr().err.splitlines()) == 1
        logging.getLogger().setLevel(logging.INFO)
        run(3)
    found = capsys.readouterr().err.splitlines()
    assert len(found) == 3
    assert found[0].startswith("INFO:shoestring:trial 0: ")


def test_logging_that_is_configured_during_a_run_counts_at_once(capsys):
    with logging_not_configured():
        run(3, callbacks=[lambda study, trial: logging.basicConfig(level=logging.WARNING)])
        log.warning("by the root logger")
    found = capsys.readouterr().err.splitlines()
    assert len(found) == 2
    assert found[1] == "WARNING:shoestring:by the root logger"


@pytest.mark.parametrize("name", ["", "shoestring"])
def test_a_handler_of_the_user_gives_no_double_lines(capsys, name):
    seen, handler = [], logging.Handler()
    handler.emit = seen.append
    with logging_not_configured():
        run(1)
        capsys.readouterr()
        logging.getLogger(name).addHandler(handler)
        log.setLevel(logging.INFO)  # set after a run had set its own: it stays
        try:
            run(2)
        finally:
            log.removeHandler(handler)
    assert len(seen) == 2
    assert capsys.readouterr().err == ""


def test_when_the_handler_of_the_user_is_gone_lines_are_shown_again(capsys):
    with logging_not_configured() as root:
        logging.basicConfig()
        run(1)
        root.handlers.clear()
        run(1)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_level_of_the_user_counts_without_a_handler_too(capsys):
    with logging_not_configured() as root:
        log.setLevel(logging.ERROR)
        run(1)
        log.setLevel(logging.NOTSET)
        root.setLevel(logging.ERROR)
        run(1)
    assert capsys.readouterr().err == ""


def test_a_logger_that_does_not_propagate_is_left_alone(capsys, monkeypatch):
    monkeypatch.setattr(log, "propagate", False)
    with logging_not_configured():
        run(1)
    assert capsys.readouterr().err == ""


def test_standard_error_that_is_closed_or_missing_does_no_harm(monkeypatch, tmp_path):
    closed = (tmp_path / "log").open("w")
    closed.close()
    with logging_not_configured():
        for stream in (closed, None):
            monkeypatch.setattr(sys, "stderr", stream)
            assert len(run(1).history) == 1


# -- verbosity -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("debug", "debug info warning error"),
        ("info", "info warning error"),
        ("WARNING", "warning error"),
        ("error", "error"),
        ("quiet", ""),
        (logging.WARNING, "warning error"),
        (logging.NOTSET, "info warning error"),
    ],
)
def test_verbosity_chooses_what_is_shown(capsys, level, shown):
    with logging_not_configured():
        st.set_verbosity(level)
        configure_logging()
        for name in ("debug", "info", "warning", "error"):
            log.log(getattr(logging, name.upper()), name)
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()] == shown.split()


def test_verbosity_holds_for_handlers_of_the_user_too(caplog):
    st.set_verbosity("info")
    run(2)
    assert len(caplog.records) == 2
    st.set_verbosity("quiet")
    run(2)
    assert len(caplog.records) == 2


@pytest.mark.parametrize("level", ["loud", None, True, 1.5, -1, []])
def test_an_unknown_verbosity_is_refused_with_the_names(level):
    with pytest.raises(st.MethodError, match='"debug", "info", "warning", "error", "quiet" or a level of logging'):
        st.set_verbosity(level)
