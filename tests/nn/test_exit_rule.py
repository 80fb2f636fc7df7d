from __future__ import annotations

import torch

from eegnn.nn.exit_rule import wants_to_leave

DRAWN = torch.tensor([-2.0, -1e-30, 0.0, 1e-30, 2.0])
#: Probabilities of having left of 0, 0.1, 0.5, nearly 1 and 1.
LOG_STAY = torch.tensor([1.0, 0.9, 0.5, 1e-30, 0.0]).log()


def test_the_rule_of_the_paper_is_the_larger_score() -> None:
    assert wants_to_leave(DRAWN, LOG_STAY, None).tolist() == [True, True, False, False, False]


def test_a_threshold_is_compared_with_the_probability_of_having_left() -> None:
    expected = {
        0.0: [True] * 5,
        0.05: [False, True, True, True, True],
        0.3: [False, False, True, True, True],
        0.5: [False, False, True, True, True],
        0.6: [False, False, False, True, True],
        1.0: [False, False, False, False, True],
    }
    for threshold, leave in expected.items():
        assert wants_to_leave(DRAWN, LOG_STAY, threshold).tolist() == leave
