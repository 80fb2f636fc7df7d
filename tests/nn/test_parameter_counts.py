from __future__ import annotations

import pytest

from eegnn import EEGNN, SASGNN
from tests.nn.model_examples import count


@pytest.mark.parametrize(
    ("in_channels", "out_channels", "parameters"),
    [(301, 2, 11840), (300, 18, 12320), (7, 2, 2432), (10, 2, 2528), (300, 5, 11904)],
    ids=["Questions", "Roman-empire", "Minesweeper", "Tolokers", "Amazon-ratings"],
)
def test_sasgnn_has_the_papers_number_of_parameters(
    in_channels: int, out_channels: int, parameters: int
) -> None:
    assert count(SASGNN(in_channels, 32, out_channels, storage="paper")) == parameters


@pytest.mark.parametrize(
    ("in_channels", "out_channels", "head_layers", "head_channels", "parameters"),
    [
        (300, 18, 2, 32, 14562),
        (7, 2, 2, 32, 4674),
        (10, 2, 2, 32, 4770),
        (300, 5, 2, 32, 14146),
        (301, 2, 3, 8, 12562),
    ],
    ids=["Roman-empire", "Minesweeper", "Tolokers", "Amazon-ratings", "Questions"],
)
def test_eegnn_has_the_papers_number_of_parameters(
    in_channels: int, out_channels: int, head_layers: int, head_channels: int, parameters: int
) -> None:
    model = EEGNN(
        in_channels,
        32,
        out_channels,
        storage="paper",
        head_layers=head_layers,
        head_channels=head_channels,
    )
    assert count(model) == parameters
