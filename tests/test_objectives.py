"""The picture of docs/objectives.md, and what that page says of it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "images" / "objectives.py"))
READINGS, gradient_map = SCRIPT["READINGS"], SCRIPT["gradient_map"]


def test_picture_is_written(tmp_path: Path) -> None:
    path = tmp_path / "objectives.png"
    SCRIPT["draw_objectives"](path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_both_readings_take_the_same_decisions() -> None:
    before, after = (gradient_map(reading, size=8, num_layers=8) for reading in READINGS)
    assert torch.equal(before.decisions, after.decisions)
    assert torch.equal((before.layer + 1).clamp(max=8), after.layer)


@pytest.mark.parametrize("reading", READINGS)
def test_a_decision_counts_only_while_somebody_near_goes_on(reading: str) -> None:
    found = gradient_map(reading, size=8, num_layers=8)
    last = int(found.layer.max())
    assert 0 < last < 8
    assert not found.gradient[last:].any()  # nobody takes these steps
    for unit, layer in enumerate(found.layer.tolist()):
        assert (found.gradient[:layer, unit] > 0).all()
    # A unit that left still moves. Its step l is in the states at distance d from layer l + 1 + d
    # on, so it counts only if somebody at distance d leaves that late.
    row, column = torch.arange(64) // 8, torch.arange(64) % 8
    steps = torch.maximum((row[:, None] - row).abs(), (column[:, None] - column).abs())
    reach = (found.layer - steps).max(dim=1).values
    silent = torch.arange(8)[:, None] >= reach
    assert silent.any()
    assert not found.gradient[silent].any()


def test_every_decision_taken_gets_a_gradient_after_the_step_alone() -> None:
    assert gradient_map("after", size=8, num_layers=8).share_without_gradient == 0
    assert gradient_map("before", size=8, num_layers=8).share_without_gradient > 0


def test_where_everyone_left_at_once_nothing_is_learned_before_the_step() -> None:
    before, after = (
        gradient_map(reading, size=6, num_layers=5, continue_bias=-20.0) for reading in READINGS
    )
    assert not before.layer.any()
    assert before.share_without_gradient == 1
    assert (after.layer == 1).all()
    assert after.share_without_gradient == 0


def test_the_seed_decides() -> None:
    first, again, other = (gradient_map("after", 5, 4, seed=s) for s in (1, 1, 2))
    assert torch.equal(first.gradient, again.gradient)
    assert not torch.equal(first.layer, other.layer)
