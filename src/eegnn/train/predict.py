"""Predictions of a run, as a table that any program reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from eegnn._json import to_json
from eegnn.compute import CPU, Compute
from eegnn.data.categories import width
from eegnn.data.files import read_graphs, require_parquet
from eegnn.data.registry import categories_of
from eegnn.distributed import Ranks
from eegnn.engine.blocked.partition import partition
from eegnn.io import write_atomically
from eegnn.nn.exit_model import freeze_after_exit
from eegnn.nn.exits import Exits, Touched
from eegnn.nn.model import GraphModel
from eegnn.source import MappedGraph
from eegnn.train.batches import MiniBatch, check_blocks_compute, collate
from eegnn.train.config import Config, parse_encoding
from eegnn.train.evaluate import predict_batch
from eegnn.train.prepare import prepare, prepare_unseen
from eegnn.train.run import RunFolder
from eegnn.typing import Task

Columns = dict[str, list[Any]]


def check_output(path: Path) -> None:
    """Refuse the name of a table that could not be written, or for which a package is missing."""
    if path.suffix not in WRITERS:
        raise ValueError(f"predictions must end in {', '.join(WRITERS)}, got {str(path)!r}")
    if path.suffix == ".parquet":
        require_parquet()


def write_predictions(
    run: Path,
    path: Path,
    input_path: Path | None,
    root: Path | None,
    blocks: int | None = None,
    freeze: bool = False,
    compute: Compute = CPU,
    **knobs: Any,
) -> int:
    """Write the predictions of a run for all its units, or for those of a file.

    Columns: ``unit`` (numbered from 0 over all graphs, in the order of the input), then, by task,
    ``class``, its ``probability`` and those of all classes, ``probability_0 …``; or ``label_0 …``
    (probabilities); or ``value_0 …``; then ``exit_layer`` and ``exit_time``.

    Args:
        run: the folder of the run.
        path: the table: ``.csv``, ``.parquet`` or ``.jsonl`` (a JSON object a line).
        input_path: graphs, as :func:`eegnn.data.files.read_graphs` takes; labels are not needed.
            Where the run has categories, ``x`` and ``edge_attr`` hold them, as in its data set.
        root: the data folder.
        blocks: cut a single graph into this many; 0 to take it whole; ``None`` to do as in
            training. Where ranks share the blocks, rank 0 writes.
        freeze: whether nodes that have left keep their state.
        compute: device and precision.
        knobs: of :meth:`~eegnn.nn.model.GraphModel.predict`.

    Returns:
        The number of lines.
    """
    check_output(path)
    folder = RunFolder(run)
    model, config = _open(folder, freeze, compute), folder.config()
    graphs = _graphs(model, config, input_path, root)
    if blocks is None:
        blocks = config.blocks if len(graphs) == 1 else 0
    if blocks and len(graphs) > 1:
        raise ValueError(f"blocks cut one graph, but there are {len(graphs)}: leave blocks=0")
    check_blocks_compute(blocks, compute)
    with compute.autocast():
        predictions = list(_predictions(model, graphs, config, blocks, compute.device, knobs))
    outputs, exits = zip(*predictions, strict=True)
    out = torch.cat(outputs)
    return _write(path, columns_of(folder.labels(), range(len(out)), out, exits))


def write_node_predictions(
    run: Path,
    path: Path,
    nodes_path: Path,
    input_path: Path | None,
    root: Path | None,
    max_nodes: int | None = None,
    freeze: bool = False,
    compute: Compute = CPU,
    **knobs: Any,
) -> tuple[int, Touched]:
    """Write the predictions of a run for some nodes of its graph, or of another one.

    Args:
        run, path, root, freeze, compute, knobs: as in :func:`write_predictions`, also the columns;
            ``unit`` is the number of the node. With ``max_nodes`` there is ``truncated``, 1 where
            it stopped a node.
        nodes_path: a text file with the numbers of nodes, from 0 on.
        input_path: as in :func:`write_predictions`, or a folder that
            :class:`~eegnn.source.MappedGraph` reads.
        max_nodes: how many nodes may be read.

    Returns:
        The number of lines, and how much of the graph was read.
    """
    check_output(path)
    nodes = _read_nodes(nodes_path)
    folder = RunFolder(run)
    model, config = _open(folder, freeze, compute), folder.config()
    asked: dict[str, Any] = {"nodes": nodes, "max_nodes": max_nodes, **knobs}
    graph = open_graph(model, config, input_path, root)
    with compute.autocast():
        if isinstance(graph, MappedGraph):
            out, exits = model.predict(None, graph, **asked)
        else:
            batch = graph.to(compute.device)
            out, exits = model.predict(batch.x, batch.adj, batch.edge_attr, **asked)
    assert exits.touched is not None
    columns = columns_of(folder.labels(), nodes, out.cpu(), [exits.cpu()])
    return _write(path, columns), exits.touched


def open_graph(
    model: GraphModel, config: Config, input_path: Path | None, root: Path | None
) -> MappedGraph | MiniBatch:
    """Open the one graph of a run, or another one, for its nodes to be predicted.

    Args:
        model, config: of the run.
        input_path: as in :func:`write_predictions`, or a folder that
            :class:`~eegnn.source.MappedGraph` reads.
        root: the data folder.
    """
    categories = categories_of(config.dataset)
    if input_path is not None and (input_path / "graph.rowptr.npy").is_file():
        if config.standardize or config.encoding != "none" or any(categories):
            raise ValueError(
                f"{input_path}: a mapped graph must have the features that the model takes, but "
                f"the run encodes or standardises those of its data first"
            )
        return MappedGraph(input_path)
    graphs = _graphs(model, config, input_path, root)
    if len(graphs) != 1:
        raise ValueError(f"nodes are those of one graph, but there are {len(graphs)}")
    return collate(graphs, model.edge_dim is not None, *categories)


def _open(folder: RunFolder, freeze: bool, compute: Compute) -> GraphModel:
    """Return the model of a run."""
    model = folder.model(compute.device)
    if freeze:
        freeze_after_exit(model)
    return model


def _graphs(
    model: GraphModel, config: Config, input_path: Path | None, root: Path | None
) -> Sequence[Data]:
    """Return the graphs of a run, or those of a file, preprocessed as the run did its own."""
    if input_path is None:
        return prepare(config, root).graphs
    return prepare_unseen(_read(input_path, model, config), config, root)


def _read_nodes(path: Path) -> list[int]:
    """Read numbers that are separated by blanks or line breaks."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    words = path.read_text().split()
    wrong = [word for word in words if not word.isdecimal()]
    if wrong:
        raise ValueError(f"{path} must hold numbers of nodes, from 0 on, got {wrong[0][:20]!r}")
    return [int(word) for word in words]


def _write(path: Path, columns: Columns) -> int:
    if Ranks.current().is_main:
        write_atomically(path, WRITERS[path.suffix](columns))
    return len(columns["unit"])


def _predictions(
    model: GraphModel,
    graphs: Sequence[Data],
    config: Config,
    blocks: int,
    device: torch.device,
    knobs: dict[str, Any],
) -> Iterator[tuple[Tensor, Exits]]:
    """Yield outputs and exits on the CPU, batch by batch."""
    categories = categories_of(config.dataset)
    for start in range(0, len(graphs), config.batch_size):
        some = graphs[start : start + config.batch_size]
        batch = collate(some, model.edge_dim is not None, *categories)
        cut = partition(batch.adj, num_blocks=blocks) if blocks else None
        out, left = predict_batch(model, batch.to(device), cut, **knobs)
        yield out.cpu(), left.cpu()


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


def columns_of(
    labels: tuple[Task, float], units: Sequence[int], out: Tensor, exits: Sequence[Exits]
) -> Columns:
    """Return a table of predictions; :func:`write_predictions` explains its columns.

    Args:
        labels: task, and scale of predictions, of the run.
        units: how the units are called.
        out: the outputs ``[U, C]`` of the model.
        exits: those of the units, in any number of parts.
    """
    task, scale = labels
    out = out.float() * scale
    columns: Columns = {"unit": list(units)}
    name, values = "value", out
    if task == "classification":
        name, values = "probability", out.softmax(dim=-1)
        top, label = values.max(dim=-1)
        columns |= {"class": label.tolist(), "probability": top.tolist()}
    elif task == "multilabel":
        name, values = "label", out.sigmoid()
    columns |= {f"{name}_{k}": column.tolist() for k, column in enumerate(values.T)}
    columns["exit_layer"] = torch.cat([some.layer for some in exits]).tolist()
    columns["exit_time"] = torch.cat([some.time for some in exits]).tolist()
    stopped = [some.truncated.int() for some in exits if some.truncated is not None]
    if stopped:
        columns["truncated"] = torch.cat(stopped).tolist()
    return columns


def _csv(columns: Columns) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([columns, *zip(*columns.values(), strict=True)])
    return text.getvalue().encode()


def _json_lines(columns: Columns) -> bytes:
    rows = zip(*columns.values(), strict=True)
    return "".join(f"{to_json(dict(zip(columns, row, strict=True)))}\n" for row in rows).encode()


def _parquet(columns: Columns) -> bytes:
    parquet = require_parquet()
    import pyarrow

    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


#: How a table is written, by the ending of its name.
WRITERS: dict[str, Callable[[Columns], bytes]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".jsonl": _json_lines,
}
