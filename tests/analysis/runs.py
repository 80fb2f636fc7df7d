"""Small problems, trained for a moment, as runs on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from eegnn.analysis import run as analysis_run
from eegnn.data.problem import Problem
from eegnn.nn.exit_model import ExitModel
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches
from eegnn.train.evaluate import evaluate
from tests.nn.model_examples import lively
from tests.train.problems import new_run


def undecided(model: GraphModel, problem: Problem) -> GraphModel:
    """Let the heads, if there are any, decide for *exit* in about a third of all cases.

    So units leave at different layers.

    Args:
        model: it is changed, and returned.
        problem: on which it decides.
    """
    if not isinstance(model, ExitModel):
        return model
    found: list[Tensor] = []
    confidence: Any = lively(model, 20.0, continue_bias=0.0).loop.confidence
    hook = confidence.register_forward_hook(lambda _, given, out: found.append(out.diff(dim=1)))
    batches = Batches(problem, 5, model.edge_dim is not None)
    evaluate(model, batches, ("test",), exit_threshold=1.0)
    hook.remove()
    with torch.no_grad():
        confidence.head.lins[-1].bias[0] += torch.cat(found).quantile(2 / 3)
    return model


def trained(
    path: Path,
    problem: Problem,
    monkeypatch: pytest.MonkeyPatch,
    model: str = "eegnn",
    **options: Any,
) -> Path:
    """A finished run, for which the package finds this problem whatever its configuration says."""
    monkeypatch.setattr(analysis_run, "prepare", lambda config, root: problem)
    trainer = new_run(path, problem, model=model, epochs=2, batch_size=5, options=options)
    undecided(trainer.model, problem)
    trainer.fit()
    return path
