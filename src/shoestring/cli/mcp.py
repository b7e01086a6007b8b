"""``mcp``: the studies of a storage as tools for an agent, over the Model Context Protocol."""

from __future__ import annotations

import signal
import sys

import click

from .. import __version__
from ..report.progress import is_terminal
from .console import CommandError, hide_passwords, opened_storage, print_note
from .doctor import is_installed
from .options import storage_option

INSTALL_AGENTS = "pip install 'shoestring[agents]'"


@click.command(short_help="Offer the studies as tools to an agent.")
@storage_option
def mcp(address: str) -> None:
    """Offer studies as tools to an agent, over the Model Context Protocol on standard input and output.

    The agent's program starts this command by itself. The tools make studies, ask, tell, look and stop. No tool runs a program or
    deletes anything, and no trial is asked beyond the budget of its study.

    \b
    The entry in the configuration of most programs:
      {"mcpServers": {"shoestring": {"command": "shoestring", "args": ["mcp", "--storage", "/path/tune.db"]}}}

    \b
    Example:
      shoestring mcp --storage tune.db
    """
    if not is_installed("mcp"):
        raise CommandError("shoestring mcp needs the package mcp, which is not installed", INSTALL_AGENTS)
    from ..integrations.mcp_server import serve_stdio

    if is_terminal(sys.stdin):
        print_note("waiting for an agent on standard input, which is a terminal here; Ctrl-C ends it")
    with opened_storage(address, create=True) as storage:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread that waits for a line would keep Ctrl-C from ending the process
        serve_stdio(storage, hide_passwords, __version__)
