"""Predictions of a run, as a table that any program reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from eegnn.data.categories import width
from eegnn.data.npz import read_graphs
from eegnn.data.registry import categories_of
from eegnn.distributed import Ranks
from eegnn.engine.blocked.partition import partition
from eegnn.io import write_atomically
from eegnn.nn.exit_model import freeze_after_exit
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel
from eegnn.train.batches import collate
from eegnn.train.config import Config, parse_encoding
from eegnn.train.evaluate import predict_batch
from eegnn.train.prepare import prepare, prepare_unseen
from eegnn.train.run import RunFolder


def predict_to_csv(
    run: Path,
    path: Path,
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
        path: the table.
        input_file: graphs in the format of :mod:`eegnn.data.npz`; labels are not needed. Where the
            run has categories, ``x`` and ``edge_attr`` hold them, as in its data set.
        root: the data folder.
        blocks: cut a single graph into this many; 0 to take it whole; ``None`` to do as in
            training. Where ranks share the blocks, rank 0 writes.
        freeze: whether nodes that have left keep their state.
        knobs: of :meth:`~eegnn.nn.model.GraphModel.predict`.

    Returns:
        The number of lines.
    """
    folder = RunFolder(run)
    model, config = folder.model(), folder.config()
    if freeze:
        freeze_after_exit(model)
    task, scale = folder.labels()
    if input_file is None:
        graphs = prepare(config, root).graphs
    else:
        graphs = prepare_unseen(_read(input_file, model, config), config, root)
    if blocks is None:
        blocks = config.blocks if len(graphs) == 1 else 0
    if blocks and len(graphs) > 1:
        raise ValueError(f"blocks cut one graph, but there are {len(graphs)}: leave blocks=0")
    predictions = _predictions(model, graphs, config, blocks, knobs)
    rows = [row for out, exits in predictions for row in _rows(task, out * scale, exits)]
    if Ranks.current().is_main:
        text = io.StringIO(newline="")
        table = csv.writer(text)
        table.writerow(_header(task, model.out_channels))
        table.writerows([unit, *row] for unit, row in enumerate(rows))
        write_atomically(path, text.getvalue().encode())
    return len(rows)


def _predictions(
    model: GraphModel, graphs: Sequence[Data], config: Config, blocks: int, knobs: dict[str, Any]
) -> Iterator[tuple[Tensor, Exits]]:
    """Yield outputs and exits, batch by batch."""
    categories = categories_of(config.dataset)
    for start in range(0, len(graphs), config.batch_size):
        some = graphs[start : start + config.batch_size]
        batch = collate(some, model.edge_dim is not None, *categories)
        cut = partition(batch.adj, num_blocks=blocks) if blocks else None
        yield predict_batch(model, batch, cut, **knobs)


def _read(path: Path, model: GraphModel, config: Config) -> list[Data]:
    """Read graphs that have the features of the run's own, before preprocessing."""
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
        columns = ["class", "probability"]
    else:
        name = "label" if task == "multilabel" else "value"
        columns = [f"{name}_{k}" for k in range(channels)]
    return ["unit", *columns, "exit_layer", "exit_time"]


def _rows(task: str, out: Tensor, exits: Exits) -> Iterator[tuple[Any, ...]]:
    if task == "classification":
        probability, label = out.softmax(dim=-1).max(dim=-1)
        columns = [label.tolist(), probability.tolist()]
    else:
        columns = (out.sigmoid() if task == "multilabel" else out).T.tolist()
    return zip(*columns, exits.layer.tolist(), exits.time.tolist(), strict=True)
