"""The contract of a stopping rule."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ..search.random import Random
from ..state.registry import read_code, text_of
from ..study import Study
from ..termination.base import Rule, StopRule, Verdict, check_rule_class
from .problems import SPACES, configs, objective, run, sampled_study


class RuleContract:
    """The checks that every stopping rule must pass: derive a test class and define ``make``.

    Use it to test a rule of your own with pytest: a verdict from the first trial on, joined rules, a run that ends, stored
    studies.

    registered  it has a name in stored studies
    spaces      those of ``problems.SPACES`` that it works on

    >>> from shoestring.testing import RuleContract
    >>> class TestMine(RuleContract):
    ...     def make(self):
    ...         return st.Patience(5)
    >>> TestMine().test_it_is_a_rule()
    """

    registered = True
    spaces: tuple[str, ...] = ("numbers", "mixed")

    def make(self) -> Rule:
        raise NotImplementedError("return the rule to test")

    def checked(self, study: Study, rule: Any = None) -> Verdict:
        """By the study's own belief, as a run does it."""
        study.rule = self.make() if rule is None else rule
        return study.suggester.check_rule(study.budget)

    def test_it_is_a_rule(self) -> None:
        check_rule_class(self.make())

    def test_it_returns_a_verdict_with_a_reason_and_numbers_from_the_first_trial_on(self) -> None:
        for space in self.spaces:
            for trials in (0, 1, 3, 24):
                verdict = self.checked(sampled_study(space, trials))
                assert isinstance(verdict, Verdict)
                assert isinstance(verdict.stop, bool)
                assert verdict.reason.strip()
                assert all(isinstance(value, float | int) for value in verdict.evidence.values())

    def test_a_history_alone_is_enough(self) -> None:
        for trials in (1, 24):
            assert isinstance(self.make().check(sampled_study("numbers", trials).log), Verdict)

    def test_it_changes_nothing_and_says_the_same_twice(self) -> None:
        study = sampled_study("mixed", 24)
        before = configs(study)
        assert self.checked(study) == self.checked(study)
        assert configs(study) == before

    def test_failed_trials_do_no_harm(self) -> None:
        study = run(Study(SPACES["mixed"], Random(), stop=None), 24, fail_every=3)
        assert isinstance(self.checked(study), Verdict)

    def test_it_can_be_joined(self) -> None:
        rule = self.make()
        if not isinstance(rule, StopRule):
            return
        study = sampled_study("numbers", 24)
        alone = self.checked(study, rule)
        assert self.checked(study, rule | rule).stop == alone.stop
        assert self.checked(study, rule & rule).stop == alone.stop

    def test_a_run_ends_by_it_or_by_its_budget(self) -> None:
        study = Study(SPACES["numbers"], Random(), stop=self.make())
        result = study.minimize(lambda config: objective(config), 25, progress=False)
        assert result.stop.kind in ("rule", "budget")
        assert len(result.history) <= 25

    def test_its_text_is_read_as_the_same_rule_and_is_stored(self) -> None:
        if not self.registered:
            return
        rule = self.make()
        text = text_of("stop", rule)
        assert text is not None, f"{rule!r} has no text: register its class, and give it a repr that calls it again"
        assert read_code("stop", text) == rule
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder) / 'tune.db'}"
            Study(SPACES["numbers"], stop=rule, storage=url, name="stored")
            again = Study.load(url, "stored")
            assert again.rule == rule
            again.storage.close_connections()
