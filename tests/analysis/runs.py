"""Small problems, trained for a moment, as runs on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eegnn.analysis import run as analysis_run
from eegnn.data.problem import Problem
from tests.train.problems import new_run

#: Heads that disagree, so that units leave at different layers.
UNDECIDED: dict[str, Any] = {"continue_bias": 2.0, "head_scale": 3.0}


def trained(
    path: Path,
    problem: Problem,
    monkeypatch: pytest.MonkeyPatch,
    model: str = "eegnn",
    **options: Any,
) -> Path:
    """A finished run, for which the package finds this problem whatever its configuration says."""
    monkeypatch.setattr(analysis_run, "prepare", lambda config, root: problem)
    options = {**UNDECIDED, **options} if model == "eegnn" else options
    new_run(path, problem, model=model, epochs=2, batch_size=5, options=options).fit()
    return path
