from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eegnn.data.files import read_graphs, read_problem
from eegnn.data.problem import Problem

Arrays = dict[str, Any]


def one_graph(**changes: Any) -> Arrays:
    """Six nodes in a ring, three classes; a change to ``None`` removes the key."""
    node = np.arange(6)
    arrays: Arrays = {
        "x": np.arange(12, dtype=np.float32).reshape(6, 2),
        "edge_index": np.stack([node, (node + 1) % 6]),
        "y": node % 3,
        "train": np.array([0, 1, 2]),
        "val": np.array([3, 4]),
        "test": np.array([5]),
    }
    return {key: value for key, value in {**arrays, **changes}.items() if value is not None}


def many_graphs(**changes: Any) -> Arrays:
    """Three graphs of two, three and one nodes, one number to predict for each."""
    arrays: Arrays = {
        "ptr": np.array([0, 2, 5, 6]),
        "edge_index": np.array([[2, 0, 3], [3, 1, 4]]),
        "edge_attr": np.array([[2.0], [0.0], [3.0]]),
        "y": np.array([0.5, 1.5, 2.5]),
        "train": np.array([0]),
        "val": np.array([1]),
        "test": np.array([2]),
    }
    return one_graph(**{**arrays, **changes})


def write(folder: Path, arrays: Arrays) -> Path:
    path = folder / "mine.npz"
    np.savez(path, **arrays)
    return path


def test_one_graph_is_divided_by_its_nodes(tmp_path: Path) -> None:
    problem = read_problem(write(tmp_path, one_graph()))
    assert (problem.name, problem.level, problem.inductive) == ("mine", "node", False)
    assert (problem.task, problem.metric, problem.out_channels) == ("classification", "accuracy", 3)
    assert problem.train.tolist() == [0, 1, 2]
    assert problem.graphs[0].y.tolist() == [0, 1, 2, 0, 1, 2]
    assert problem.graphs[0].x.dtype == torch.float32


def test_many_graphs_are_cut_at_ptr(tmp_path: Path) -> None:
    problem = read_problem(write(tmp_path, many_graphs()))
    assert (problem.level, problem.task, problem.metric) == ("graph", "regression", "mae")
    assert problem.inductive
    assert [graph.num_nodes for graph in problem.graphs] == [2, 3, 1]
    assert [graph.edge_index.tolist() for graph in problem.graphs] == [
        [[0], [1]],
        [[0, 1], [1, 2]],
        [[], []],
    ]
    assert [graph.edge_attr.view(-1).tolist() for graph in problem.graphs] == [[0], [2, 3], []]
    assert [graph.y.tolist() for graph in problem.graphs] == [[[0.5]], [[1.5]], [[2.5]]]


def test_many_graphs_may_have_labels_for_nodes(tmp_path: Path) -> None:
    problem = read_problem(write(tmp_path, many_graphs(y=np.arange(6) % 2)))
    assert (problem.level, problem.metric) == ("node", "roc_auc")
    assert [graph.y.tolist() for graph in problem.graphs] == [[0, 1], [0, 1, 0], [1]]


@pytest.mark.parametrize(
    ("y", "task", "metric", "channels"),
    [
        (np.arange(6) % 2, "classification", "roc_auc", 2),
        (np.arange(6) % 2 == 0, "classification", "roc_auc", 2),
        ((np.arange(6) % 4)[:, None], "classification", "accuracy", 4),
        (np.linspace(0, 1, 6), "regression", "mae", 1),
        (np.eye(6)[:, :2] + 0.5, "regression", "mae", 2),
        (np.eye(6)[:, :3], "multilabel", "ap", 3),
        (np.eye(6, dtype=int)[:, :3], "multilabel", "ap", 3),
    ],
)
def test_labels_show_the_task(
    y: Any, task: str, metric: str, channels: int, tmp_path: Path
) -> None:
    problem = read_problem(write(tmp_path, one_graph(y=y)))
    assert (problem.task, problem.metric, problem.out_channels) == (task, metric, channels)
    shape = (6,) if task == "classification" else (6, channels)
    assert problem.graphs[0].y.shape == shape


def test_what_is_given_goes_before_what_is_inferred(tmp_path: Path) -> None:
    path = write(tmp_path, one_graph())
    assert read_problem(path, task="regression").graphs[0].y.dtype == torch.float32
    assert read_problem(path, metric="f1").metric == "f1"
    assert read_problem(path, task="regression", metric="mse").metric == "mse"


def test_masks_may_hold_several_splits(tmp_path: Path) -> None:
    masks = {
        "train_mask": np.eye(6, dtype=bool)[:, :2],
        "val_mask": np.eye(6, dtype=bool)[:, 2:4],
        "test_mask": np.eye(6, dtype=bool)[:, 5],  # the same for both
    }
    path = write(tmp_path, one_graph(train=None, val=None, test=None, **masks))
    problem = read_problem(path, split=1)
    assert [part.tolist() for part in (problem.train, problem.val, problem.test)] == [[1], [3], [5]]
    with pytest.raises(ValueError, match="train_mask has 2 splits, but split 2 was asked for"):
        read_problem(path, split=2)


def test_without_a_split_there_is_a_seeded_one(tmp_path: Path) -> None:
    x, y = np.zeros((50, 1)), np.arange(50) % 2
    path = write(tmp_path, one_graph(x=x, y=y, train=None, val=None, test=None))
    problem, again, other = read_problem(path), read_problem(path), read_problem(path, split=1)
    parts = [problem.train, problem.val, problem.test]
    assert [len(part) for part in parts] == [30, 10, 10]
    assert torch.cat(parts).sort().values.tolist() == list(range(50))
    assert torch.equal(problem.train, again.train)
    assert not torch.equal(problem.train, other.train)
    assert problem.notes["split"] == "60/20/20 at random, seed 0"


def test_graphs_are_read_for_predictions_without_labels_or_split(tmp_path: Path) -> None:
    arrays = many_graphs(y=None, train=None, val=None, test=None)
    graphs = read_graphs(write(tmp_path, arrays))
    assert [graph.num_nodes for graph in graphs] == [2, 3, 1]


BAD: list[tuple[Arrays, str]] = [
    (one_graph(x=None), "x is missing"),
    (one_graph(y=None), "y is missing"),
    (one_graph(x=np.zeros(6)), "x must have 2 dimensions, got 1"),
    (one_graph(x=np.zeros((0, 2))), "x must have at least one row"),
    (one_graph(x=np.zeros((6, 2), dtype=int)), "x must be floating point, got int64"),
    (one_graph(x=np.array([["a"]] * 6)), "x must be floating point, got <U1"),
    (one_graph(x=np.full((6, 2), np.nan)), "x holds NaN or infinite values, first in row 0"),
    (one_graph(x=np.full((6, 2), 1e300)), "x holds NaN or infinite values"),
    (one_graph(edge_index=np.zeros((3, 2), dtype=int)), r"edge_index must have shape \[2, E\]"),
    (one_graph(edge_index=np.zeros((2, 2))), "edge_index must hold integers, got float64"),
    (one_graph(edge_index=np.array([[0], [6]])), r"edge_index must lie in 0 … 5 .*, got 6"),
    (one_graph(edge_index=np.array([[-1], [0]])), r"edge_index must lie in 0 … 5 .*, got -1"),
    (one_graph(edge_attr=np.zeros((2, 1))), "edge_attr must have one row for each of the 6"),
    (one_graph(edge_attr=np.zeros(6)), "edge_attr must have 2 dimensions, got 1"),
    (one_graph(y=np.zeros(5)), "y has 5 rows; for level 'node' there must be 6"),
    (one_graph(y=np.zeros((6, 1, 1))), r"y must have shape \[U\] or \[U, C\]"),
    (one_graph(y=np.array([0, 1, np.nan, 1, 1, 1])), "y holds NaN .* first in row 2"),
    (one_graph(y=np.array(["a"] * 6)), "y must hold integers or floating-point numbers"),
    (one_graph(y=np.arange(6) + 1), "y must hold class numbers 0 … C−1, .* 1, 2, 3"),
    (one_graph(y=np.array([0, 1, 5, 0, 1, 5])), "values are 0, 1, 5"),
    (one_graph(y=np.zeros(6, dtype=int)), "y must hold at least two classes"),
    (one_graph(num_classes=np.array(2)), r"y must lie in 0 … 1 \(num_classes is 2\), got 2"),
    (one_graph(num_classes=np.array([5])), "num_classes must have 0 dimensions, got 1"),
    (one_graph(num_classes=np.array(2.0)), "num_classes must hold integers"),
    (one_graph(train=np.array([], dtype=int)), "train is empty"),
    (one_graph(train=np.array([0, 3])), "train and val must not overlap, but share 3"),
    (one_graph(test=np.array([6])), "test must lie in 0 … 5"),
    (one_graph(train=np.array([0, 0])), "train must not hold an index twice"),
    (one_graph(train=np.array([0.0])), "train must hold integers"),
    (one_graph(val=None), "train is given, but val is missing"),
    (one_graph(train_mask=np.ones(6, dtype=bool)), "train_mask is given, but val_mask, test_mask"),
    (many_graphs(ptr=np.array([0, 2, 5])), "ptr must rise from 0 to 6"),
    (many_graphs(ptr=np.array([0, 3, 2, 6])), "ptr must rise from 0 to 6"),
    (many_graphs(ptr=np.array([0, 1, 5, 6])), "edge 1 joins graphs 0 and 1"),
    (many_graphs(y=np.zeros(4)), "y has 4 rows"),
    (many_graphs(test=np.array([3])), "test must lie in 0 … 2"),
]


@pytest.mark.parametrize(("arrays", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(arrays: Arrays, message: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        read_problem(write(tmp_path, arrays))
    assert str(caught.value).startswith(str(tmp_path / "mine.npz"))


def test_masks_are_checked_and_not_mixed_with_indices(tmp_path: Path) -> None:
    parts = ("train", "val", "test")
    masks = {f"{part}_mask": np.eye(6, dtype=bool)[i] for i, part in enumerate(parts)}
    with pytest.raises(ValueError, match="give either masks or indices, not both"):
        read_problem(write(tmp_path, one_graph(**masks)))
    none: Arrays = dict.fromkeys(parts)
    for bad, message in (
        (np.ones(6), "train_mask must be boolean, got float64"),
        (np.ones(5, dtype=bool), r"train_mask must have shape \[6\] or \[6, splits\], got \[5\]"),
        (np.zeros(6, dtype=bool), "train_mask is empty"),
        (np.ones(6, dtype=bool), "train and val must not overlap"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            read_problem(write(tmp_path, one_graph(**none, **{**masks, "train_mask": bad})))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": "graph"}, "level 'graph' needs several graphs, given by ptr"),
        ({"level": "edge"}, "level 'edge' needs pairs, given by edge_label_index"),
        ({"level": "pair"}, "level must be one of 'node', 'graph', 'edge', got 'pair'"),
        ({"task": "ranking"}, "task must be one of"),
        ({"metric": "mae"}, "metric must be one of 'accuracy', 'roc_auc', 'f1', got 'mae'"),
        ({"metric": "roc_auc"}, "metric 'roc_auc' is for two classes, y has 3"),
        ({"task": "multilabel"}, "y must hold 0 and 1 only"),
        ({"split": 1}, "there is one split, number 0, but split 1 was asked for"),
        ({"split": -1}, "split must be at least 0, got -1"),
    ],
)
def test_contradicting_arguments_are_refused(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        read_problem(write(tmp_path, one_graph()), **arguments)


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a pickle was loaded",)


def test_python_objects_are_refused_and_never_loaded(tmp_path: Path) -> None:
    path = write(tmp_path, one_graph(y=np.array([Trap()] * 6, dtype=object)))
    with pytest.raises(ValueError, match="y holds Python objects, which are never loaded"):
        read_problem(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match=r"is not an \.npz file, or it is damaged"):
        read_problem(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", pickle.dumps(Trap()))
        archive.writestr("notes.txt", "hello")
    with pytest.raises(ValueError, match=r"mine\.npz"):
        read_problem(path)


def test_what_is_said_of_a_damaged_file_does_not_repeat_it(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    np.savez(path, x=np.zeros((900, 2)))
    content = bytearray(path.read_bytes())
    content[26:28] = (9000).to_bytes(2, "little")  # how long the name of the first array is
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged: x cannot be read") as caught:
        read_problem(path)
    assert len(str(caught.value)) < 1000


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.npz does not exist"):
        read_problem(tmp_path / "none.npz")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damage")


def read_or_refuse(path: Path) -> Problem | None:
    """The problem, or, if an error names the file, ``None``."""
    try:
        return read_problem(path)
    except (ValueError, TypeError) as error:
        if not str(error).startswith(str(path)):
            raise
        return None


def stored(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_files_give_the_truth_or_a_clear_error(scratch: Path, data: st.DataObject) -> None:
    content = bytearray(stored(many_graphs()))
    if data.draw(st.booleans(), label="truncate"):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
    path = scratch / "mine.npz"
    path.write_bytes(bytes(content))
    problem = read_or_refuse(path)
    if problem is not None:
        assert [graph.num_nodes for graph in problem.graphs] == [2, 3, 1]
        assert [float(graph.y) for graph in problem.graphs] == [0.5, 1.5, 2.5]


SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
DTYPES = st.sampled_from(["f4", "f8", "i4", "u8", "?", "U2", "c8", "M8[s]"])


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    key=st.sampled_from(["x", "edge_index", "y", "edge_attr", "ptr", "train", "test_mask"]),
    shape=SHAPES,
    dtype=DTYPES,
    fill=st.sampled_from([0, 1, 7]),
)
def test_any_array_under_any_key_is_taken_or_refused_by_name(
    scratch: Path, key: str, shape: tuple[int, ...], dtype: str, fill: int
) -> None:
    array = np.full(shape, fill).astype(dtype)
    path = write(scratch, many_graphs(**{key: array}))
    problem = read_or_refuse(path)
    if problem is not None:
        assert sum(int(graph.num_nodes or 0) for graph in problem.graphs) == 6
