"""The ``shoestring`` command: a group, and a file for each command or family of commands in it.

Exit codes, the same for every command:
    0    done
    1    it could not be done, and standard error says why; or what was looked for is there: damage, a difference, a defect
    2    the command line was wrong, and standard error says why; nothing was spent
    130  interrupted (Ctrl-C)
    143  ended by SIGTERM

With --json there is one JSON document on standard output and nothing else, for an error and for a wrong command line too:
{"error": ..., "next": ...}. No command ever waits for an answer on standard input: what cannot be undone needs --yes.
"""

from __future__ import annotations

import traceback
from typing import Any

import click

from .. import ShoestringError, __version__
from .ask_tell import ask, enqueue, tell
from .console import WANTED, Trouble, WrongUsage, command, hidden, note, wants_json
from .demo import demo
from .doctor import doctor
from .manage import completion, db, export, import_, replay, rm, stop
from .run import run
from .run_study import resume
from .show import best, list_studies, show

EPILOG = """\b
Examples:
  shoestring demo                    tune a real model in about 40 seconds
  shoestring run --param lr=log:1e-5:1e-1 --budget 10m -- python train.py --lr {lr}
  shoestring ls                      the studies in shoestring.db
  shoestring best                    the best settings so far
  shoestring run --help              the options of a command

\b
Exit codes: 0 done, 1 failed (standard error says why), 2 wrong usage, 130 interrupted, 143 ended by SIGTERM.
"""


ONLY_HELP = getattr(click.exceptions, "NoArgsIsHelpError", ())  # since Click 8.2, the help of a group without a command


class Commands(click.Group):
    """A group in which Ctrl-C and errors end every command in the same way."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Whether --json is there is seen here first: of a command line that is wrong, a command may not read so far."""
        as_json = "--json" in (args[: args.index("--")] if "--" in args else args)
        try:
            context = super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise error if isinstance(error, ONLY_HELP) else WrongUsage(error, as_json) from None
        context.meta[WANTED] = as_json
        return context

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # Click alone would exit with 1
            note("interrupted")
            ctx.exit(130)
        except ShoestringError as error:
            raise Trouble(str(error), command(ctx.invoked_subcommand or "", "--help")) from error
        except click.UsageError as error:
            raise error if isinstance(error, ONLY_HELP) else WrongUsage(error, wants_json(), ctx.invoked_subcommand) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:  # ours to mend: with its traceback, but never with a password in it
            note(hidden("".join(traceback.format_exception(error))))
            raise Trouble(f"this should not happen: {type(error).__name__}: {error}", command("doctor")) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which one needs them


@click.group("shoestring", cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message=f"shoestring {__version__}")
def main() -> None:
    """Tune expensive things on a shoestring: Bayesian optimization that counts what every evaluation costs."""


for each in (demo, run, resume, list_studies, show, best, ask, tell, enqueue, stop, export, import_, replay, rm, doctor, db):
    main.add_command(each)
main.add_command(completion)
