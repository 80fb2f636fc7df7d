"""A generated task for pairs: how far apart are two nodes?"""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from eegnn import _check
from eegnn.data.problem import Problem

GRAPHS = {"train": 200, "val": 40, "test": 40}
NODES, FEATURES, PAIRS = 24, 32, 8


def distances(farthest: int, size: float = 1.0, seed: int = 0) -> Problem:
    """Generate rings of 24 nodes; the label of a pair is its distance, capped at ``farthest``.

    Nodes have 32 random features, each 0 or 1, new in every graph, by which a neighbourhood can be
    recognised: two nodes at distance :math:`d` see a common node after :math:`d/2` steps. Each
    graph asks for 8 pairs of each distance 1 … ``farthest``, where the last class has all that are
    as far or farther; classes count from 0.

    Args:
        farthest: the largest distance with a class of its own, 2 … 12.
        size: share of the 200, 40 and 40 graphs, at least one in each part.
        seed: the same seed gives the same graphs.
    """
    if _check.integer("farthest", farthest, at_least=2) > NODES // 2:
        raise ValueError(f"farthest must be at most {NODES // 2}, got {farthest}")
    _check.number("size", size, 0.0, 1.0)
    generator = torch.Generator().manual_seed(_check.integer("seed", seed, at_least=0))
    node = torch.arange(NODES)
    one_way = torch.stack([node, node.roll(-1)])
    edge_index = torch.cat([one_way, one_way.flip(0)], dim=1)
    counts = [max(1, round(size * count)) for count in GRAPHS.values()]
    graphs = []
    for _ in range(sum(counts)):
        x = torch.randint(0, 2, (NODES, FEATURES), generator=generator).float()
        pairs, y = _pairs(farthest, generator)
        graphs.append(Data(x=x, edge_index=edge_index, edge_label_index=pairs, y=y))
    train, val, test = torch.arange(len(graphs)).split(counts)
    return Problem(
        name=f"distances-{farthest}",
        graphs=graphs,
        level="edge",
        task="classification",
        metric="accuracy",
        out_channels=farthest,
        train=train,
        val=val,
        test=test,
        inductive=True,
        notes={
            "source": f"generated, seed {seed}",
            "split": "different graphs",
            "features": "random bits",
        },
    )


def _pairs(farthest: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw pairs of a ring, as many of each class, ``[2, P]``, and their classes ``[P]``."""
    label = torch.arange(farthest).repeat_interleave(PAIRS)
    beyond = torch.randint(0, NODES // 2 - farthest + 1, label.shape, generator=generator)
    distance = label + 1 + torch.where(label == farthest - 1, beyond, 0)
    first = torch.randint(0, NODES, label.shape, generator=generator)
    return torch.stack([first, (first + distance) % NODES]), label
