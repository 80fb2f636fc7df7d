"""A small graph to measure on."""

from __future__ import annotations

from pathlib import Path

import torch

from eegnn import Adjacency
from eegnn.bench.inputs import BenchmarkGraph, skewed_graph


def small_graph(name: str = "tolokers", data_dir: Path | None = None) -> BenchmarkGraph:
    adj = Adjacency.from_edge_index(skewed_graph(200, 600), 200)
    x = torch.rand(200, 4, generator=torch.Generator().manual_seed(0))
    return BenchmarkGraph(name, False, x, adj, num_classes=2)
