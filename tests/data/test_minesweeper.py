import pytest
import torch

from eegnn.data.minesweeper import minesweeper


def test_board_follows_the_rules_of_the_public_data_set() -> None:
    data = minesweeper(size=100, seed=3)
    assert data.x.shape == (10_000, 7)
    assert data.edge_index.shape == (2, 78_804)  # the figure of the public data set
    assert int(data.y.sum()) == 2_000
    assert int(data.x[:, 0].sum()) == 5_000
    assert bool((data.x.sum(dim=1) == 1).all())
    masks = (data.train_mask, data.val_mask, data.test_mask)
    assert [int(mask.sum()) for mask in masks] == [5_000, 2_500, 2_500]
    assert [int(data.y[mask].sum()) for mask in masks] == [1_000, 500, 500]  # as the public splits
    assert bool((data.train_mask ^ data.val_mask ^ data.test_mask).all())


def test_each_shown_number_counts_the_neighbouring_mines() -> None:
    size = 12
    data = minesweeper(size, seed=1)
    mines = data.y.view(size, size).tolist()
    for cell in range(size * size):
        r, c = divmod(cell, size)
        around = [
            mines[i][j]
            for i in range(max(r - 1, 0), min(r + 2, size))
            for j in range(max(c - 1, 0), min(c + 2, size))
            if (i, j) != (r, c)
        ]
        shown = int(data.x[cell].argmax())
        assert shown in (0, 1 + min(sum(around), 5))
        neighbours = set(data.edge_index[1, data.edge_index[0] == cell].tolist())
        assert len(neighbours) == len(around)
        assert data.pos[cell].tolist() == [r, c]


def test_seed_decides_the_board() -> None:
    a, b, c = minesweeper(20, seed=5), minesweeper(20, seed=5), minesweeper(20, seed=6)
    assert torch.equal(a.x, b.x)
    assert torch.equal(a.y, b.y)
    assert not torch.equal(a.y, c.y)


@pytest.mark.parametrize("size", [1, 0, -3])
def test_too_small_a_board_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="size"):
        minesweeper(size)
