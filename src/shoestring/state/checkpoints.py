"""Checkpoint folders: where a configuration keeps its files, so that it can continue from them.

All trials of one configuration share a folder, at every fidelity: when Hyperband promotes a configuration from 3 epochs to 9, or
another method comes back to it, the objective finds what it saved. A folder's name is the beginning of a hash of the
configuration without its fidelities, so that it can be found again in another process.

By default the folders are in a temporary folder. When the process ends, empty folders are removed from it; what an objective has
saved there stays until the system cleans its temporary files.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import MethodError
from ..space.space import Space

HASH_DIGITS = 12  # two of a million configurations share a folder with probability 0.002

_making_root = threading.Lock()


class Checkpoints:
    """The folders of one study, under ``root`` or, by default, under a temporary folder; made when they are first needed."""

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = None if root is None else read_root(root)

    def folder(self, config: Mapping[str, Any], space: Space) -> Path:
        """The folder of a configuration."""
        if self.root is None:
            with _making_root:  # two threads that need it at once must not get two
                self.root = self.root or temporary_root()
        folder = self.root / folder_name(config, space)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def temporary_root() -> Path:
    """A new temporary folder for the checkpoints of a study."""
    root = Path(tempfile.mkdtemp(prefix="shoestring-"))
    atexit.register(remove_empty_folders, root, os.getpid())
    return root


def remove_empty_folders(root: Path, process: int) -> None:
    """Remove the empty folders in ``root``, and ``root`` itself if it is empty then. Only the process that made it does so."""
    if process == os.getpid() and root.is_dir():
        for folder in [*root.iterdir(), root]:
            with suppress(OSError):  # it holds files
                folder.rmdir()


def folder_name(config: Mapping[str, Any], space: Space) -> str:
    """The same for all fidelities of a configuration, in every process."""
    bare = {name: value for name, value in config.items() if name not in space.fidelities}
    return hashlib.sha256(space.key(bare).encode()).hexdigest()[:HASH_DIGITS]


def read_root(root: str | os.PathLike[str]) -> Path:
    """An absolute path, since an objective may change the working directory; it need not exist yet."""
    text = os.fspath(root) if isinstance(root, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise MethodError(f'checkpoints={root!r} is not a path; write checkpoints="folder", or leave it out for a temporary one')
    path = Path(text).expanduser().absolute()
    if path.exists() and not path.is_dir():
        raise MethodError(f"checkpoints={str(root)!r} is a file; give a folder")
    return path
