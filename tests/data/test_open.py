from pathlib import Path

import pytest
import torch

from eegnn.data.minesweeper import minesweeper
from eegnn.data.npz import write_npz
from eegnn.data.open import open_problem
from eegnn.data.registry import categories_of
from tests.data.tiny import tiny_mirror


def test_a_file_is_opened_by_its_ending(tmp_path: Path) -> None:
    write_npz(tmp_path / "board.npz", minesweeper(10))
    assert open_problem(str(tmp_path / "board.npz")).graphs[0].num_nodes == 100


def test_generated_sets_take_a_size_and_a_seed(tmp_path: Path) -> None:
    problem = open_problem("echo-sssp@0.001", 0, tmp_path)
    other = open_problem("echo-sssp@0.001", 1, tmp_path)
    assert len(problem.graphs) == 6 * 24
    assert problem.scale == 40
    assert not torch.equal(problem.graphs[0].x, other.graphs[0].x)


def test_graph_transfer_is_opened_by_kind_and_distance(tmp_path: Path) -> None:
    problem = open_problem("transfer-crossed-ring-5@0.01", 0, tmp_path)
    assert problem.graphs[0].num_nodes == 10
    assert (len(problem.train), len(problem.val), len(problem.test)) == (10, 1, 1)


def test_sets_of_many_graphs_take_a_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EEGNN_MIRROR", str(tiny_mirror(tmp_path / "mirror")))
    whole = open_problem("peptides-func", 0, tmp_path / "data")
    half = open_problem("peptides-func@0.5", 0, tmp_path / "data")
    assert len(half.train) == max(1, round(0.5 * len(whole.train)))
    assert len(half.graphs) == sum(len(part) for part in (half.train, half.val, half.test))
    assert half.in_channels == whole.in_channels
    assert categories_of("peptides-func@0.5") == categories_of("peptides-func") != ((), ())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("echo-apsp@0.1", "cannot be generated"),
        ("transfer-line", "cannot be generated"),
        ("transfer-star-3", "cannot be generated"),
        ("echo-sssp@big", "must be a number"),
        ("peptides-func@big", "must be a number"),
        ("peptides-fun@0.1", "peptides-func"),
        ("minesweepr", "minesweeper"),
    ],
)
def test_a_wrong_name_is_answered_with_a_right_one(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        open_problem(name, 0, tmp_path)
