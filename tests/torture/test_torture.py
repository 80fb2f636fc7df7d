"""A few cases of each kind; ``make torture`` does as many as one likes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.torture import calls, data, files, models
from tests.torture.harness import Report

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("run", "count"),
    [(models.run, 30), (calls.run, 300), (data.run, 60), (files.run, 120)],
    ids=["models", "calls", "data", "files"],
)
def test_every_case_ends_as_it_must(run: Callable[[int, range], Report], count: int) -> None:
    report = run(1, range(count))
    assert report.cases == count
    assert report.failures == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("kind", "seed", "count"),
    # Seed 4 begins with both commands and both storages, and with short limits of silence.
    [("pairs", 1, 4), ("kills", 1, 15), ("workers", 4, 2)],
)
def test_processes_that_compete_or_are_killed_leave_the_same_bits(
    kind: str, seed: int, count: int
) -> None:
    if kind == "workers":
        pytest.importorskip("optuna", reason="needs eegnn[tune]")
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture", kind, "--seed", str(seed), "--count", str(count)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    report = json.loads(done.stdout)
    assert report["failures"] == [], done.stderr
    assert report["cases"] >= count
