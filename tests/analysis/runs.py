"""Small problems, trained for a moment, as runs on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from eegnn.analysis import run as analysis_run
from eegnn.analysis.states import states_by_layer
from eegnn.data.problem import Problem
from eegnn.nn.exit_model import ExitModel
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches
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
    lively(model, 20.0, continue_bias=0.0)
    confidence: Any = model.loop.confidence
    differences = []
    with torch.no_grad():
        for batch in Batches(problem, 5, model.edge_dim is not None).part("test"):
            program = model.program(batch.adj, batch.edge_attr)
            states = states_by_layer(model, batch.x, batch.adj, batch.edge_attr)
            differences += [
                program.look(h, program.units(h, batch.adj), batch.adj)[0] for h in states[:-1]
            ]
        confidence.head.lins[-1].bias[0] -= torch.cat(differences).quantile(1 / 3)
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
