"""Training on a small Minesweeper board: it learns, and not everyone leaves after one step."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn.functional import cross_entropy

from eegnn import EEGNN

SIDE, MINES, HIDDEN_SHARE = 20, 0.2, 0.5
CONFIGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "paper": {"head_layers": 2, "continue_bias": None},
}


class Board(NamedTuple):
    x: Tensor
    edge_index: Tensor
    y: Tensor


def minesweeper(seed: int) -> Board:
    """A board as in the Minesweeper data set: where are the mines, from the numbers that show?

    Each cell shows how many of its (up to 8) neighbours hold a mine, one-hot, or is hidden.
    """
    generator = torch.Generator().manual_seed(seed)
    row, col = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    place = torch.stack([row.flatten(), col.flatten()], dim=1)
    distance = (place.unsqueeze(0) - place.unsqueeze(1)).abs().amax(-1)
    edge_index = (distance == 1).nonzero().T.contiguous()
    mine = torch.rand(SIDE * SIDE, generator=generator) < MINES
    count = torch.zeros(SIDE * SIDE, dtype=torch.int64)
    count.index_add_(0, edge_index[0], mine[edge_index[1]].long())
    hidden = torch.rand(SIDE * SIDE, generator=generator) < HIDDEN_SHARE
    shown = torch.nn.functional.one_hot(count, 9) * ~hidden.unsqueeze(1)
    return Board(torch.cat([shown, hidden.unsqueeze(1)], dim=1).float(), edge_index, mine.long())


def make(seed: int, **config: Any) -> EEGNN:
    torch.manual_seed(seed)
    return EEGNN(10, 16, 2, **config)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CONFIGS)
def test_training_learns_and_does_not_collapse(name: str, seed: int) -> None:
    board, model = minesweeper(seed), make(seed, **CONFIGS[name])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(80):
        optimiser.zero_grad()
        cross_entropy(model(board.x, board.edge_index), board.y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    out, exits = model.predict(board.x, board.edge_index)
    assert not exits.collapsed
    # How well the predictions at the exits rank mines above the rest; fresh models are below 0.65.
    assert roc_auc_score(board.y, out[:, 1] - out[:, 0]) > 0.8


def test_where_everyone_leaves_after_the_first_step_the_loop_still_gets_a_gradient() -> None:
    board = minesweeper(0)
    model = make(0, continue_bias=-2.0).eval()  # without noise
    out, exits = model(board.x, board.edge_index, return_exits=True)
    assert exits.collapsed
    cross_entropy(out, board.y).backward()
    for name, p in model.loop.named_parameters():
        assert p.grad is not None, name
        assert p.grad.abs().max() > 0, name
