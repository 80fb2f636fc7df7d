"""AP-GCN (Spinelli, Scardapane and Uncini, 2020): propagation of class scores that halts."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Unpack

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn._spmm import spmm
from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.exits import Exits
from eegnn.nn.fixed_depth import fixed_depth
from eegnn.nn.inputs import Options
from eegnn.nn.model import GraphModel
from eegnn.nn.pooling import POOLS
from eegnn.zoo.gcn import propagate_with_self_loops

THRESHOLD = 0.99  #: a node halts once its halting values add up to this
HALT_EVERY = 5  #: epochs between updates of the halting unit


@dataclass(eq=False, repr=False)
class APGCN(GraphModel):
    r"""Adaptive propagation: an MLP predicts, then each node decides how far to smooth.

    The encoder and the decoder are the MLP; its scores :math:`\mathbf{Z}^0` ``[n, C]`` are
    propagated, with self-loops in :math:`\tilde{\mathbf A}`, and a halting unit reads them:

    .. math::
        \mathbf{Z}^{k} = \tilde{\mathbf D}^{-1/2}\tilde{\mathbf A}\tilde{\mathbf D}^{-1/2}
        \mathbf{Z}^{k-1}, \qquad h_i^k = \sigma(\mathbf{q}^\top\mathbf{z}_i^k + b)

    A node goes on at step :math:`k` if it went on before and :math:`S_i + h_i^k < 0.99`, where
    :math:`S_i` sums the :math:`h_i` of the steps at which it went on, this one included from then
    on. With :math:`N_i` = 1 + the number of these steps, so far, the output is

    .. math::
        \mathbf{o}_i = \frac1{N_i}\sum_k p_i^k\,\mathbf{z}_i^k + (1-p_i^k)\,\mathbf{z}_i^{k-1},
        \qquad p_i^k = \begin{cases} S_i & \text{goes on and } N_i < L \\
        1 - S_i & \text{otherwise}\end{cases}

    over the steps up to the one at which it halts. In training, edges are dropped anew at every
    step. The published loss adds :math:`\mu` times the mean of :math:`N_i + 1 - S_i`, which is
    ``loss + mu * num_layers * exits.cost`` up to a constant.

    Nodes decide, also with ``level="graph"``: then the outputs are pooled, and a graph leaves with
    its last node. ``dropout`` comes before each layer of the MLP, which has ``1 + decoder_layers``
    layers with biases.

    Args:
        num_layers: the largest number of steps :math:`L`.
        propagation_dropout: probability, in training, that a score is dropped before the first
            step, and at every step that a directed edge is, or what the step adds to a node.
    """

    _: KW_ONLY
    propagation_dropout: float = 0.5

    levels = ("node", "graph")  # it decodes before it propagates
    cost_of_nodes = True
    decoder_bias = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.drop = Dropout(self.propagation_dropout)
        self.halt = nn.Linear(self.out_channels, 1)
        self._reset_halting_bias()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        super().reset_parameters()
        self._reset_halting_bias()

    def _reset_halting_bias(self) -> None:
        # h = 1/(L + 1) for scores of 0, so that a new model takes all of its steps.
        nn.init.constant_(self.halt.bias, -math.log(self.num_layers))

    def before_epoch(self, epoch: int) -> None:
        """Let the halting unit learn in every fifth epoch only, as its authors do."""
        self.halt.requires_grad_(epoch % HALT_EVERY == 0)

    def evolve(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None, **options: Unpack[Options]
    ) -> tuple[Tensor, Exits]:
        """Decode first, then propagate the scores.

        ``exit_threshold`` takes the place of 0.99, ``max_layers`` that of :math:`L`.
        """
        if options.get("sample"):
            raise ValueError("sample=True needs a model that draws its exits; APGCN does not")
        limit = fixed_depth(self, options.get("max_layers"))
        threshold = options.get("exit_threshold")
        if threshold is None:
            threshold = THRESHOLD
        _check.number("exit_threshold", threshold, 0, 1)
        scores = self._scores(h)
        mixed, goes_on, total = self._propagate(scores, adj, limit, threshold)
        ponder = (goes_on.sum(dim=0) + 1 - total).sum()
        if self.level == "graph":
            goes_on = POOLS["max"](goes_on.T, adj).T
        time = goes_on.sum(dim=0)
        return self.pool_units(mixed, adj), Exits(
            layer=(1 + time.long()).clamp(max=limit),  # a node that halts has taken a step
            time=time,
            tau=goes_on,
            cost=ponder / (self.num_layers * max(adj.num_nodes, 1)),
            num_layers=self.num_layers,
        )

    def _encode(self, x: Tensor) -> Tensor:
        return super()._encode(self.encoder.dropout(x))

    def _scores(self, h: Tensor) -> Tensor:
        first, *others = self.decoder.mlp.lins
        scores = first(h)  # the encoder has dropped from h
        for lin in others:
            scores = lin(self.decoder.dropout(scores.relu()))
        return scores.to(h.dtype)

    def _propagate(
        self, scores: Tensor, adj: Adjacency, limit: int, threshold: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the mixed scores ``[n, C]``, who went on ``[steps run, n]``, and S ``[n]``."""
        p_drop = self.drop.p if self.training else 0.0
        # Position of the opposite direction of each CSR entry: sorted by column, then by row.
        reverse = adj.col.argsort(stable=True) if p_drop > 0 else None
        state, mixed = self.drop(scores), torch.zeros_like(scores)
        total = scores.new_zeros(adj.num_nodes)
        steps = torch.ones_like(total)
        active = torch.ones_like(total, dtype=torch.bool)
        went_on = []
        for _ in range(limit):
            before = state
            if reverse is None:
                state = propagate_with_self_loops(adj, state)
            else:
                state = _propagate_with_edges_dropped(state, adj, reverse, p_drop)
            halting = self.halt(state).squeeze(-1).to(total.dtype).sigmoid()
            goes_on = active & (total + halting < threshold)
            steps = steps + goes_on
            total = total + halting * goes_on
            p = torch.where(goes_on & (steps < limit), total, 1 - total)
            counts = self.drop(active.to(total.dtype))
            mixed = mixed + torch.lerp(before, state, p.unsqueeze(-1)) * counts.unsqueeze(-1)
            went_on.append(goes_on.to(total.dtype))
            active = goes_on
            if not active.any():
                break
        return mixed / steps.unsqueeze(-1), torch.stack(went_on), total


def _propagate_with_edges_dropped(x: Tensor, adj: Adjacency, reverse: Tensor, p: float) -> Tensor:
    """Multiply by the normalised adjacency matrix with self-loops, without some of the edges.

    Each direction of an edge is kept or dropped by itself, and a degree is the number of edges
    that start at a node, as in PyG at the time of AP-GCN.
    """
    keep = (torch.rand(adj.num_edges, device=x.device) >= p).to(x.dtype)
    opposite = keep[reverse]
    starting = spmm(adj.rowptr, adj.col, opposite, keep, torch.ones_like(x[:, :1]))
    scale = (starting + 1).rsqrt()
    scaled = x * scale
    return scale * (spmm(adj.rowptr, adj.col, keep, opposite, scaled) + scaled)
