from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, with no storage address in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOESTRING_STORAGE", raising=False)
    return tmp_path


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def anywhere(request: pytest.FixtureRequest, here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``here``, with the storage in the default file, or on a server that the environment names.

    A server is slow: the contract of storages and ``test_postgres.py`` are about it in every run.
    """
    if request.param == "postgresql":
        monkeypatch.setenv("SHOESTRING_STORAGE", request.getfixturevalue("server").schema())
    return here
