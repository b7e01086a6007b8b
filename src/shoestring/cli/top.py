"""``top``: follow a stored study live, from any terminal and any machine."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from ..data.trial import State
from ..errors import StorageUnavailable
from ..report.live_table import LiveTable, Piece, cut, plain_text, rich_text
from ..report.progress import is_terminal
from ..report.trial_log import stamped
from ..report.views import view
from ..storage.address import shown_address
from ..web.catalog import budget_of
from .console import (
    CommandError,
    find_study,
    hide_passwords,
    json_requested,
    load_study,
    opened_storage,
    print_result,
    printable,
    shoestring_command,
    storage_arguments,
    terminal_width,
)
from .options import check_seconds, json_option, name_argument, storage_option
from .show import MAX_TRIALS_SHOWN, study_json, trial_json

if TYPE_CHECKING:
    from .. import Study
    from ..storage.base import Storage, StudyRecord

REDRAWS_PER_SECOND = 4
HEIGHT_OF_A_FILE = 40  # lines, where the output is no terminal
wait = time.sleep


@click.command(short_help="Follow a study live in the terminal.")
@name_argument
@click.option("--once", is_flag=True, help="Print the table once and end.")
@click.option("--every", default="1s", show_default=True, callback=check_seconds, metavar="TIME", help="How often it is read.")
@storage_option
@json_option
def top(name: str | None, once: bool, every: float, address: str) -> None:
    """Follow a study live: its last results, what runs and for how long, what was spent, the best, how far from stopping.

    It only reads, so it may run beside any number of workers, also on another machine. Ctrl-C ends it, not the study. Where the
    output is no terminal, it prints one line whenever something has changed. With --json it prints one document and ends.

    \b
    Examples:
      shoestring top
      shoestring top xgb --storage postgresql://host/db
      shoestring top xgb --once
    """
    with opened_storage(address) as storage:
        record = find_study(storage, name, address)
        followed = Followed(storage, record, load_study(storage, record.name, address), address)
        following = shoestring_command("show", record.name, *storage_arguments(address))
        if once or json_requested():
            print_result(followed.document(), plain_text(followed.lines(terminal_width(), HEIGHT_OF_A_FILE)), following)
            return
        try:
            follow_in_terminal(followed, every) if can_redraw() else follow_in_lines(followed, every)
        except KeyboardInterrupt:
            click.echo(f"next: {following}")


class Followed:
    """A stored study that other processes work on, brought up to date by ``read``."""

    def __init__(self, storage: Storage, record: StudyRecord, study: Study, address: str) -> None:
        self.storage, self.record, self.study, self.address = storage, record, study, address
        self.table = LiveTable(clean=hide_passwords)
        self.problem = ""  # why it could not be read the last time
        self.table.update(study.state, budget_of(record))

    def read(self) -> None:
        """Learn what has happened. A storage that does not answer now is asked again later."""
        try:
            found = self.storage.find(self.record.name)
            if found is None or found.id != self.record.id:
                ls = shoestring_command("ls", *storage_arguments(self.address))
                raise CommandError(f"study {self.record.name!r} was deleted", ls)
            self.record = found
            self.study.refresh()
            self.problem = ""
        except StorageUnavailable as error:
            self.problem = f"the storage does not answer, trying again: {error}"
        self.table.update(self.study.state, budget_of(self.record))

    @property
    def is_idle(self) -> bool:
        """Whether no trial runs now."""
        return not self.study.log.number_of(State.RUNNING)

    def lines(self, width: int, height: int) -> list[Piece]:
        """The whole display: what is followed, the table, and what is wrong."""
        title = f"study {self.record.name} in {shown_address(self.address)}, to {self.study.direction}"
        found = [(cut(printable(title), width), "head"), *self.table.lines(width, height - 2, ended=self.is_idle)]
        return [*found, (cut(printable(hide_passwords(self.problem)), width), "failed")] if self.problem else found

    def line(self) -> str:
        """The progress on one line."""
        problem = [hide_passwords(self.problem)] if self.problem else []
        return printable(" | ".join([self.table.line.text(self.is_idle), *problem]))

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        self.study.budget = budget_of(self.record)
        history, now = self.study.history, view(self.study, "live", fit=False)
        return study_json(self.study, history) | {
            "storage": shown_address(self.address), "halted": self.record.halted, "waiting": self.record.waiting,
            "seconds": self.record.seconds, "facts": now["facts"], "running": now["running"],
            "last": [trial_json(each) for each in history[-MAX_TRIALS_SHOWN:]],
        }  # fmt: skip


def can_redraw() -> bool:
    """Whether standard output is a terminal in which lines can be redrawn."""
    if not is_terminal(sys.stdout):
        return False
    from rich.console import Console

    return not Console().is_dumb_terminal


def follow_in_terminal(followed: Followed, every: float) -> None:
    """Redraw the table until Ctrl-C; its last state stays on the screen."""
    from rich.console import Console
    from rich.live import Live

    console = Console()

    def shown() -> Any:
        return rich_text(followed.lines(console.width, console.height))

    with Live(console=console, get_renderable=shown, refresh_per_second=REDRAWS_PER_SECOND):
        while True:
            wait(every)
            followed.read()


def follow_in_lines(followed: Followed, every: float) -> None:
    """Print a line whenever something has changed, until Ctrl-C."""
    last = None
    while True:
        seen = (followed.record.clock, followed.record.halted, followed.problem)
        if seen != last:
            last = seen
            click.echo(stamped(followed.line()))
        wait(every)
        followed.read()
