"""Numbers of parameters: those that the paper prints, and those of the equations."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from eegnn.nn.model import GraphModel
from eegnn.zoo.adgn import ADGNStep
from eegnn.zoo.apgcn import APGCN
from eegnn.zoo.cognn import CoGNN
from eegnn.zoo.drew import DRew
from eegnn.zoo.gat import GAT
from eegnn.zoo.gatedgcn import GatedGCN
from eegnn.zoo.gcn import GCN
from eegnn.zoo.gcnii import GCNII
from eegnn.zoo.gin import GIN
from eegnn.zoo.gine import GINE
from eegnn.zoo.gps import GPS
from eegnn.zoo.graff import GRAFFStep
from eegnn.zoo.graphcon import GraphCON
from eegnn.zoo.gt import GT
from eegnn.zoo.phdgn import PHDGN
from eegnn.zoo.polynormer import Polynormer
from eegnn.zoo.sage import GraphSAGE
from eegnn.zoo.sgformer import SGFormer
from eegnn.zoo.swan import SWANStep
from tests.nn.model_examples import count


@pytest.mark.parametrize(
    ("in_channels", "out_channels", "gcn", "cognn"),
    [
        (301, 2, (20288, 30848), (34982, 55782)),
        (300, 18, (20768, 31328), (35478, 56278)),
        (7, 2, (10880, 21440), (25574, 46374)),
        (10, 2, (10976, 21536), (25670, 46470)),
        (300, 5, (20352, 30912), (35049, 55849)),
    ],
    ids=["Questions", "Roman-empire", "Minesweeper", "Tolokers", "Amazon-ratings"],
)
def test_models_of_10_and_20_layers_have_the_papers_number_of_parameters(
    in_channels: int, out_channels: int, gcn: tuple[int, int], cognn: tuple[int, int]
) -> None:
    for depth, of_gcn, of_cognn in zip((10, 20), gcn, cognn, strict=True):
        sizes = (in_channels, 32, out_channels, depth)
        assert count(GCN(*sizes)) == of_gcn
        assert count(CoGNN(*sizes, action_layers=2, action_channels=32)) == of_cognn


# Widths 7 → 8 → 2 with three layers: a square matrix with bias, the scales and shifts of a norm.
SQUARE, NORM = 8 * 8 + 8, 2 * 8
GPS_LAYER = 4 * SQUARE + (8 * 16 + 16) + (16 * 8 + 8) + 3 * NORM
LAYERS: list[tuple[type[GraphModel], dict[str, Any], int]] = [
    (GraphSAGE, {}, 3 * (2 * 64 + 8)),
    (GAT, {}, 3 * (64 + 3 * 8)),
    (GAT, {"heads": 4}, 3 * (64 + 3 * 8)),
    (GIN, {}, 3 * 2 * SQUARE),
    (GINE, {"edge_dim": 5}, 3 * (2 * SQUARE + 5 * 8 + 8)),
    (GCNII, {}, 3 * 64),
    (GatedGCN, {}, 3 * 4 * SQUARE),
    (GatedGCN, {"edge_dim": 5}, 3 * (4 * SQUARE + 3 * 5 * 8)),
    (GT, {}, 3 * 4 * SQUARE),
    (GT, {"heads": 4, "edge_dim": 5}, 3 * (4 * SQUARE + 5 * 8)),
    (GraphCON, {}, 2 * 64 + 8),
    (DRew, {}, 64 * (1 + 2 + 3)),
    (DRew, {"max_hops": 2}, 64 * (1 + 2 + 2)),
    (DRew, {"norm": True}, (64 + NORM) * (1 + 2 + 3)),
    (GPS, {}, 3 * (GPS_LAYER + 4 * SQUARE)),
    (GPS, {"conv": "gine", "edge_dim": 5}, 3 * (GPS_LAYER + 2 * SQUARE + 5 * 8 + 8)),
    (
        SGFormer,
        {"attention_layers": 2, "heads": 2},
        2 * (3 * (8 * 16 + 16) + NORM) + 3 * SQUARE + 2 * NORM,
    ),
    (
        Polynormer,
        {"global_layers": 2, "heads": 4},
        3 * (2 * SQUARE + NORM + 8 + 64 + 2 * 8) + 2 * (3 * SQUARE + NORM + 8) + NORM + SQUARE,
    ),
]


@pytest.mark.parametrize(("kind", "options", "layers"), LAYERS)
def test_layers_have_the_parameters_of_their_equations(
    kind: type[GraphModel], options: dict[str, Any], layers: int
) -> None:
    encoder, decoder = 7 * 8 + 8, 8 * 2
    assert count(kind(7, 8, 2, 3, **options)) == encoder + layers + decoder


@pytest.mark.parametrize(
    ("options", "extra"),
    [
        ({}, 0),
        ({"damping": "param"}, 6),
        ({"damping": "param+"}, 6),
        ({"damping": "mlp"}, 4 * 36 + 3 * 6),
        ({"damping": "dgn"}, 36),
        ({"forcing": "mlp"}, 3 * (49 + 7) + 42),
        ({"forcing": "dgn"}, 42),
    ],
)
def test_terms_of_phdgn_have_the_parameters_of_their_equations(
    options: dict[str, Any], extra: int
) -> None:
    encoder, decoder = 3 * 6 + 6, 2 * 6 * 2
    gradients = 2 * (2 * 36 + 6)
    assert count(PHDGN(3, 6, 2, **options)) == encoder + gradients + extra + decoder


@pytest.mark.parametrize(
    ("step", "number"),
    [
        (ADGNStep(6), 2 * 36 + 6),
        (SWANStep(6), 36 + 6 + 21 + 15),
        (SWANStep(6, "gcn"), 36 + 6 + 21 + 36),
        (SWANStep(6, "sum"), 36 + 6 + 21 + 36),
        (GRAFFStep(6, "diag_dom", "diag"), 6 * 8 + 6),
        (GRAFFStep(6, "diag_dom", "zero"), 6 * 8),
        (GRAFFStep(6, "sum", "diag"), 36 + 6),
        (GRAFFStep(6, "sum", "zero"), 36),
    ],
    ids=repr,
)
def test_steps_have_the_parameters_of_their_equations(step: nn.Module, number: int) -> None:
    assert count(step) == number


def test_apgcn_has_an_mlp_and_a_halting_unit() -> None:
    assert count(APGCN(100, 64, 7)) == (100 * 64 + 64) + (64 * 7 + 7) + (7 + 1)
