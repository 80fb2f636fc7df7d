"""Graphs, features and models that the tests of whole models share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from eegnn import EEGNN, SASGNN
from eegnn.nn.model import GraphModel

NO_EDGES = torch.zeros(2, 0, dtype=torch.int64)
# A triangle with a tail, a pair, and an isolated node: three components.
EDGE_INDEX = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3, 4, 5], [1, 0, 2, 1, 0, 2, 3, 2, 5, 4]])
NUM_NODES = 7
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])

#: Heads with large weights, so that units of a fresh model leave at different layers.
LIVELY: dict[str, Any] = {"continue_bias": 2.0, "head_scale": 8.0}


def features(n: int = NUM_NODES, channels: int = 5, seed: int = 0) -> Tensor:
    return torch.randn(n, channels, generator=torch.Generator().manual_seed(seed))


def edge_features(count: int = EDGE_INDEX.size(1), seed: int = 1) -> Tensor:
    return torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))


def build(kind: str, seed: int = 2, **options: Any) -> GraphModel:
    """`EEGNN`, or `EEGNN sampled freeze` for its options in words, or `SASGNN`."""
    torch.manual_seed(seed)
    name, *words = kind.split()
    if name == "SASGNN":
        return SASGNN(5, 8, 3, 6, **options)
    named: dict[str, Any] = dict(LIVELY)
    for word in words:
        named["objective" if word in ("sampled", "expected") else "after_exit"] = word
    return EEGNN(5, 8, 3, 6, **{**named, **options})


KINDS = [
    "SASGNN",
    "EEGNN expected evolve",
    "EEGNN expected freeze",
    "EEGNN sampled evolve",
    "EEGNN sampled freeze",
]
BOTH = ["SASGNN", "EEGNN"]


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())
