"""Layer sensitivity: how much the states of a layer matter at the end, for over-squashing."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from eegnn import _check
from eegnn._edge_values import widest_float
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
    the graph. In a model with exits, no unit leaves before the end.

    Args:
        model: is run in evaluation mode.
        x, edge_index, edge_attr: one graph, as in :meth:`~eegnn.nn.model.GraphModel.forward`.
        copies: how many products run together; memory grows with it.

    Returns:
        ``float64 [L]`` (``float32`` on MPS): :math:`S_0, \dots, S_{L-1}`. (:math:`S_L` is 0, since
        no node is its own neighbour.)
    """
    _check.integer("copies", copies, at_least=1)
    adj = Adjacency.from_edge_index(edge_index, None if x is None else x.size(0))
    n = adj.num_nodes
    data = Data(x=x, edge_index=edge_index, edge_attr=edge_attr, num_nodes=n)
    copied = Batch.from_data_list([data] * copies).to(adj.device)  # PyG numbers graphs on the CPU
    with torch.enable_grad():
        *before, last = states_by_layer(
            model, copied.x, copied.edge_index, copied.edge_attr, copied.batch
        )
    width, wide = last.size(1), widest_float(adj.device)
    adjacent = last.new_zeros(n, n, dtype=wide)
    adjacent[adj.row, adj.col.long()] = 1.0
    total = last.new_zeros(len(before), dtype=wide)
    for rows in torch.arange(n * width, device=adj.device).split(copies):
        seed = last.new_zeros(copies, n * width)
        seed[torch.arange(rows.numel(), device=adj.device), rows] = 1.0
        found = torch.autograd.grad(
            last, before, seed.view_as(last), retain_graph=True, materialize_grads=True
        )
        size = torch.stack(found).view(len(before), copies, n, width).to(wide).abs().sum(dim=-1)
        total += (size[:, : rows.numel()] * adjacent[rows // width]).sum(dim=(1, 2))
    return total
