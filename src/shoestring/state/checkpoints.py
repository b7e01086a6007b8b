"""Checkpoint folders: where a configuration keeps its files, so that it can continue from them.

All trials of one configuration share a folder, at every fidelity: when Hyperband promotes a configuration from 3 epochs to 9, or
another method comes back to it, the objective finds what it saved. A folder's name is the beginning of a hash of the
configuration without its fidelities, so that it can be found again in another process.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import MethodError
from ..space.space import Space

HASH_DIGITS = 12  # two of a million configurations share a folder with probability 0.002


class Checkpoints:
    """The folders of one study, under ``root`` or, by default, under a temporary folder; made when they are first needed."""

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = None if root is None else read_root(root)

    def folder(self, config: Mapping[str, Any], space: Space) -> Path:
        """The folder of a configuration."""
        if self.root is None:
            self.root = Path(tempfile.mkdtemp(prefix="shoestring-"))  # it stays until the system cleans its temporary files
        folder = self.root / folder_name(config, space)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


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
