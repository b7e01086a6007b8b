"""What has come back to a crew and was not handed out yet.

Results stay here until they are handed out, so that neither an error of another trial nor a Ctrl-C that comes in between loses
them: whoever waits next gets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ParamSpec

from .crew import Finished

Given = ParamSpec("Given")


class Basket:
    """Results, and the first error. True if there is anything."""

    def __init__(self) -> None:
        self._results: list[Finished] = []
        self._error: BaseException | None = None

    def __bool__(self) -> bool:
        return bool(self._results) or self._error is not None

    def collect(self, look: Callable[Given, Iterable[Finished]], *args: Given.args, **kwargs: Given.kwargs) -> None:
        """What a look finds or raises, an interruption included, which is no more than put off until ``hand_out``."""
        try:
            for finished in look(*args, **kwargs):
                self._results.append(finished)
        except BaseException as error:
            if self._error is None:
                self._error = error

    def hand_out(self, seconds: float | None) -> list[Finished]:
        """The results, or else the error is raised: at once, or after 0 seconds only if there are no results."""
        if self._error is not None and (seconds != 0.0 or not self._results):
            error, self._error = self._error, None
            raise error
        results, self._results = self._results, []
        return results
