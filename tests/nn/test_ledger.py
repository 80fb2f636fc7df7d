from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from eegnn.nn.ledger import Ledger

LIKE = torch.zeros(0, dtype=torch.float64)


def mask(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.bool)


def state(*values: float) -> Tensor:
    """One row for each unit: (v, 10 v)."""
    column = torch.tensor(values, dtype=torch.float64).unsqueeze(-1)
    return torch.cat([column, 10 * column], dim=1)


def tau(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_the_first_wish_to_leave_counts() -> None:
    ledger = Ledger(3, 5, LIKE)
    ledger.decide(1, mask(1, 0, 0), state(1, 2, 3))
    ledger.decide(2, mask(1, 1, 0), state(4, 5, 6))
    assert ledger.layer.tolist() == [1, 2, 5]
    assert ledger.left.tolist() == [True, True, False]
    assert torch.equal(ledger.close(state(7, 8, 9)), state(1, 5, 9))


def test_who_never_leaves_has_the_limit_and_the_last_state() -> None:
    ledger = Ledger(2, 3, LIKE)
    assert torch.equal(ledger.close(state(1, 2)), state(1, 2))
    exits = ledger.exits(4)
    assert exits.layer.tolist() == [3, 3]
    assert exits.cost.item() == pytest.approx(3 / 4)
    assert exits.tau.shape == (0, 2)


def test_time_adds_the_steps_until_leaving() -> None:
    ledger = Ledger(2, 3, LIKE)
    ledger.advance(tau(0.5, 0.25))
    ledger.decide(1, mask(1, 0), state(0, 0))
    ledger.advance(tau(0.5, 0.25))
    exits = ledger.exits(3)
    assert exits.time.tolist() == [0.5, 0.5]
    assert exits.tau.tolist() == [[0.5, 0.25], [0.5, 0.25]]


def test_survival_is_the_product_of_the_probabilities() -> None:
    ledger = Ledger(2, 3, LIKE)
    first, second = tau(0.3, -1.0), tau(2.0, 0.0)
    ledger.survive(first)
    log_stay = ledger.survive(second)
    for u in range(2):
        p = 1 / (1 + math.exp(-first[u])) / (1 + math.exp(-second[u]))
        assert log_stay[u].item() == pytest.approx(math.log(p), rel=1e-12)


def test_closing_gives_each_unit_what_it_left_with() -> None:
    ledger = Ledger(5, 4, LIKE)
    ledger.decide(0, mask(0, 1, 0, 0, 1), state(0, 1, 2, 3, 4))
    ledger.advance(tau(0.1, 0.9, 0.2, 0.3, 0.9))
    ledger.decide(1, mask(0, 0, 1, 0, 1), state(10, 11, 12, 13, 14))  # the last has left before
    ledger.advance(tau(0.5, 0.9, 0.9, 0.6, 0.9))
    ledger.decide(2, mask(1, 0, 0, 0, 0), state(20, 21, 22, 23, 24))
    out = ledger.close(state(30, 31, 32, 33, 34))
    assert torch.equal(out, state(20, 1, 12, 33, 4))
    exits = ledger.exits(4)
    assert exits.layer.tolist() == [2, 0, 1, 4, 0]
    torch.testing.assert_close(exits.time, tau(0.6, 0, 0.2, 0.9, 0))
    assert exits.cost.item() == pytest.approx((2 + 0 + 1 + 4 + 0) / (5 * 4))


@pytest.mark.parametrize("grad", [True, False])
def test_states_noted_at_leaving_are_not_changed_later(grad: bool) -> None:
    with torch.set_grad_enabled(grad):
        ledger = Ledger(2, 3, LIKE)
        h = state(1, 2)
        ledger.decide(0, mask(1, 0), h)
        h.add_(100)
        assert torch.equal(ledger.close(h), torch.stack([state(1)[0], h[1]]))


def test_gradients_flow_to_the_state_at_leaving() -> None:
    ledger = Ledger(2, 3, LIKE)
    early, last = state(1, 2).requires_grad_(), state(3, 4).requires_grad_()
    ledger.decide(0, mask(1, 0), early)
    ledger.close(last).sum().backward()
    assert early.grad is not None
    assert last.grad is not None
    assert early.grad.tolist() == [[1, 1], [0, 0]]
    assert last.grad.tolist() == [[0, 0], [1, 1]]


def test_step_sizes_in_the_books_carry_no_gradient() -> None:
    ledger = Ledger(1, 3, LIKE)
    ledger.advance(tau(0.5).requires_grad_())
    exits = ledger.exits(3)
    assert not exits.tau.requires_grad
    assert not exits.time.requires_grad


def test_the_expected_cost_is_differentiable() -> None:
    survival = torch.tensor([[0.5, 1.0], [0.25, 0.5]], dtype=torch.float64, requires_grad=True)
    cost = Ledger(2, 2, LIKE).exits(4, survival).cost
    assert cost.item() == pytest.approx((0.75 + 1.5) / (2 * 4))
    cost.backward()
    assert survival.grad is not None
    assert survival.grad.tolist() == [[1 / 8, 1 / 8], [1 / 8, 1 / 8]]


def test_no_unit_at_all() -> None:
    ledger = Ledger(0, 3, LIKE)
    assert ledger.close(state()[:0]).shape == (0, 2)
    exits = ledger.exits(3)
    assert exits.layer.shape == (0,)
    assert exits.cost.item() == 0.0
