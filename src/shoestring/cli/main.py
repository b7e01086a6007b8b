"""The ``shoestring`` command: a group, and one file for each command in it.

Exit codes, the same for every command:
    0    done
    1    it could not be done, and standard error says why
    2    the command line was wrong
    130  interrupted (Ctrl-C)
"""

from __future__ import annotations

from typing import Any

import click

from .. import ShoestringError, __version__
from .demo import demo

EPILOG = """\b
Examples:
  shoestring demo                    tune a real model in about 40 seconds
  shoestring demo --budget 2m        the same with more to spend
  shoestring demo --json > out.json  for programs
  shoestring demo --help             the options of a command

\b
Exit codes: 0 done, 1 failed (standard error says why), 2 wrong usage, 130 interrupted.
"""


class Commands(click.Group):
    """A group in which Ctrl-C and the library's own errors end every command in the same way."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # Click alone would exit with 1
            click.echo("interrupted", err=True)
            ctx.exit(130)
        except ShoestringError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message=f"shoestring {__version__}")
def main() -> None:
    """Tune expensive things on a shoestring: Bayesian optimization that counts what every evaluation costs."""


main.add_command(demo)
