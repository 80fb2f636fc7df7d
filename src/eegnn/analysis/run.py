"""A trained run with its data, ready to be looked into."""

from __future__ import annotations

from pathlib import Path

from eegnn.compute import CPU, Compute
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches
from eegnn.train.prepare import prepare
from eegnn.train.run import RunFolder


def open_run(
    run: Path, data_dir: Path | None = None, compute: Compute = CPU, blocks: int | None = 0
) -> tuple[GraphModel, Batches]:
    """Load the model of a run's best epoch, and its problem as the run saw it, onto a device.

    A single graph is cut into ``blocks``; 0 takes it whole, ``None`` as in training.
    """
    folder = RunFolder(run)
    config, model = folder.config(), folder.model(compute.device)
    problem, with_edges = prepare(config, data_dir), model.edge_dim is not None
    count = config.blocks if blocks is None else blocks
    return model, Batches(problem, config.batch_size, with_edges, count, compute=compute)
