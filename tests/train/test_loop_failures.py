"""When training cannot go on, it says why and leaves the last good state."""

from __future__ import annotations

import errno
import math
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import eegnn.io
from eegnn.train.batches import MiniBatch
from eegnn.train.loop import Trainer, TrainingError
from eegnn.train.metrics import METRICS
from eegnn.train.run import RunFolder
from tests.train.problems import (
    NOISY,
    graph_problem,
    new_run,
    node_problem,
    outcome,
    resumed_run,
)


def spoil_loss(trainer: Trainer, after: int, value: float) -> None:
    """Let the loss be `value` from call `after` on."""
    plain, calls = trainer.loss, iter(range(10**6))

    def spoiled(out: Tensor, batch: MiniBatch, mean: Callable[[Tensor], Tensor]) -> Tensor:
        return plain(out, batch, mean) * (value if next(calls) >= after else 1.0)

    trainer.loss = spoiled  # type: ignore[assignment]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_with_epoch_and_hint(value: float, tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem(), lr=0.02)
    spoil_loss(trainer, 3, value)
    with pytest.raises(TrainingError, match=rf"the loss is {value} at epoch 4") as caught:
        trainer.fit()
    for hint in ("lr (now 0.02)", "clip_norm", "standardize"):
        assert hint in str(caught.value)


def test_a_loss_that_is_not_finite_leaves_the_last_good_state(tmp_path: Path) -> None:
    problem = graph_problem()
    new_run(tmp_path / "unbroken", problem, batch_size=5, **NOISY).fit()
    trainer = new_run(tmp_path / "broken", problem, batch_size=5, **NOISY)
    spoil_loss(trainer, 3 * 2 + 1, math.nan)  # in the middle of epoch 3
    with pytest.raises(TrainingError, match="epoch 3"):
        trainer.fit()
    state = trainer.folder.state()
    assert state is not None
    assert state["progress"]["epoch"] == 2
    resumed_run(tmp_path / "broken", problem).fit()
    assert outcome(tmp_path / "broken") == outcome(tmp_path / "unbroken")


def test_an_absurd_learning_rate_stops_training(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem(metric="accuracy"), model="gcn", lr=1e20)
    with pytest.raises(TrainingError, match=r"the loss is .* at epoch \d+; .*now 1e\+20"):
        trainer.fit()


def test_a_score_that_was_never_a_number_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METRICS, "roc_auc", lambda out, y: math.nan)
    trainer = new_run(tmp_path, node_problem(), epochs=3)
    with pytest.raises(TrainingError, match="never a number"):
        trainer.fit()
    assert trainer.folder.summary() is None


def test_collapsed_exits_are_warned_of_once(tmp_path: Path) -> None:
    options = {"continue_bias": -10.0}
    trainer = new_run(tmp_path, node_problem(), epochs=4, lr=1e-6, options=options)
    with pytest.warns(UserWarning, match="all units left at layer 1 at epoch 1") as caught:
        trainer.fit()
    assert len([w for w in caught if "all units left" in str(w.message)]) == 1
    assert "continue_bias" in str(caught[0].message)
    assert [line["exit_mean"] for line in trainer.folder.metrics()] == [1.0] * 4


def test_a_run_in_which_nobody_leaves_is_told_once(tmp_path: Path) -> None:
    options = {"continue_bias": 20.0}
    trainer = new_run(tmp_path, node_problem(), epochs=25, lr=1e-6, options=options)
    with pytest.warns(UserWarning, match="no unit left before layer 4 in 20 epochs") as caught:
        trainer.fit()
    assert len(caught) == 1
    assert "cost_weight such as 0.01" in str(caught[0].message)
    assert trainer.folder.metrics()[-1]["exit_quantiles"] == [4.0, 4.0, 4.0]


def test_exits_that_do_not_collapse_are_not_warned_of(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        summary = new_run(tmp_path, node_problem()).fit()
    assert summary["exits"]["max"] > 1


def test_a_folder_that_holds_a_run_is_not_overwritten(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem())
    trainer.fit()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileExistsError, match=re.escape(str(tmp_path))):
        trainer.folder.start(trainer.config, "classification")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match=re.escape(str(tmp_path))):
        new_run(tmp_path / "run", node_problem())


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        new_run(tmp_path / "file" / "run", node_problem())


class FullDisk:
    """Refuses the n-th file that is written or put in place, and all after it."""

    def __init__(self, after: int, code: int = errno.ENOSPC) -> None:
        self.left, self.code, self.full = after, code, False

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            self.full = self.full or self.left < 0
            if self.full:
                raise OSError(self.code, os.strerror(self.code))
            return function(*args, **kwargs)

        return wrapped


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("unbroken") / "run"
    new_run(path, node_problem(metric="accuracy"), epochs=6, **NOISY).fit()
    return outcome(path)


@pytest.mark.parametrize("which", ["open", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("after", [4, 5, 6, 7])
def test_a_disk_that_fills_up_leaves_the_last_good_state(
    which: str,
    code: int,
    after: int,
    unbroken: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = node_problem(metric="accuracy")
    trainer = new_run(tmp_path / "broken", problem, epochs=6, **NOISY)
    disk = FullDisk(after, code)
    with monkeypatch.context() as patch:
        if which == "open":
            patch.setattr(eegnn.io, "open", disk.wrap(open), raising=False)
        else:
            patch.setattr(eegnn.io.os, "replace", disk.wrap(os.replace))  # type: ignore[attr-defined]
        with pytest.raises(OSError, match=re.escape(os.strerror(code))):
            trainer.fit()
    assert disk.full
    state = trainer.folder.state()
    assert state is not None
    assert all(weight.isfinite().all() for weight in state["model"].values())
    assert not [path for path in trainer.folder.path.iterdir() if path.name.startswith(".")]
    resumed_run(tmp_path / "broken", problem).fit()
    assert outcome(tmp_path / "broken") == unbroken


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_metrics_that_cannot_be_written_are_an_error(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem())
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        trainer.fit()
    assert RunFolder(tmp_path).state() is None


def test_an_unfinished_run_has_no_summary(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem())
    spoil_loss(trainer, 2, math.nan)
    with pytest.raises(TrainingError):
        trainer.fit()
    assert trainer.folder.summary() is None
    assert isinstance(trainer.folder.model(), torch.nn.Module)


def test_outputs_that_are_not_finite_have_no_score(tmp_path: Path) -> None:
    problem = node_problem(metric="accuracy")
    trainer = new_run(tmp_path, problem, model="gcn", lr=1e20, epochs=1)
    with pytest.raises(TrainingError):  # ends with val 0.5 and test 0.9 from NaN outputs
        trainer.fit()
