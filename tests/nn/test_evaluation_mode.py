"""Evaluation mode for a while, and each part back in its own."""

from __future__ import annotations

from eegnn import EEGNN
from eegnn.nn.evaluation_mode import evaluation_mode


def test_a_part_that_was_in_evaluation_mode_stays_so() -> None:
    model = EEGNN(2, 4, 3, num_layers=2)
    model.encoder.eval()
    before = [part.training for part in model.modules()]
    with evaluation_mode(model):
        assert not any(part.training for part in model.modules())
    assert [part.training for part in model.modules()] == before
    assert set(before) == {True, False}
