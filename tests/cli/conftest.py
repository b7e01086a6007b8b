from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, as a person would: nothing in the environment says where studies are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOESTRING_STORAGE", raising=False)
    return tmp_path
