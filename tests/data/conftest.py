from __future__ import annotations

import os
from pathlib import Path

import pytest

from eegnn.data.download import MIRROR
from tests.data.tiny import tiny_mirror


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not os.environ.get(MIRROR):
        skip = pytest.mark.skip(reason=f"{MIRROR} names no folder with the real data sets")
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def real_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder for real data sets, filled from the mirror once a session."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror of tiny data sets."""
    folder = tiny_mirror(tmp_path / "mirror")
    monkeypatch.setenv(MIRROR, str(folder))
    return folder
