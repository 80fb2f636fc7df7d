"""What the gradient sees, against what the algorithm says."""

from __future__ import annotations

import pytest
import torch

from eegnn.experiments.objectives import gradient_map
from eegnn.nn.exit_layer import Objective


@pytest.mark.parametrize("objective", ["expected", "averaged"])
def test_every_decision_gets_a_gradient_without_sampling(objective: Objective) -> None:
    found = gradient_map(objective, size=6, num_layers=5)
    assert found.gradient.shape == (5, 36)
    assert found.silent == 0


def test_a_sampled_decision_counts_only_while_somebody_near_goes_on() -> None:
    found = gradient_map("sampled", size=8, num_layers=6)
    last = int(found.layer.max())
    assert 0 < last < 6
    assert not found.gradient[last:].any()  # nobody takes these steps
    for unit, layer in enumerate(found.layer.tolist()):
        assert (found.gradient[:layer, unit] > 0).all()
    # A unit that left still moves. Its step l is in the states at distance d from layer l + 1 + d
    # on, so it counts only if somebody at distance d leaves that late.
    row, column = torch.arange(64) // 8, torch.arange(64) % 8
    steps = torch.maximum((row[:, None] - row).abs(), (column[:, None] - column).abs())
    reach = (found.layer - steps).max(dim=1).values
    silent = torch.arange(6)[:, None] >= reach
    assert silent.any()
    assert not found.gradient[silent].any()


def test_nothing_is_learned_where_everyone_left_at_once() -> None:
    found = gradient_map("sampled", size=6, num_layers=5, continue_bias=-50.0)
    assert not found.layer.any()
    assert found.silent == 1
    assert gradient_map("expected", size=6, num_layers=5, continue_bias=-3.0).silent == 0


def test_the_seed_decides() -> None:
    first, again, other = (gradient_map("sampled", 5, 4, seed=s) for s in (1, 1, 2))
    assert torch.equal(first.gradient, again.gradient)
    assert not torch.equal(first.layer, other.layer)
