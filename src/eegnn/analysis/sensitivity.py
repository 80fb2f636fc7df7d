"""Layer sensitivity: how much the states of a layer matter at the end, for over-squashing."""

from __future__ import annotations

import torch
from torch import Tensor

from eegnn import _check
from eegnn.analysis.states import states_by_layer
from eegnn.graph import Adjacency
from eegnn.nn.model import GraphModel


def layer_sensitivity(
    model: GraphModel,
    x: Tensor | None,
    edge_index: Tensor,
    edge_attr: Tensor | None = None,
    *,
    copies: int = 16,
) -> Tensor:
    r"""Return the sensitivity of the last states to those of every layer (Appendix,
    "Over-squashing").

    .. math::
        S_l = \sum_{(v,u)\in\mathcal{E}} \Bigl\lVert
        \frac{\partial\mathbf{h}^L_v}{\partial\mathbf{h}^l_u}\Bigr\rVert_1

    :math:`\lVert\cdot\rVert_1` sums the absolute values of all :math:`m'^2` entries, and
    :math:`\mathcal{E}` holds both directions of an edge. All derivatives are exact: one
    vector-Jacobian product for each of the :math:`n m'` numbers :math:`h^L_{v,c}`, which gives a
    row for all :math:`u` and all :math:`l` at once. Several run together, each in its own copy of
    the graph. In a model with exits, nobody leaves.

    Args:
        model: in evaluation mode or not, it is looked at in it.
        x, edge_index, edge_attr: one graph, as in :meth:`~eegnn.nn.model.GraphModel.forward`.
        copies: how many products run together; memory grows with it.

    Returns:
        ``float64 [L]``: :math:`S_0, \dots, S_{L-1}`. (:math:`S_L` is 0, since nobody is their own
        neighbour.)
    """
    _check.integer("copies", copies, at_least=1)
    adj = Adjacency.from_edge_index(edge_index, None if x is None else x.size(0))
    n = adj.num_nodes
    with torch.enable_grad():
        *before, last = states_by_layer(model, *_side_by_side(x, edge_index, edge_attr, n, copies))
    width = last.size(1)
    joined = torch.zeros(n, n, dtype=torch.float64)
    joined[adj.row, adj.col.long()] = 1.0
    total = torch.zeros(len(before), dtype=torch.float64)
    for rows in torch.arange(n * width).split(copies):
        seed = torch.zeros(copies, n * width, dtype=last.dtype)
        seed[torch.arange(rows.numel()), rows] = 1.0
        found = torch.autograd.grad(
            last, before, seed.view_as(last), retain_graph=True, materialize_grads=True
        )
        felt = torch.stack(found).view(len(before), copies, n, width).double().abs().sum(dim=-1)
        total += (felt[:, : rows.numel()] * joined[rows // width]).sum(dim=(1, 2))
    return total


def _side_by_side(
    x: Tensor | None, edge_index: Tensor, edge_attr: Tensor | None, n: int, copies: int
) -> tuple[Tensor | None, Tensor, Tensor | None, Tensor]:
    """The same graph ``copies`` times, as a batch."""
    shift = n * torch.arange(copies).view(-1, 1, 1)
    return (
        None if x is None else x.repeat(copies, 1),
        (edge_index.unsqueeze(0) + shift).transpose(0, 1).reshape(2, -1),
        None if edge_attr is None else edge_attr.repeat(copies, 1),
        torch.arange(copies).repeat_interleave(n),
    )
