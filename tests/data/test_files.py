"""The same graph in every format; what is wrong with a file is named."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import networkx  # type: ignore[import-untyped]
import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import is_undirected

from eegnn.data.files import FORMATS, read_graphs, read_problem
from eegnn.data.npz import write_npz
from eegnn.train.config import make_config
from eegnn.train.start import train

PARTS = ("train", "val", "test")
#: The end of a zip file that says to be one of two disks.
TWO_DISKS = b"PK\6\7" + bytes(12) + b"\2\0\0\0" + b"PK\5\6" + bytes(18)


def graph() -> Data:
    """A hundred nodes, three classes, features that no short decimal equals.

    Edges are sorted by their source, as NetworkX writes them: where there are edge features, their
    order decides how sums are rounded.
    """
    torch.manual_seed(0)
    ends = torch.randint(100, (2, 150))
    edge_index = torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1)
    masks = torch.arange(100) % 3 == torch.arange(3)[:, None]
    return Data(
        x=torch.randn(100, 4) * torch.tensor([1e-6, 1.0, 0.1, 1 / 3]),
        edge_index=edge_index,
        edge_attr=torch.rand(edge_index.size(1), 2),
        y=torch.randint(3, (100,)),
        train_mask=masks[0],
        val_mask=masks[1],
        test_mask=masks[2],
    )


def tables(data: Data) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Nodes and edges as columns, the nodes with names."""
    ids = [f"n{i}" for i in range(len(data.x))]
    split = [next(p for p in PARTS if data[f"{p}_mask"][i]) for i in range(len(ids))]
    nodes = {"id": ids, **{f"f{k}": c.tolist() for k, c in enumerate(data.x.T)}}
    nodes |= {"y": data.y.tolist(), "split": split}
    ends = [[ids[i] for i in row] for row in data.edge_index.tolist()]
    edges = {"source": ends[0], "target": ends[1]}
    edges |= {f"e{k}": c.tolist() for k, c in enumerate(data.edge_attr.T)}
    return nodes, edges


def write_folder(folder: Path, nodes: Mapping[str, Any], edges: Mapping[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, columns in (("nodes", nodes), ("edges", edges)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
    return folder


def as_csv(folder: Path) -> Path:
    return write_folder(folder / "graph", *tables(graph()))


def as_parquet(folder: Path) -> Path:
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow, of eegnn[parquet]")
    from pyarrow import parquet

    (folder / "graph").mkdir()
    for name, columns in zip(("nodes", "edges"), tables(graph()), strict=True):
        parquet.write_table(pyarrow.table(columns), folder / "graph" / f"{name}.parquet")
    return folder / "graph"


def as_graphml(folder: Path) -> Path:
    nodes, edges = tables(graph())
    made = networkx.MultiDiGraph()
    for row in zip(*nodes.values(), strict=True):
        made.add_node(row[0], **dict(list(zip(nodes, row, strict=True))[1:]))
    for row in zip(*edges.values(), strict=True):
        made.add_edge(row[0], row[1], **dict(list(zip(edges, row, strict=True))[2:]))
    networkx.write_graphml(made, folder / "graph.graphml")
    return folder / "graph.graphml"


def as_pt(folder: Path) -> Path:
    torch.save(graph(), folder / "graph.pt")
    return folder / "graph.pt"


def as_dictionary(folder: Path) -> Path:
    torch.save(graph().to_dict(), folder / "graph.pt")
    return folder / "graph.pt"


def as_npz(folder: Path) -> Path:
    write_npz(folder / "graph.npz", graph())
    return folder / "graph.npz"


WRITERS = [as_csv, as_parquet, as_graphml, as_pt, as_dictionary]


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_trains_to_the_same_bits(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    weights = []
    for name, path in (("npz", as_npz(tmp_path)), ("other", write(tmp_path))):
        config = make_config({"dataset": str(path), "model": "eegnn", "epochs": 3, "num_layers": 4})
        train(config, tmp_path / name)
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_has_the_graph_that_was_written(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    problem, data = read_problem(write(tmp_path)), graph()
    for key in ("x", "edge_index", "edge_attr", "y"):
        assert torch.equal(problem.graphs[0][key], data[key])
    for part in PARTS:
        assert torch.equal(getattr(problem, part), data[f"{part}_mask"].nonzero().flatten())


def test_undirected_graphml_has_both_directions(tmp_path: Path) -> None:
    made = networkx.karate_club_graph()
    for _, node in made.nodes(data=True):
        node["y"] = int(node.pop("club") == "Officer")
    networkx.write_graphml(made, tmp_path / "karate.graphml")
    (data,) = read_problem(tmp_path / "karate.graphml").graphs
    assert is_undirected(data.edge_index, data.edge_attr)
    assert (data.num_nodes, data.num_edges) == (34, 156)
    assert data.edge_attr.size(1) == 1  # the weight
    assert int(data.y.sum()) == 17


def test_a_list_of_graphs_may_be_saved(tmp_path: Path) -> None:
    graphs = [
        Data(x=torch.rand(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([i % 2]))
        for i in range(10)
    ]
    torch.save(graphs, tmp_path / "graphs.pt")
    assert len(read_problem(tmp_path / "graphs.pt").graphs) == 10


@pytest.mark.parametrize(
    ("name", "text", "features"),
    [
        ("graph.edges", "0 1\n1 2\n", 0),
        ("graph.txt", "# SNAP\n% and others\n\n0\t1 2.5\n1\t2 0.5\n", 1),
        ("graph.csv", "source,target\n0,1\n1,2\n", 0),
        ("graph.CSV", "0,1,2.5\n1,2,0.5\n", 1),
    ],
)
def test_edge_lists_have_nodes_without_features(
    name: str, text: str, features: int, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    (data,) = read_graphs(tmp_path / name)
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]
    assert list(data.x.shape) == [3, 0]
    assert (data.edge_attr.flatten().tolist() if features else []) == [2.5, 0.5][: 2 * features]


def test_without_ids_edges_name_rows(tmp_path: Path) -> None:
    nodes = {"a": [1, 2, 3], "y": [0, 1, 0], "b": ["True", "false", "1"]}
    edges = {"source": [0, 2], "target": [1, 1]}
    (data,) = read_graphs(write_folder(tmp_path, nodes, edges))
    assert data.x.tolist() == [[1, 1], [2, 0], [3, 1]]
    assert data.edge_index.tolist() == [[0, 2], [1, 1]]


def test_several_labels_and_splits_have_numbers(tmp_path: Path) -> None:
    nodes: dict[str, list[Any]] = {"a": [1, 2, 3, 4], "y_0": [0, 1, 0, 1], "y_1": [1, 1, 0, 0]}
    nodes |= {"split_0": ["train", "val", "test", ""], "split_1": ["", "test", "val", "train"]}
    folder = write_folder(tmp_path, nodes, {"source": [0], "target": [1]})
    problem = read_problem(folder, split=1)
    assert (problem.task, problem.out_channels, problem.in_channels) == ("multilabel", 2, 1)
    assert [getattr(problem, part).tolist() for part in PARTS] == [[3], [2], [1]]


@pytest.mark.parametrize("suffix", ["", "_mask"])
def test_masks_may_be_columns(suffix: str, tmp_path: Path) -> None:
    masks = {"train": [1, 0, 0], "val": [0, 1, 0], "test": ["False", "False", "True"]}
    nodes = {"a": [0.5, 1, 2], "y": [0, 1, 1], **{k + suffix: v for k, v in masks.items()}}
    problem = read_problem(write_folder(tmp_path, nodes, {"source": [0], "target": [1]}))
    assert [getattr(problem, part).tolist() for part in PARTS] == [[0], [1], [2]]
    assert problem.in_channels == 1


NODES = {"id": ["a", "b"], "f": [1, 2], "y": [0, 1]}
EDGES = {"source": ["a"], "target": ["b"]}


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ({"f": [1, "tall"]}, {}, r"nodes\.csv, line 3: column 'f' must be a finite.*'tall'"),
        ({"f": [1, "nan"]}, {}, r"nodes\.csv, line 3: column 'f' must be a finite.*'nan'"),
        ({"f": ["", 2]}, {}, r"nodes\.csv, line 2: column 'f' is empty"),
        ({"y": ["cat", "dog"]}, {}, r"nodes\.csv, line 2: column 'y' must be a finite"),
        ({"y": [1, 2]}, {}, "y must hold class numbers 0"),
        ({"id": ["a", "a"]}, {}, r"nodes\.csv, line 3: id 'a' must not occur twice"),
        ({"split": ["train", "valid"]}, {}, r"line 3: column 'split' must be train.*'valid'"),
        ({"train": [1, 0]}, {}, "train_mask is given, but val_mask, test_mask is missing"),
        ({"train": [1, 0], "split": ["", ""]}, {}, "split, train all give a split"),
        ({"": [0, 1]}, {}, "a column has no name"),
        ({}, {"target": ["c"]}, r"edges\.csv, line 2: target 'c' is no id of .*nodes\.csv"),
        ({}, {"w": ["heavy"]}, r"edges\.csv, line 2: column 'w' must be a finite"),
    ],
)
def test_errors_name_file_line_and_column(
    nodes: dict[str, Any], edges: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        read_problem(write_folder(tmp_path, NODES | nodes, EDGES | edges))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.edges", b"0 1\n1 2 3\n", "line 2: expected 2 cells, got 3"),
        ("g.edges", b"0 1\n1 b\n", "line 2: column 'target' must be a finite number, got 'b'"),
        ("g.edges", b"0 1\n1 -2\n", "line 2: target '-2' is no id"),
        ("g.txt", b"# nothing\n", "two or three columns"),
        ("g.csv", b"a,b,c,d\n1,2,3,4\n", "two or three columns"),
        ("g.csv", b"\xff\xfe0,1\n", "not a table in UTF-8"),
        ("g.graphml", b"<graphml", "is not GraphML"),
        ("g.graphml", b"<graphml/>", "must hold one graph, got 0"),
        ("g.pt", b"", "is damaged"),
        ("g.pt", b"junk", "is damaged"),
        ("g.pt", b"nonsense", "is damaged, or was not written by torch.save$"),
        ("g.pt", TWO_DISKS, "is damaged: its table of contents cannot be read"),
        ("g.npz", TWO_DISKS, "is damaged: its table of contents cannot be read"),
        ("g.xyz", b"", r"must be a folder .*\.npz, \.pt, \.graphml"),
    ],
)
def test_damaged_and_unknown_files_get_one_sentence(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_graphs(tmp_path / name)


def test_folders_need_both_tables_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nodes\.csv or nodes\.parquet, but it holds neither"):
        read_graphs(tmp_path)
    write_folder(tmp_path, NODES, {"from": ["a"], "target": ["b"]})
    with pytest.raises(ValueError, match=r"column 'source' is missing; there is from, target"):
        read_graphs(tmp_path)
    (tmp_path / "nodes.csv").write_text("id,f\na,1,2\n")
    with pytest.raises(ValueError, match=r"nodes\.csv, line 2: expected 2 cells, got 3"):
        read_graphs(tmp_path)
    (tmp_path / "nodes.parquet").touch()
    with pytest.raises(ValueError, match="but it holds both"):
        read_graphs(tmp_path)


@pytest.mark.skipif(find_spec("pyarrow") is not None, reason="pyarrow is installed")
def test_parquet_without_pyarrow_tells_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "nodes.parquet").touch()
    with pytest.raises(ImportError, match=r"eegnn\[parquet\]"):
        read_graphs(tmp_path)


class Harmful:
    """What runs a command when it is unpickled."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.proof}",)


def test_loading_executes_nothing(tmp_path: Path) -> None:
    data = graph()
    data.extra = Harmful(tmp_path / "proof")
    torch.save(data, tmp_path / "graph.pt")
    with pytest.raises(ValueError, match=r"graph\.pt holds (posix|nt)\.system.*execute code"):
        read_problem(tmp_path / "graph.pt")
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize(
    "content",
    [torch.ones(3), "text", HeteroData(), {"x": "text", "edge_index": torch.zeros(2, 0)}, [3], {}],
)
def test_other_things_than_graphs_are_refused(content: Any, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "graph.pt")
    with pytest.raises((ValueError, TypeError), match=r"graph\.pt"):
        read_graphs(tmp_path / "graph.pt")


def test_arrays_of_numpy_in_data_are_named(tmp_path: Path) -> None:
    data = graph()
    data.extra = np.ones(3)
    torch.save(data, tmp_path / "graph.pt")
    with pytest.raises(ValueError, match=r"holds numpy.*torch\.save\(data\.to_dict\(\)"):
        read_problem(tmp_path / "graph.pt")


def test_the_documented_endings_are_those_of_the_table() -> None:
    text = read_problem.__doc__ or ""
    assert all(f"``{ending}``" in text for ending in FORMATS if ending != "folder")


def test_a_small_file_that_would_need_much_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eegnn.io.MAX_BYTES", 10**6)
    edges = np.zeros((2, 1), dtype=np.int64)
    np.savez_compressed(
        tmp_path / "a.npz", x=np.zeros((10**6, 1), dtype=np.float32), edge_index=edges
    )
    expanded = {"x": torch.zeros(1, 1).expand(10**6, 10**6), "edge_index": torch.from_numpy(edges)}
    torch.save(expanded, tmp_path / "b.pt")
    (tmp_path / "c.edges").write_text("0 99999999999999\n")
    nodes = "".join(f'<node id="{k}"><data key="k{k}">1</data></node>' for k in range(300))
    keys = "".join(f'<key id="k{k}" for="node" attr.name="k{k}"/>' for k in range(300))
    (tmp_path / "d.graphml").write_text(f"<graphml>{keys}<graph>{nodes}</graph></graphml>")
    for name in ("a.npz", "b.pt", "c.edges", "d.graphml"):
        with pytest.raises(ValueError, match=rf"{name} has [\d,]+ bytes but would need [\d,]+ in"):
            read_problem(tmp_path / name)


def test_a_large_file_may_need_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eegnn.io.MAX_BYTES", 10)
    write_npz(tmp_path / "a.npz", graph())
    assert torch.equal(read_problem(tmp_path / "a.npz").graphs[0].x, graph().x)


def test_a_compressed_file_of_tensors_is_not_inflated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eegnn.io.MAX_BYTES", 10**6)
    torch.save(graph().to_dict(), tmp_path / "a.pt")
    with (
        zipfile.ZipFile(tmp_path / "a.pt") as old,
        zipfile.ZipFile(tmp_path / "b.pt", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for part in old.infolist():
            new.writestr(part.filename, old.read(part))
        new.writestr("a/data/99", bytes(10**7))
    with pytest.raises(ValueError, match=r"b\.pt has [\d,]+ bytes but would need"):
        read_problem(tmp_path / "b.pt")


def test_pytorch_is_not_quoted_with_its_advice_to_execute_a_file(tmp_path: Path) -> None:
    torch.save(np.array([1.0]), tmp_path / "a.pt")
    with pytest.raises(ValueError, match="could execute code") as caught:
        read_problem(tmp_path / "a.pt")
    assert "weights_only" not in str(caught.value)
