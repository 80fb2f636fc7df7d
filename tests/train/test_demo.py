from typing import Any

import pytest
import torch

from eegnn.train.demo import run_demo


@pytest.mark.slow
def test_demo_learns_to_find_mines_and_leaves_at_several_layers() -> None:
    seen: list[dict[str, Any]] = []
    result = run_demo(40, 80, 0, seen.append)
    assert [line["epoch"] for line in seen] == list(range(1, 81))
    assert result.val == max(line["val"] for line in seen)
    assert result.test > 0.7
    assert len(set(result.exits.layer.tolist())) > 1
    assert result.score.shape == (1600,)
    assert bool(((result.score >= 0) & (result.score <= 1)).all())


def test_demo_is_the_same_for_the_same_seed() -> None:
    first, second = (run_demo(12, 3, 7, lambda line: None) for _ in range(2))
    assert torch.equal(first.score, second.score)
    assert first.test == second.test
