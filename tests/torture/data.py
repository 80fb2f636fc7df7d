"""One's own data: the same graph in every format is the same problem, and mistakes are named."""

from __future__ import annotations

import csv
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import torch
from torch_geometric.data import Data

from eegnn.data.files import read_problem
from eegnn.data.problem import Problem
from tests.torture.harness import Report, Wrong, check_sentence, run_cases

Table = dict[str, list[Any]]
#: Cells that are no features of a node, no ends of an edge, and no classes.
BAD_CELLS = ("", "nan", "inf", "-inf", "1e999", "abc", "0x10", "1,5", "½", "\x00", "9" * 400)


def random_tables(rng: random.Random) -> tuple[Table, Table]:
    """Nodes with features, a class and a part; edges in both directions."""
    n = rng.randint(6, 15)
    nodes: Table = {
        f"f{k}": [rng.uniform(-2, 2) for _ in range(n)] for k in range(rng.randint(1, 3))
    }
    nodes["y"] = [i % 3 for i in range(n)]
    nodes["split"] = [("train", "val", "test")[i % 3] for i in range(n)]
    pairs = {(rng.randrange(n), rng.randrange(n)) for _ in range(2 * n)}
    pairs = {(u, v) for u, v in pairs if u < v} or {(0, 1)}
    ends = sorted(pairs | {(v, u) for u, v in pairs})
    return nodes, {"source": [u for u, _ in ends], "target": [v for _, v in ends]}


def arrays_of(nodes: Table, edges: Table) -> dict[str, Any]:
    columns = [np.array(nodes[name], dtype=np.float32) for name in nodes if name.startswith("f")]
    parts = np.array(nodes["split"])
    return {
        "x": np.stack(columns, axis=1),
        "edge_index": np.array([edges["source"], edges["target"]], dtype=np.int64),
        "y": np.array(nodes["y"], dtype=np.int64),
        **{f"{part}_mask": parts == part for part in ("train", "val", "test")},
    }


def write_npz(path: Path, nodes: Table, edges: Table) -> Path:
    np.savez(path / "graph.npz", **arrays_of(nodes, edges))
    return path / "graph.npz"


def write_pt(path: Path, nodes: Table, edges: Table) -> Path:
    tensors = {name: torch.from_numpy(array) for name, array in arrays_of(nodes, edges).items()}
    torch.save(Data(**tensors), path / "graph.pt")
    return path / "graph.pt"


def write_csv(path: Path, nodes: Table, edges: Table) -> Path:
    for name, table in (("nodes", nodes), ("edges", edges)):
        with (path / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerows([list(table), *zip(*table.values(), strict=True)])
    return path


def write_parquet(path: Path, nodes: Table, edges: Table) -> Path:
    import pyarrow
    from pyarrow import parquet

    for name, table in (("nodes", nodes), ("edges", edges)):
        parquet.write_table(pyarrow.table(table), path / f"{name}.parquet")
    return path


def write_graphml(path: Path, nodes: Table, edges: Table) -> Path:
    root = ElementTree.Element("graphml")
    for name in nodes:
        ElementTree.SubElement(root, "key", {"id": name, "for": "node", "attr.name": name})
    graph = ElementTree.SubElement(root, "graph", edgedefault="directed")
    for row in range(len(nodes["f0"])):
        node = ElementTree.SubElement(graph, "node", id=str(row))
        for name, cells in nodes.items():
            ElementTree.SubElement(node, "data", key=name).text = str(cells[row])
    for source, target in zip(edges["source"], edges["target"], strict=True):
        ElementTree.SubElement(graph, "edge", source=str(source), target=str(target))
    ElementTree.ElementTree(root).write(path / "graph.graphml", encoding="utf-8")
    return path / "graph.graphml"


WRITERS: dict[str, Callable[[Path, Table, Table], Path]] = {
    "npz": write_npz,
    "pt": write_pt,
    "csv": write_csv,
    "parquet": write_parquet,
    "graphml": write_graphml,
}


def check_same(found: Problem, nodes: Table, edges: Table) -> None:
    wanted, graph = arrays_of(nodes, edges), found.graphs[0]
    for key in ("x", "edge_index", "y"):
        value = graph[key].numpy()
        if value.shape != wanted[key].shape or not np.allclose(value, wanted[key], rtol=1e-6):
            raise Wrong(f"{key} was read as {value}, written as {wanted[key]}")
    for part in ("train", "val", "test"):
        if getattr(found, part).tolist() != np.flatnonzero(wanted[f"{part}_mask"]).tolist():
            raise Wrong(f"another part {part}")


def spoil(rng: random.Random, nodes: Table, edges: Table) -> str:
    """Make a mistake in a cell of a table, and return which."""
    how = rng.choice(["feature", "end", "class", "part", "missing end", "name twice"])
    row = rng.randrange(len(nodes["y"]))
    if how == "feature":
        nodes["f0"][row] = rng.choice(BAD_CELLS)
    elif how == "end":
        bad = [str(len(nodes["y"])), "-1", "1.5", "node", "", str(10**14), "9" * 400]
        edges[rng.choice(list(edges))][0] = rng.choice(bad)
    elif how == "class":
        nodes["y"][row] = rng.choice(["-1", "7", str(10**12), "cat", "", "nan"])
    elif how == "part":
        nodes["split"][row] = rng.choice(["training", "0", "TEST ", "x" * 10_000])
    elif how == "missing end":
        del edges[rng.choice(list(edges))]
    else:
        nodes["y_1"] = nodes.pop("y")
        nodes["f0"][0] = "" if rng.random() < 0.5 else "abc"
    return how


def case(rng: random.Random, report: Report) -> str:
    nodes, edges = random_tables(rng)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if rng.random() < 0.5:
            kind = rng.choice(list(WRITERS))
            check_same(read_problem(WRITERS[kind](folder, nodes, edges)), nodes, edges)
            return f"same: {kind}"
        how = spoil(rng, nodes, edges)
        kind = "csv" if how == "missing end" else rng.choice(["csv", "graphml"])
        try:
            path = WRITERS[kind](folder, nodes, edges)
        except (ValueError, UnicodeError):
            return "cannot be written"
        try:
            read_problem(path)
        except Exception as error:
            check_sentence(error, str(folder))
            return f"refused: {how}"
        raise Wrong(f"{kind} with a mistake, {how}, was taken")


def run(seed: int, numbers: range) -> Report:
    return run_cases("data", seed, numbers, case)
