"""The progress of a run: its text, and how it is shown in a terminal, in a notebook and in a pipe."""

import io
import logging
import sys
import threading
import types

import pytest
from rich.console import Console

import shoestring as st
from shoestring.report import progress, trial_log
from shoestring.report.progress import NotebookLine, PlainLines, TerminalLine, in_notebook, progress_for
from shoestring.report.progress_line import Line, progress_line, rough_duration
from tests.problems import bowl, plane


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Stream(io.StringIO):
    """A stream in place of standard error. Tests begin with it, since pytest exchanges standard error after fixtures."""

    def __init__(self, monkeypatch, terminal=False):
        super().__init__()
        self.terminal = terminal
        monkeypatch.setattr(sys, "stderr", self)

    def isatty(self):
        return self.terminal


def random_study(count=0, failed=0, **options):
    """A study with ``count`` results, the first ``failed`` of which are failures; each cost 1."""
    study = st.Study(plane(), method=st.Random(), seed=0, **options)
    for number in range(count):
        tell(study, error="out of memory" if number < failed else None)
    return study


def tell(study, error=None):
    trial = study.ask()
    study.tell(trial, None if error else bowl(trial.config), error=error, cost=1.0)


def set_started(study, clock, ago):
    """The state of the study, with running trials that began ``ago`` seconds before now."""
    state, began = study.state, clock.now - ago
    state.seconds_open = lambda trial: clock.now - began
    return state


# -- the text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "parts"),
    [
        (st.Budget(trials=20), ["5 trials of 20", "spent 5 s", "best 0."]),
        (st.Budget(cost=40, unit="s"), ["spent 5 s of 40 s", "5 trials"]),
        (st.Budget(cost=9, unit="USD"), ["spent 5 USD of 9 USD"]),
        (st.Budget(seconds=600), ["0 s of 10 m 00 s"]),
    ],
)
def test_the_line_says_what_was_spent_and_what_was_found(budget, parts):
    text = progress_line(random_study(5, unit=budget.unit or "s").state, budget)
    assert "\n" not in text
    for part in parts:
        assert part in text


def test_before_the_first_result():
    assert "no result yet" in progress_line(random_study().state, st.Budget(trials=3))


def test_failures_are_counted():
    assert "5 trials of 20, 3 failed |" in progress_line(random_study(5, failed=3).state, st.Budget(trials=20))


def test_the_expected_gain_of_the_present_trial_is_shown():
    study = random_study(5)
    assert "gain" not in progress_line(study.state, st.Budget(trials=20))
    study.state.open(study.ask().config, {"by": "test", "gain": 0.0123})
    assert "expected gain 0.012" in progress_line(study.state, st.Budget(trials=20))


def test_the_line_moves_during_a_long_trial(clock):
    study, line = random_study(2), Line(clock)
    study.ask()
    line.update(set_started(study, clock, 0.0), st.Budget(seconds=600))
    assert "running" not in line.text()
    assert line.text().startswith("0 s of 10 m 00 s")
    clock.now += 75.0
    assert line.text().startswith("1 m 15 s of 10 m 00 s | 2 trials | best ")
    assert "trial 2 running for 1 m 15 s | 8 m 45 s left" in line.text()
    assert "running" not in line.text(ended=True)


def test_several_running_trials_are_counted(clock):
    study, line = random_study(), Line(clock)
    study.ask_many(3)
    line.update(set_started(study, clock, 5.0), st.Budget(trials=9))
    assert "3 running, the longest for 5 s" in line.text()


def test_a_long_choice_of_the_next_trial_is_shown(clock):
    line = Line(clock)
    line.update(random_study(2).state, st.Budget(trials=9))
    clock.now += 3.0
    assert "choosing the next trial" in line.text()


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (st.Budget(trials=10), "about 1 m left"),
        (st.Budget(cost=5), "about 10 s left"),
        (st.Budget(trials=10, seconds=20), " 20 s left"),
        (st.Budget(trials=10, seconds=3000), "about 1 m left"),
    ],
)
def test_the_time_left_is_estimated_from_the_pace_of_this_run(clock, budget, expected):
    study, line = random_study(1), Line(clock)  # what was there before has no part in the pace
    line.update(study.state, budget)
    for _ in range(3):
        assert "about" not in line.text()
        clock.now += 10.0
        tell(study)
        line.update(study.state, budget)
    assert expected in line.text()


def test_many_fast_trials_do_not_cost_a_snapshot_each(clock, monkeypatch):
    from shoestring.report import progress_line as module

    taken, snapshot = [], module.snapshot
    monkeypatch.setattr(module, "snapshot", lambda *args: taken.append(1) or snapshot(*args))
    study, line = random_study(), Line(clock)
    for _ in range(5):
        tell(study)
        line.update(study.state, st.Budget(trials=9))
    assert "1 trial of 9" in line.text()
    clock.now += 0.2
    assert "5 trials of 9" in line.text()
    assert len(taken) == 2


@pytest.mark.parametrize(
    ("seconds", "text"), [(3, "5 s"), (42, "45 s"), (58, "1 m"), (400, "7 m"), (8000, "2 h 13 m"), (4e5, "4.6 days")]
)
def test_an_estimate_is_rounded(seconds, text):
    assert rough_duration(seconds) == text


# -- where it is shown -----------------------------------------------------------------------------------------------


def test_silent_in_a_pipe_and_plain_lines_there_when_wanted(monkeypatch):
    Stream(monkeypatch)
    for wanted, kind in ((None, type(None)), (False, type(None)), (True, PlainLines)):
        with progress_for(wanted) as shown:
            assert isinstance(shown, kind)


def test_a_line_in_a_terminal_unless_it_cannot_redraw_or_is_not_wanted(monkeypatch):
    Stream(monkeypatch, terminal=True)
    for term, wanted, kind in (
        ("xterm", None, TerminalLine), ("xterm", False, type(None)), ("dumb", None, type(None)), ("dumb", True, PlainLines),
    ):  # fmt: skip
        monkeypatch.setenv("TERM", term)
        with progress_for(wanted) as shown:
            assert isinstance(shown, kind)


def test_a_run_inside_an_objective_has_no_line_of_its_own(monkeypatch):
    Stream(monkeypatch)
    with progress_for(True), progress_for(True) as inner:
        assert inner is None
    with progress_for(True) as later:
        assert later is not None


@pytest.mark.parametrize("stream", [None, types.SimpleNamespace()])
def test_without_a_proper_standard_error_nothing_is_shown(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_for(None) as shown:
        assert shown is None


def test_a_pipe_stays_clean(capfd):
    st.minimize(bowl, plane(), 3, method=st.Random())
    assert capfd.readouterr() == ("", "")


# -- in a pipe -------------------------------------------------------------------------------------------------------


def lines(stream):
    return stream.getvalue().splitlines()


def test_a_run_with_progress_in_a_pipe_prints_lines_on_standard_error_only(capfd):
    before = threading.active_count()
    st.minimize(bowl, plane(), 3, method=st.Random(), progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "shoestring: 3 trials of 3 | best " in err
    assert threading.active_count() <= before  # a thread of an earlier test may have ended


def test_plain_lines_are_seconds_apart(clock, monkeypatch):
    pipe = Stream(monkeypatch)
    study, shown = random_study(4), PlainLines(clock)
    shown.update(study.state, st.Budget(trials=99))
    assert lines(pipe) == []  # no news
    for seconds, expected in ((0.2, 1), (1.0, 1), (3.0, 1), (1.0, 2), (3600.0, 3), (20.0, 3), (40.0, 4)):
        clock.now += seconds
        tell(study)
        shown.update(study.state, st.Budget(trials=99))
        assert len(lines(pipe)) == expected
    assert "5 trials of 99" in lines(pipe)[0]


def test_a_long_trial_prints_a_line_a_minute(clock, monkeypatch):
    pipe = Stream(monkeypatch)
    study, shown = random_study(), PlainLines(clock)
    study.ask()
    shown.update(set_started(study, clock, 0.0), st.Budget(trials=9))
    for _ in range(150):
        clock.now += 1.0
        shown.write_if_due()
    assert [line.partition("| ")[2].partition(" | spent")[0] for line in lines(pipe)] == [
        "no result yet | trial 0 running for 1 m 00 s",
        "no result yet | trial 0 running for 2 m 00 s",
    ]


def test_results_that_were_not_shown_are_shown_at_the_end(clock, monkeypatch):
    pipe = Stream(monkeypatch)
    study = random_study()
    with PlainLines(clock) as shown:
        for _ in range(4):
            shown.update(study.state, st.Budget(trials=9))
            tell(study)
        shown.update(study.state, st.Budget(trials=9))
    assert "4 trials of 9" in lines(pipe)[-1]


def test_a_closed_pipe_does_not_end_the_run(monkeypatch):
    pipe = Stream(monkeypatch)
    pipe.close()
    assert len(st.minimize(bowl, plane(), 3, method=st.Random(), progress=True).history) == 3


# -- in a terminal ---------------------------------------------------------------------------------------------------


def terminal_line(stream, clock, width=120):
    return TerminalLine(clock, Console(file=stream, force_terminal=True, width=width))


def test_the_line_of_a_terminal_fits_its_width(clock, monkeypatch):
    terminal = Stream(monkeypatch, terminal=True)
    with terminal_line(terminal, clock, width=30) as shown:
        shown.update(random_study(5).state, st.Budget(trials=20))
        shown._live.refresh()
        written = terminal.getvalue().replace("\x1b[?25l", "")  # the code that hides the cursor
        text = next(each for each in written.split("\r\x1b[2K") if "5 trials" in each)
    assert "\n" not in text
    assert len(text) == 30
    assert text.endswith("…")


def test_log_lines_are_printed_above_the_line_and_long_ones_are_not_broken(clock, monkeypatch):
    terminal = Stream(monkeypatch, terminal=True)
    with terminal_line(terminal, clock, width=40) as shown:
        trial_log._handler.emit(logging.makeLogRecord({"msg": "x" * 100, "levelno": logging.INFO, "levelname": "INFO"}))
        assert "x" * 100 + "\n" in terminal.getvalue()
        shown.print_above("fast")  # less than a moment later
        assert "fast" not in terminal.getvalue()
    assert "fast\n" in terminal.getvalue()
    assert trial_log._handler.write is trial_log.write_line


def test_a_log_handler_of_the_user_does_not_write_through_the_line(clock, monkeypatch):
    terminal = Stream(monkeypatch, terminal=True)
    handler = logging.StreamHandler()
    trial_log.log.addHandler(handler)
    try:
        with terminal_line(terminal, clock):
            assert handler.stream is sys.stderr is not terminal
            trial_log.log.error("mine")
        assert handler.stream is sys.stderr is terminal
    finally:
        trial_log.log.removeHandler(handler)
    assert "mine\n" in terminal.getvalue()


def test_standard_output_is_left_alone_if_it_is_a_file(clock, monkeypatch):
    terminal = Stream(monkeypatch, terminal=True)
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with terminal_line(terminal, clock):
        print("a result")
    assert out.getvalue() == "a result\n"


# -- in a notebook ---------------------------------------------------------------------------------------------------


@pytest.fixture
def notebook(monkeypatch):
    """A module in place of IPython, and the texts that were displayed."""
    shown = []

    class ZMQInteractiveShell: ...

    class Handle:
        update = staticmethod(shown.append)

    def display(content, display_id):
        assert display_id is True
        shown.append(content)
        return Handle()

    shell = types.ModuleType("IPython")
    shell.get_ipython = type("Shell", (ZMQInteractiveShell,), {})
    shell.display = types.ModuleType("IPython.display")
    shell.display.HTML, shell.display.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", shell.display)
    return shown


def test_a_notebook_is_recognized(notebook, monkeypatch):
    assert in_notebook()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)  # IPython is imported, but not at work
    assert not in_notebook()


def test_no_notebook_without_ipython(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()


def test_a_notebook_shows_one_html_line_that_is_updated(notebook):
    st.minimize(bowl, plane(), 3, method=st.Random())
    assert "starting" in notebook[0]
    assert ">3 trials of 3 | best " in notebook[-1]


def test_the_line_of_a_notebook_is_escaped_and_moves(notebook, clock):
    study = random_study(2, unit="<b>")
    study.ask()
    with NotebookLine(clock) as shown:
        shown.update(set_started(study, clock, 0.0), st.Budget(trials=9))
        shown.update(study.state, st.Budget(trials=9))  # too soon to be drawn
        assert len(notebook) == 2
        clock.now += 5.0
        shown.draw()  # as the thread does it once a second
    assert "trial 2 running for 5 s" in notebook[2]
    assert "2 &lt;b&gt;</div>" in notebook[3]


def test_the_thread_of_a_display_survives_an_error_and_ends_with_it():
    called = threading.Event()

    def fail():
        called.set()
        raise RuntimeError("the kernel is gone")

    ticker = progress.Ticker(fail, seconds=0.001)
    ticker.start()
    assert called.wait(5.0)
    assert ticker._thread.is_alive()
    ticker.stop()
    assert not ticker._thread.is_alive()
