"""Does everyone leave at layer 0, where nothing can be learned? (The defaults: no.)"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn.functional import cross_entropy

from eegnn import EEGNN

pytestmark = pytest.mark.slow

SIDE, MINES, HIDDEN_SHARE = 20, 0.2, 0.5
SEEDS = range(10)
PAPER: dict[str, Any] = {
    "objective": "sampled",
    "head_norm": False,
    "continue_bias": 0.0,
    "head_scale": 1.0,
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


def loop_gradients(model: EEGNN, loss: Tensor) -> dict[str, float]:
    """Largest entry of the gradient of each parameter of the loop: Ω, W, f_c, f_ν."""
    model.zero_grad()
    loss.backward()
    return {
        name: 0.0 if p.grad is None else p.grad.abs().max().item()
        for name, p in model.loop.named_parameters()
    }


def area_under_curve(model: EEGNN, board: Board) -> float:
    """How well the predictions at the exits rank mines above the rest."""
    out, _ = model.predict(board.x, board.edge_index)
    return float(roc_auc_score(board.y, out[:, 1] - out[:, 0]))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_defaults_train_on_every_seed(seed: int) -> None:
    board, model = minesweeper(seed), make(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses, before = [], area_under_curve(model, board)
    for _ in range(40):
        optimiser.zero_grad()
        loss = cross_entropy(model(board.x, board.edge_index), board.y)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    _, exits = model.predict(board.x, board.edge_index)
    assert not exits.collapsed
    assert losses[-1] < losses[0]
    # Better than knowing nothing but the share of mines, and the exits show it at evaluation.
    share = board.y.double().mean()
    assert losses[-1] < -(share * share.log() + (1 - share) * (1 - share).log())
    assert area_under_curve(model, board) > before


@pytest.mark.parametrize("seed", SEEDS)
def test_the_paper_to_the_letter_starts_with_many_exits_at_layer_0(seed: int) -> None:
    board = minesweeper(seed)
    _, exits = make(seed, **PAPER)(board.x, board.edge_index, return_exits=True)
    assert (exits.layer == 0).double().mean() > 0.2


@pytest.mark.parametrize("seed", SEEDS)
def test_the_defaults_start_without_exits_at_layer_0(seed: int) -> None:
    board = minesweeper(seed)
    model = make(seed)
    _, in_training = model(board.x, board.edge_index, return_exits=True)
    _, at_evaluation = model.predict(board.x, board.edge_index)
    assert int(in_training.layer.min()) > 0
    assert int(at_evaluation.layer.min()) > 0


def test_a_unit_that_leaves_at_once_sends_no_gradient_into_the_loop() -> None:
    board = minesweeper(0)
    model = make(0, objective="sampled", continue_bias=-50.0)
    out, exits = model(board.x, board.edge_index, return_exits=True)
    assert exits.collapsed
    gradients = loop_gradients(model, cross_entropy(out, board.y))
    assert gradients.keys() >= {"step.antisymmetric.value", "step.symmetric.value"}
    assert set(gradients.values()) == {0.0}
    # While what is outside the loop learns on, from the features alone.
    assert model.encoder.weight.grad is not None
    assert model.encoder.weight.grad.abs().max() > 0


def test_only_units_that_stay_teach_the_sampled_loop() -> None:
    board, model = minesweeper(0), make(0, **PAPER)
    out, exits = model(board.x, board.edge_index, return_exits=True)
    gone = exits.layer == 0
    assert 0 < int(gone.sum()) < gone.numel()
    of_gone = cross_entropy(out[gone], board.y[gone])
    of_others = cross_entropy(out[~gone], board.y[~gone])
    model.zero_grad()
    parameters = list(model.loop.parameters())
    gradients = torch.autograd.grad(of_gone, parameters, retain_graph=True, allow_unused=True)
    assert all(g is None or bool((g == 0).all()) for g in gradients)
    assert all(value > 0 for value in loop_gradients(model, of_others).values())


def test_the_expected_exit_teaches_the_loop_even_where_everyone_leaves_at_once() -> None:
    board = minesweeper(0)
    model = make(0, objective="expected", continue_bias=-5.0)
    out, exits = model(board.x, board.edge_index, return_exits=True)
    assert exits.collapsed
    gradients = loop_gradients(model, cross_entropy(out, board.y))
    assert all(value > 0 for value in gradients.values())
