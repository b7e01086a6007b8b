"""Where the configurations of a Hyperband run stand, read from the plans that the trials' suggestions carry.

A plan says which run it belongs to (``scheme``: settings and rungs as a text, so that a study that goes on with other settings
begins anew), and the place of the trial in it: ``bracket``, ``rung``, and ``config``, the number of the configuration within
the bracket. The trial that it continues is the one of the same configuration on the rung below. Trials without a plan, such
as those that were enqueued or added, have no place; an abandoned trial has none until it is asked again.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from ..history import History
from ..trial import State, Trial

Place = tuple[int, int]  # bracket and rung


@dataclass(frozen=True)
class Step:
    """What to do next: a new configuration on the lowest rung of a bracket, or one that is promoted to a rung.

    config   the number of the configuration within its bracket
    below    the trial that is continued; None for a new configuration
    rank     its place among those on the rung below, the best being 1, of how many
    """

    bracket: int
    rung: int
    config: int
    below: Trial | None = None
    rank: tuple[int, int] = (0, 0)

    def plan(self, scheme: str) -> dict[str, Any]:
        """For the suggestion; says nothing of trials' numbers, which an interruption shifts."""
        return {"scheme": scheme, "bracket": self.bracket, "rung": self.rung, "config": self.config}


class Standing:
    """The trials of one run by bracket, rung and configuration."""

    def __init__(self, history: History, scheme: str) -> None:
        self._sign = -1.0 if history.maximize else 1.0
        self._on: dict[Place, dict[int, Trial]] = defaultdict(dict)
        self._begun: dict[int, int] = defaultdict(int)
        for trial in history:
            plan = trial.suggestion.get("plan") or {}
            if plan.get("scheme") != scheme:
                continue
            bracket, config = plan["bracket"], plan["config"]
            self._begun[bracket] = max(self._begun[bracket], config + 1)
            there = self._on[bracket, plan["rung"]]
            before = there.get(config)  # an abandoned trial may have got a late result: then two have the same place
            if trial.state is not State.ABANDONED and (before is None or before.state is not State.DONE):
                there[config] = trial

    def on(self, bracket: int, rung: int) -> dict[int, Trial]:
        """The trials on a rung, by configuration."""
        return self._on.get((bracket, rung), {})

    def finished(self, bracket: int, rung: int) -> int:
        """How many trials of a rung are done or have failed."""
        return sum(trial.finished for trial in self.on(bracket, rung).values())

    def waits(self, bracket: int, rung: int) -> bool:
        """Whether trials of a rung are still running."""
        return self.finished(bracket, rung) < len(self.on(bracket, rung))

    def ranked(self, bracket: int, rung: int) -> list[int]:
        """The configurations that have a value on a rung, best first; failed ones are not among them."""
        done = {config: trial.value for config, trial in self.on(bracket, rung).items() if trial.value is not None}
        return sorted(done, key=lambda config: (self._sign * done[config], config))

    def beginning(self, bracket: int) -> Step:
        """A new configuration."""
        return Step(bracket, 0, self._begun.get(bracket, 0))

    def promotion(self, bracket: int, rung: int, keep: int) -> Step | None:
        """To a rung, the best of the ``keep`` best on the rung below that is not there yet."""
        ranked, there = self.ranked(bracket, rung - 1), self.on(bracket, rung)
        best = next((config for config in ranked[:keep] if config not in there), None)
        if best is None:
            return None
        rank = ranked.index(best) + 1, self.finished(bracket, rung - 1)
        return Step(bracket, rung, best, self.on(bracket, rung - 1)[best], rank)
