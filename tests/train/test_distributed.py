from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eegnn.distributed import Ranks
from eegnn.train.batches import Batches
from eegnn.train.distributed import seed_rank
from eegnn.train.run import RunFolder
from tests.processes import run_module
from tests.train.problems import graph_problem, node_problem, timeless
from tests.train.test_batches import numbered, seeded
from tests.train.torchrun import CASES, EPOCHS, KILLED_AFTER


@settings(max_examples=30, deadline=None)
@given(count=st.integers(14, 40), batch_size=st.integers(1, 50), size=st.integers(1, 5))
def test_ranks_share_the_batches_of_one_process(count: int, batch_size: int, size: int) -> None:
    problem = numbered(graph_problem(count))
    whole = [batch.labels.tolist() for batch in Batches(problem, batch_size).training(seeded())]
    shares = [
        list(Batches(problem, batch_size, ranks=Ranks(rank, size)).training(seeded()))
        for rank in range(size)
    ]
    assert {len(share) for share in shares} == {len(whole)}, "all ranks take all steps"
    for whole_batch, *parts in zip(whole, *shares, strict=True):
        found = [label for batch in parts if not batch.is_dummy for label in batch.labels.tolist()]
        assert Counter(found) == Counter(whole_batch), "no graph twice, none lost"
        counts = [batch.num_targets for batch in parts]
        assert sum(counts) == len(whole_batch)
        assert max(counts) - min(counts) <= 1
    for part in ("val", "test"):
        batches = [
            Batches(problem, batch_size, ranks=Ranks(rank, size)).part(part) for rank in range(size)
        ]
        found = [label for own in batches for batch in own for label in batch.labels.tolist()]
        assert sorted(found) == sorted(getattr(problem, part).tolist())


def test_one_graph_is_not_shared_out() -> None:
    with pytest.raises(ValueError, match="is one graph, and torchrun shares out many"):
        Batches(node_problem(), 1, ranks=Ranks(0, 2))


def test_random_numbers_differ_by_rank_and_epoch() -> None:
    drawn = set()
    for rank, epoch in ((0, 0), (1, 0), (0, 1)):
        seed_rank(Ranks(rank, 2), 0, epoch)
        drawn.add(torch.rand(1).item())
    assert len(drawn) == 3


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Everything that several processes do, in one program; see `torchrun.py`."""
    where = tmp_path_factory.mktemp("torchrun") / "work"
    run_module("tests.train.torchrun", str(where), seconds=900)
    return where, json.loads((where / "report.json").read_text())


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("case", [name for name in CASES if name != "running statistics"])
def test_losses_and_gradients_are_those_of_one_process(case: str, size: int, done: Any) -> None:
    one, several = (RunFolder(done[0] / case / str(n)).metrics() for n in (1, size))
    assert len(one) == len(several) == CASES[case][1]["epochs"]
    for ours, theirs in zip(several, one, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-5)
        assert ours["val"] == pytest.approx(theirs["val"], abs=1e-5)
        assert ours["exit_mean"] == pytest.approx(theirs["exit_mean"], abs=0.1)
        assert ours["grad"] == pytest.approx(theirs["grad"], rel=1e-3, abs=1e-5)


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_gradients_are_summed_and_outputs_are_gathered(size: int, done: Any) -> None:
    alone = done[1]["alone"]
    assert any(np.abs(grad).max() > 1e-3 for grad in alone["gradients"] if grad is not None)
    for rank in range(size):
        found = done[1]["together"][str(size)][str(rank)]
        for ours, theirs in zip(found["gradients"], alone["gradients"], strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, atol=1e-6)
        for what in ("scores", "outputs", "exits"):
            assert found[what] == alone[what], "bit by bit, in the same order"


@needs_fork
@pytest.mark.slow
def test_ranks_evaluate_the_same_model(done: Any) -> None:
    """With batch normalisation, whose statistics are first those of each rank."""
    for size in (2, 3):
        folder = RunFolder(done[0] / "running statistics" / str(size))
        summary, lines = folder.summary(), folder.metrics()
        assert summary is not None
        best = lines[summary["best_epoch"] - 1]
        assert (summary["val"], summary["test"]) == (best["val"], best["test"])


@needs_fork
@pytest.mark.slow
def test_a_failure_is_told_once(done: Any) -> None:
    told = [line for line in done[1]["one graph"].splitlines() if line.startswith("eegnn: ")]
    assert len(told) == 1
    assert "is one graph, and torchrun shares out many" in told[0]
    assert "Traceback" not in done[1]["one graph"]


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("doomed", [0, 1])
def test_when_a_rank_is_killed_the_job_ends_and_says_so(doomed: int, done: Any) -> None:
    found = done[1]["kill"]
    assert found[f"seconds {doomed}"] < 60
    told = [line for line in found[f"message {doomed}"].splitlines() if line[:6] == "eegnn:"]
    assert len(told) == 1
    assert "has died" in told[0]
    assert "--resume" in told[0]
    assert "Traceback" not in found[f"message {doomed}"]


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_killed_run_goes_on_with_any_number_of_processes(size: int, done: Any) -> None:
    where = done[0]
    lines = [timeless(line) for line in RunFolder(where / f"resumed-{size}").metrics()]
    unbroken = [timeless(line) for line in RunFolder(where / "unbroken").metrics()]
    assert len(lines) == EPOCHS
    finished = KILLED_AFTER - 1  # at least: the last line is written before the state
    assert lines[:finished] == unbroken[:finished]
    assert (lines == unbroken) == (size == 2), "random numbers are the same for 2 only"
    summary = json.loads((where / f"resumed-{size}.out").read_text())
    assert summary["epochs"] == EPOCHS
    about = json.loads((where / f"resumed-{size}" / "config.json").read_text())
    assert about["versions"]["processes"] == "2", "it was begun with two"
