"""From nodes to pairs of nodes: their states, and symmetric functions of both ends."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def states_of_ends(h: Tensor, pairs: Tensor) -> Tensor:
    r"""Return :math:`\mathbf{z}_p = \mathbf{h}_i \,\|\, \mathbf{h}_j`, ``[n, m'] → [P, 2m']``.

    Args:
        h: states of nodes.
        pairs: ``int64 [2, P]``, the ends :math:`i` and :math:`j`.
    """
    return torch.cat([h.index_select(0, pairs[0]), h.index_select(0, pairs[1])], dim=-1)


def sum_product_difference(z: Tensor) -> Tensor:
    r"""Return :math:`\mathbf{z}_i + \mathbf{z}_j \,\|\, \mathbf{z}_i \odot \mathbf{z}_j \,\|\,
    |\mathbf{z}_i - \mathbf{z}_j|`, ``[P, 2m'] → [P, 3m']``.
    """
    first, second = z.chunk(2, dim=-1)
    return torch.cat([first + second, first * second, (first - second).abs()], dim=-1)


def hadamard(z: Tensor) -> Tensor:
    r"""Return :math:`\mathbf{z}_i \odot \mathbf{z}_j`, ``[P, 2m'] → [P, m']``."""
    first, second = z.chunk(2, dim=-1)
    return first * second


def dot(z: Tensor) -> Tensor:
    r"""Return :math:`\mathbf{z}_i^\top \mathbf{z}_j`, ``[P, 2m'] → [P, 1]``."""
    return hadamard(z).sum(dim=-1, keepdim=True)


#: What is decoded of the states of a pair, ``[P, 2m'] → [P, ·]``. Swapping its ends changes none.
PAIR_POOLS: dict[str, Callable[[Tensor], Tensor]] = {
    "dot": dot,
    "hadamard": hadamard,
    "concat": sum_product_difference,
}


def pair_channels(pool: str, channels: int) -> int:
    """Return the number of columns that one of :data:`PAIR_POOLS` makes of states of this width."""
    return {"dot": 1, "hadamard": channels, "concat": 3 * channels}[pool]
