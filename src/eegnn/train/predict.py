"""Predictions of a run, as a table that any program reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from eegnn.data.categories import width
from eegnn.data.npz import read_graphs
from eegnn.data.registry import categories_of
from eegnn.engine.blocked.inference import infer
from eegnn.engine.blocked.partition import partition
from eegnn.engine.blocked.ranks import is_first
from eegnn.io import write_atomically
from eegnn.nn.exit_model import freeze_after_exit
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel
from eegnn.train.batches import gather
from eegnn.train.config import Config, parse_encoding
from eegnn.train.prepare import prepare, prepare_others
from eegnn.train.run import RunFolder


def predict_to_csv(
    run: Path,
    out: Path,
    input_file: Path | None,
    root: Path | None,
    blocks: int | None = None,
    freeze: bool = False,
    **knobs: Any,
) -> int:
    """Write the predictions of a run for all its units, or for those of a file.

    Columns: ``unit`` (numbered from 0 over all graphs), then ``class`` and ``probability``, or
    ``label_0 …`` (probabilities), or ``value_0 …``, by task; ``exit_layer``, ``exit_time``.

    Args:
        run: the folder of the run.
        out: the table.
        input_file: graphs in the format of :mod:`eegnn.data.npz`; labels are not needed. Where the
            run has categories, ``x`` and ``edge_attr`` hold them, as in its data set.
        root: the data folder.
        blocks: cut a single graph into so many; 0: take it whole; ``None``: as in training, where
            it is the run's own. Where ranks share them, the first one writes.
        freeze: whether nodes that have left stay as they are.
        knobs: of :meth:`~eegnn.nn.model.GraphModel.predict`.

    Returns:
        The number of lines.
    """
    folder = RunFolder(run)
    model, config = folder.model(), folder.config()
    if freeze:
        freeze_after_exit(model)
    nodes, edges = categories_of(config.dataset)
    task, scale = folder.labels()
    if input_file is None:
        graphs = prepare(config, root).graphs
    else:
        graphs = prepare_others(_read(input_file, model, config), config, root)
    if blocks is None:
        blocks = config.blocks if len(graphs) == 1 else 0
    if blocks and len(graphs) > 1:
        raise ValueError(f"blocks cut one graph, but there are {len(graphs)}: leave blocks=0")
    text = io.StringIO(newline="")
    table = csv.writer(text)
    count = 0
    for start in range(0, len(graphs), config.batch_size):
        some = graphs[start : start + config.batch_size]
        batch = gather(some, model.edge_dim is not None, nodes, edges)
        if blocks:
            parts = partition(batch.adj, num_blocks=blocks)
            outputs, exits = infer(model, batch.x, parts, batch.edge_attr, **knobs)
        else:
            outputs, exits = model.predict(batch.x, batch.adj, batch.edge_attr, **knobs)
        if count == 0:
            table.writerow(_header(task, model.out_channels))
        for row in _rows(task, outputs * scale, exits):
            table.writerow([count, *row])
            count += 1
    if is_first():
        write_atomically(out, text.getvalue().encode())
    return count


def _read(path: Path, model: GraphModel, config: Config) -> list[Data]:
    """Read graphs that have the features of the run's own, before those are treated."""
    nodes, edges = categories_of(config.dataset)
    categorical = [key for key, sizes in (("x", nodes), ("edge_attr", edges)) if sizes]
    graphs = read_graphs(path, categorical)
    _, added = parse_encoding(config.encoding)
    _check_columns(f"{path}: x", graphs[0].x, model.in_channels - added, nodes)
    if model.edge_dim is not None and graphs[0].edge_attr is not None:
        _check_columns(f"{path}: edge_attr", graphs[0].edge_attr, model.edge_dim, edges)
    return graphs


def _check_columns(name: str, features: Tensor, channels: int, sizes: tuple[int, ...]) -> None:
    if width(features.size(1), sizes) != channels:
        wanted = channels - width(0, sizes)
        raise ValueError(
            f"{name} must have shape [N, {wanted}], as in the run's data, got "
            f"{list(features.shape)}"
        )


def _header(task: str, channels: int) -> list[str]:
    if task == "classification":
        named = ["class", "probability"]
    else:
        stem = "label" if task == "multilabel" else "value"
        named = [f"{stem}_{k}" for k in range(channels)]
    return ["unit", *named, "exit_layer", "exit_time"]


def _rows(task: str, out: Tensor, exits: Exits) -> Iterator[list[Any]]:
    if task == "classification":
        probability, label = out.softmax(dim=-1).max(dim=-1)
        columns = [label.tolist(), probability.tolist()]
    else:
        columns = (out.sigmoid() if task == "multilabel" else out).T.tolist()
    for row in zip(*columns, exits.layer.tolist(), exits.time.tolist(), strict=True):
        yield list(row)
