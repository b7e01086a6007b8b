"""What a command needs beyond the core install."""

from __future__ import annotations

from importlib.util import find_spec

from .speech import Trouble

INSTALL = 'pip install "shoestring[sklearn,plots]"'


def installed(module: str) -> bool:
    return find_spec(module) is not None


def require(module: str, package: str, purpose: str) -> None:
    """End the command, with the way to mend it, if a module is missing."""
    if not installed(module):
        raise Trouble(f"{purpose} needs {package}, which is not installed; install it with\n  {INSTALL}", INSTALL)
