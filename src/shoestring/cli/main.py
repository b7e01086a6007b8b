"""The ``shoestring`` command: a Click group with one subcommand for each task.

Exit codes, the same for every command:
    0    success
    1    failure, with the reason on standard error; or a check found something: damage, a difference, a defect
    2    a wrong command line, with the reason on standard error; nothing was spent
    130  interrupted by Ctrl-C
    143  ended by SIGTERM

With --json there is one JSON document on standard output and nothing else, also for an error and for a wrong command line:
{"error": ..., "next": ...}. What cannot be undone, and a program that was not approved, needs --yes, or an answer at a terminal.
Without a terminal no command waits for an answer.
"""

from __future__ import annotations

import os
import traceback
from typing import Any

import click

from .. import ShoestringError, __version__
from ..program.result_reader import shorten
from .ask_tell import ask, enqueue, tell
from .console import (
    EXIT_SIGINT,
    JSON_META_KEY,
    CommandError,
    CommandLineError,
    hide_passwords,
    json_requested,
    print_note,
    remember_addresses,
    shoestring_command,
)
from .demo import demo
from .doctor import doctor
from .manage import completion, db, export, import_, replay, rm, stop
from .mcp import mcp
from .plot import plot
from .report import report
from .run import resume, run
from .serve import serve
from .show import best, explain, list_studies, show
from .top import top

EPILOG = """\b
Examples:
  shoestring demo                    tune a real model in about 40 seconds
  shoestring run --param lr=log:1e-5:1e-1 --budget 10m -- python train.py --lr {lr}
  shoestring ls                      list the studies in shoestring.db
  shoestring best                    show the best settings so far
  shoestring explain                 say what the study does next, and why
  shoestring run --help              show the options of a command

\b
Exit codes: 0 success, 1 failure (standard error gives the reason), 2 wrong command line, 130 interrupted,
143 ended by SIGTERM.
"""


HELP_REQUESTS = getattr(click.exceptions, "NoArgsIsHelpError", ())  # since Click 8.2: a group without a command shows its help


class CommandGroup(click.Group):
    """A group that handles Ctrl-C and errors in the same way for every command."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Look for --json first: Click may reject a wrong command line before it has read that option."""
        as_json = "--json" in (args[: args.index("--")] if "--" in args else args)
        remember_addresses(args, anew=True)
        try:
            context = super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise error if isinstance(error, HELP_REQUESTS) else CommandLineError(error, as_json) from None
        context.meta[JSON_META_KEY] = as_json
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and turn exceptions into messages and exit codes."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # Click by itself would exit with 1
            print_note("interrupted")
            ctx.exit(EXIT_SIGINT)
        except ShoestringError as error:
            raise CommandError(str(error), shoestring_command(ctx.invoked_subcommand or "", "--help")) from error
        except click.UsageError as error:
            if isinstance(error, HELP_REQUESTS):
                raise
            raise CommandLineError(error, json_requested(), ctx.invoked_subcommand) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            raise explained(error, ctx.invoked_subcommand or "") from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order in which a user needs them, not sorted."""
        return list(self.commands)


def explained(error: Exception, command: str) -> CommandError:
    """The message for an exception that is none of ours: about a file, or else a bug, whose traceback is printed."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:  # for example a name that is too long
        file = repr(shorten(os.fsdecode(error.filename)))
        message = f"{file} cannot be used: {error.strerror}; give another file or folder"
        return CommandError(message, shoestring_command(command, "--help"))
    print_note(hide_passwords("".join(traceback.format_exception(error))))  # never with a password in it
    return CommandError(f"unexpected error, please report it: {type(error).__name__}: {error}", shoestring_command("doctor"))


@click.group("shoestring", cls=CommandGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message=f"shoestring {__version__}")
def main() -> None:
    """Bayesian optimization that counts what every evaluation costs: tune expensive things on a shoestring."""


LOOKING = (list_studies, top, show, best, explain, plot, report, serve)
DRIVING = (ask, tell, enqueue, stop, mcp, export, import_, replay, rm)
for each in (demo, run, resume, *LOOKING, *DRIVING, doctor):
    main.add_command(each)
for each in (db, completion):
    main.add_command(each)
