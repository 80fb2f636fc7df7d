from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from eegnn import Adjacency
from eegnn.data.npz import write_npz
from eegnn.data.problem import Problem
from eegnn.source import write_graph
from eegnn.train import predict
from eegnn.train.predict import write_node_predictions, write_predictions
from eegnn.train.run import RunFolder
from tests.train.problems import (
    graph_problem,
    molecule_problem,
    new_run,
    node_problem,
    regression_problem,
    undecided,
)


def multilabel_problem() -> Problem:
    problem = graph_problem()
    graphs = [graph.clone() for graph in problem.graphs]
    for i, graph in enumerate(graphs):
        graph.y = torch.tensor([[float(i % 2), float(i % 3 == 0), 1.0 - i % 2]])
    return replace(problem, graphs=graphs, task="multilabel", metric="ap", out_channels=3)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "node": node_problem,
    "graph": graph_problem,
    "regression": regression_problem,
    "multilabel": multilabel_problem,
}


@pytest.fixture(params=PROBLEMS)
def problem(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Problem:
    """A problem that runs find whatever data set they name."""
    made = PROBLEMS[request.param]()
    monkeypatch.setattr(predict, "prepare", lambda config, root: made)
    return made


@pytest.fixture
def run(problem: Problem, tmp_path: Path) -> Path:
    trainer = new_run(tmp_path / "run", problem, epochs=2, batch_size=5)
    undecided(trainer.model, problem)
    trainer.fit()
    return tmp_path / "run"


def rows_of(path: Path) -> list[dict[str, float]]:
    with path.open(newline="") as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def by_hand(run: Path, problem: Problem, graphs: Any, **knobs: Any) -> list[dict[str, float]]:
    data = Batch.from_data_list(list(graphs))
    out, exits = RunFolder(run).model().predict(data.x, data.edge_index, batch=data.batch, **knobs)
    rows = []
    for unit, row in enumerate(out):
        if problem.task == "classification":
            shares = row.softmax(0)
            said = {"class": float(row.argmax()), "probability": float(shares.max())}
            said |= {f"probability_{k}": float(share) for k, share in enumerate(shares)}
        elif problem.task == "multilabel":
            said = {f"label_{k}": float(p) for k, p in enumerate(row.sigmoid())}
        else:
            said = {f"value_{k}": float(v) * problem.scale for k, v in enumerate(row)}
        left = {"exit_layer": float(exits.layer[unit]), "exit_time": float(exits.time[unit])}
        rows.append({"unit": float(unit), **said, **left})
    return rows


def assert_same(found: list[dict[str, float]], expected: list[dict[str, float]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert list(one) == list(other)
        assert one == pytest.approx(other, abs=1e-5)


def test_all_units_of_a_run_are_predicted(run: Path, problem: Problem, tmp_path: Path) -> None:
    count = write_predictions(run, tmp_path / "out.csv", None, None)
    found = rows_of(tmp_path / "out.csv")
    assert count == len(found)
    assert len({row["exit_layer"] for row in found}) > 1
    assert_same(found, by_hand(run, problem, problem.graphs))


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_other_tables_hold_the_same_as_csv(ending: str, run: Path, tmp_path: Path) -> None:
    if ending == ".parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow, of eegnn[parquet]")
    for path in (tmp_path / "out.csv", tmp_path / f"out{ending}"):
        write_predictions(run, path, None, None)
    if ending == ".jsonl":
        found = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        from pyarrow import parquet

        found = parquet.read_table(path).to_pylist()
    assert found == rows_of(tmp_path / "out.csv")


def test_an_unknown_ending_is_found_before_any_work(tmp_path: Path) -> None:
    for name in ("out.xlsx", "out"):
        with pytest.raises(ValueError, match=r"must end in \.csv, \.parquet, \.jsonl, got"):
            write_predictions(tmp_path / "no run", tmp_path / name, None, None)
    assert list(tmp_path.iterdir()) == []


def test_knobs_reach_the_model(run: Path, problem: Problem, tmp_path: Path) -> None:
    write_predictions(run, tmp_path / "out.csv", None, None, max_layers=1)
    found = rows_of(tmp_path / "out.csv")
    assert max(row["exit_layer"] for row in found) == 1
    assert_same(found, by_hand(run, problem, problem.graphs, max_layers=1))


def test_graphs_of_a_file_need_no_labels(run: Path, problem: Problem, tmp_path: Path) -> None:
    unseen = [Data(x=graph.x + 0.5, edge_index=graph.edge_index) for graph in problem.graphs[:7]]
    write_npz(tmp_path / "new.npz", unseen if len(unseen) > 1 else unseen[0])
    write_predictions(run, tmp_path / "out.csv", tmp_path / "new.npz", None)
    assert_same(rows_of(tmp_path / "out.csv"), by_hand(run, problem, unseen))


def test_what_cannot_be_predicted_leaves_no_table(run: Path, tmp_path: Path) -> None:
    wide = Data(x=torch.ones(3, 9), edge_index=torch.tensor([[0, 1], [1, 0]]))
    write_npz(tmp_path / "wide.npz", wide)
    with pytest.raises(ValueError, match="x must have shape"):
        write_predictions(run, tmp_path / "out.csv", tmp_path / "wide.npz", None)
    with pytest.raises(FileNotFoundError, match=r"absent\.npz"):
        write_predictions(run, tmp_path / "out.csv", tmp_path / "absent.npz", None)
    assert not (tmp_path / "out.csv").exists()


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_predictions(tmp_path, tmp_path / "out.csv", None, None)
    assert not (tmp_path / "out.csv").exists()


@pytest.fixture
def molecules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Problem:
    """A problem with categories, which runs find whatever data set they name."""
    made = molecule_problem()
    kinds = (made.node_categories, made.edge_categories)
    monkeypatch.setattr(predict, "prepare", lambda config, root: made)
    monkeypatch.setattr(predict, "categories_of", lambda dataset: kinds)
    new_run(tmp_path / "run", made, epochs=2, batch_size=5).fit()
    return made


def arrays_of(problem: Problem) -> dict[str, Any]:
    data = Batch.from_data_list(list(problem.graphs))
    keys = ("x", "edge_index", "edge_attr", "ptr")
    return {key: data[key].numpy() for key in keys}


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.float32])
def test_categories_of_a_file_are_those_of_the_run(
    dtype: type, molecules: Problem, tmp_path: Path
) -> None:
    write_predictions(tmp_path / "run", tmp_path / "own.csv", None, None)
    arrays = arrays_of(molecules)
    for key in ("x", "edge_attr"):
        arrays[key] = arrays[key].astype(dtype)
    np.savez(tmp_path / "new.npz", **arrays)
    write_predictions(tmp_path / "run", tmp_path / "new.csv", tmp_path / "new.npz", None)
    own, new = rows_of(tmp_path / "own.csv"), rows_of(tmp_path / "new.csv")
    assert len({row["probability"] for row in own}) > 10
    assert_same(new, own)


def test_files_that_do_not_fit_the_categories_are_refused(
    molecules: Problem, tmp_path: Path
) -> None:
    good = arrays_of(molecules)
    x, edge_attr = good["x"], good["edge_attr"]
    bad = [
        ({"x": x + 9}, "x: column 0 must hold categories"),
        ({"x": x + 0.5}, "x: column 0 must hold categories"),
        ({"x": x[:, :1]}, r"new\.npz: x must have shape \[N, 2\]"),
        ({"x": np.concatenate([x, x], axis=1)}, r"x must have shape \[N, 2\].*got \[3, 4\]"),
        ({"edge_attr": edge_attr + 3}, "edge_attr: column 0 must hold"),
        ({"edge_attr": edge_attr.repeat(2, axis=1)}, r"edge_attr must have shape \[N, 1\]"),
    ]
    for changes, message in bad:
        np.savez(tmp_path / "new.npz", **{**good, **changes})
        with pytest.raises(ValueError, match=message):
            write_predictions(tmp_path / "run", tmp_path / "new.csv", tmp_path / "new.npz", None)
    assert not (tmp_path / "new.csv").exists()


def test_integers_are_refused_where_the_run_has_numbers(tmp_path: Path) -> None:
    new_run(tmp_path / "run", graph_problem(), epochs=1).fit()
    edges = np.array([[0, 1], [1, 0]])
    np.savez(tmp_path / "new.npz", x=np.ones((3, 2), dtype=np.int64), edge_index=edges)
    with pytest.raises(TypeError, match="x must be floating point, got int64"):
        write_predictions(tmp_path / "run", tmp_path / "out.csv", tmp_path / "new.npz", None)


@pytest.fixture
def node_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    made = node_problem()
    monkeypatch.setattr(predict, "prepare", lambda config, root: made)
    trainer = new_run(tmp_path / "run", made, epochs=2)
    undecided(trainer.model, made)
    trainer.fit()
    return tmp_path / "run"


def assert_rows_agree(rows: list[dict[str, float]], expected: list[dict[str, float]]) -> None:
    assert len(rows) == len(expected)
    for row, truth in zip(rows, expected, strict=True):
        assert row == pytest.approx(truth, abs=1e-5)


def test_some_nodes_of_a_run_are_predicted(node_run: Path, tmp_path: Path) -> None:
    write_predictions(node_run, tmp_path / "all.csv", None, None)
    every = rows_of(tmp_path / "all.csv")
    (tmp_path / "ids.txt").write_text("7 0\n7\n")
    paths = (node_run, tmp_path / "some.csv", tmp_path / "ids.txt")
    count, touched = write_node_predictions(*paths, None, None)
    assert count == 3
    assert 2 <= touched.nodes <= len(every)
    assert_rows_agree(rows_of(tmp_path / "some.csv"), [every[i] for i in (7, 0, 7)])
    # The same graph in mapped files, and a budget that allows no step.
    data = node_problem().graphs[0]
    assert data.edge_index is not None
    write_graph(tmp_path / "g", data.x, Adjacency.from_edge_index(data.edge_index, data.num_nodes))
    write_node_predictions(*paths, tmp_path / "g", None)
    assert_rows_agree(rows_of(tmp_path / "some.csv"), [every[i] for i in (7, 0, 7)])
    write_node_predictions(*paths, tmp_path / "g", None, max_nodes=2)
    rows = rows_of(tmp_path / "some.csv")
    assert [(row["truncated"], row["exit_layer"]) for row in rows] == [(1, 0)] * 3


def test_nodes_that_are_not_numbers_are_refused(node_run: Path, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("1\n-2\n")
    with pytest.raises(ValueError, match=r"ids.txt must hold numbers of nodes, .* got '-2'"):
        write_node_predictions(node_run, tmp_path / "o.csv", tmp_path / "ids.txt", None, None)
    with pytest.raises(FileNotFoundError, match=r"no.txt does not exist"):
        write_node_predictions(node_run, tmp_path / "o.csv", tmp_path / "no.txt", None, None)
    assert not (tmp_path / "o.csv").exists()


def test_a_mapped_graph_is_refused_by_a_run_that_treats_features(
    node_run: Path, tmp_path: Path
) -> None:
    config = json.loads((node_run / "config.json").read_text())
    config["config"]["standardize"] = True
    del config["sha256"]
    (node_run / "config.json").write_text(json.dumps(config))
    (tmp_path / "ids.txt").write_text("1")
    data = node_problem().graphs[0]
    assert data.edge_index is not None
    write_graph(tmp_path / "g", data.x, Adjacency.from_edge_index(data.edge_index, data.num_nodes))
    with pytest.raises(ValueError, match="must have the features that the model takes"):
        write_node_predictions(
            node_run, tmp_path / "o.csv", tmp_path / "ids.txt", tmp_path / "g", None
        )
