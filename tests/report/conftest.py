from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved."""
    kept: list[Figure] = []
    plain = Figure.savefig

    def savefig(figure: Figure, *args: Any, **kwargs: Any) -> None:
        kept.append(figure)
        plain(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return kept
