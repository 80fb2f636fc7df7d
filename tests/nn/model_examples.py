"""Graphs, features and models that the tests of whole models share."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from eegnn import EEGNN, SASGNN
from eegnn.nn.exit_model import ExitModel
from eegnn.nn.heads import Confidence, Temperature
from eegnn.nn.model import GraphModel

NO_EDGES = torch.zeros(2, 0, dtype=torch.int64)
# A triangle with a tail, a pair, and an isolated node: three components.
EDGE_INDEX = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3, 4, 5], [1, 0, 2, 1, 0, 2, 3, 2, 5, 4]])
NUM_NODES = 7
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


Exiting = TypeVar("Exiting", bound=ExitModel)


def lively(model: Exiting, scale: float = 8.0, continue_bias: float = 2.0) -> Exiting:
    """Draw the heads with large weights, so that units of a fresh model leave at different layers.

    Where heads start is up to the model; what the tests compare should not depend on it.
    """
    confidence, temperature = model.loop.confidence, model.loop.temperature
    assert isinstance(confidence, Confidence)
    assert isinstance(temperature, Temperature)
    for head in (confidence.head, temperature.head):
        head.reset_parameters()
    last = confidence.head.lins[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight.mul_(scale)
        last.bias.copy_(torch.tensor([continue_bias / 2, -continue_bias / 2]))
    return model


def features(n: int = NUM_NODES, channels: int = 5, seed: int = 0) -> Tensor:
    return torch.randn(n, channels, generator=torch.Generator().manual_seed(seed))


def edge_features(count: int = EDGE_INDEX.size(1), seed: int = 1) -> Tensor:
    return torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))


def build(kind: str, seed: int = 106, **options: Any) -> GraphModel:
    """`SASGNN`, or `EEGNN`, or `EEGNN freeze` for what becomes of nodes that left."""
    torch.manual_seed(seed)
    name, *after_exit = kind.split()
    if name == "SASGNN":
        return SASGNN(5, 8, 3, 6, **options)
    if after_exit:
        options["after_exit"] = after_exit[0]
    return lively(EEGNN(5, 8, 3, 6, **options))


KINDS = ["SASGNN", "EEGNN evolve", "EEGNN freeze"]
BOTH = ["SASGNN", "EEGNN"]


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())
