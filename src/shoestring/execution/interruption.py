"""What a run does once it was interrupted and everything is saved: raise, return, or end the process."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Any, Literal

from ..report.progress import in_notebook
from ..report.summary import summary_text
from .signals import Terminated, end_process

OnInterrupt = Literal["raise", "return"]


def after_interruption(
    interruption: KeyboardInterrupt, handled: Sequence[signal.Signals], result: Any, wanted: OnInterrupt | None
) -> None:
    """Print the summary and raise the interruption, unless the caller wants the result. SIGTERM ends the process.

    handled   signals for which the run itself has installed the handler. Where its caller has (the command line), the caller
              decides what SIGTERM means
    """
    ends = isinstance(interruption, Terminated) and signal.SIGTERM in handled
    if not ends and (wanted or ("return" if in_notebook() else "raise")) == "return":
        return
    if sys.stderr is not None:
        print(f"\n{summary_text(result.rows('terminated' if ends else 'raised'))}", file=sys.stderr, flush=True)
    if ends:
        result.study.storage.close_connections()  # as at exit, which is skipped: so that a SQLite file is alone and complete
        end_process(signal.SIGTERM)
    interruption.result, interruption.study = result, result.study  # type: ignore[attr-defined]
    raise interruption
