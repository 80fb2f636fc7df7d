"""DRew-GCN (Gutteridge et al., 2023): neighbourhoods that grow from layer to layer."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch
from scipy.sparse import csr_array, identity  # type: ignore[import-untyped]
from scipy.sparse.csgraph import dijkstra  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm

from eegnn.graph import Adjacency
from eegnn.nn.fixed_depth import FixedDepthModel

#: Ordered pairs of nodes that are kept for a graph, at 16 bytes each: half a gigabyte.
MAX_PAIRS = 2**25


@dataclass(eq=False, repr=False)
class DRew(FixedDepthModel):
    r"""GCN in which nodes at distance :math:`k` exchange messages only from layer :math:`k` on,
    and then send the states of :math:`s(k)` layers before.

    .. math::
        \mathbf{H}^{l+1} = \mathbf{H}^l + \mathrm{ReLU}\Bigl(\sum_{k=1}^{\min(l+1, K)}
        \mathbf{\bar A}_k\,\mathbf{H}^{l-s(k)}\,\mathbf{W}_k^l\Bigr), \qquad
        s(k) = \max(0, k - \nu)

    where :math:`\mathbf{A}_k` joins nodes whose shortest path has :math:`k` edges and
    :math:`\mathbf{\bar A}_k = \mathbf{D}_k^{-1/2}\mathbf{A}_k\mathbf{D}_k^{-1/2}`.

    Args:
        nu: :math:`\nu \ge 1`, how many hops a message may travel in a layer: those from farther
            away are delayed. ``None`` for :math:`\infty`, no delay.
        max_hops: :math:`K`, the largest distance; ``None`` for all that the depth allows.
        norm: as in the authors' runs, the message of each hop goes through batch normalisation
            and ReLU and is scaled to length 1, before they are summed.
    """

    _: KW_ONLY
    nu: int | None = 1
    max_hops: int | None = None
    norm: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.num_hops = min(self.max_hops or self.num_layers, self.num_layers)
        self.layers = nn.ModuleList(
            Hops(self.hidden_channels, min(layer, self.num_hops), self.norm)
            for layer in range(1, self.num_layers + 1)
        )

    def delay(self, hop: int) -> int:
        r"""Return :math:`s(k)`, how many layers back the states of a hop are from."""
        return 0 if self.nu is None else max(0, hop - self.nu)

    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Apply one layer after the other, each to the states of all layers before it."""
        hops = neighbourhoods(adj, min(num_layers, self.num_hops))
        states = [h]
        for number, layer in enumerate(self.layers[:num_layers]):
            inputs = [
                (hop, states[number - self.delay(k)])
                for k, hop in enumerate(hops[: number + 1], start=1)
            ]
            h = h + layer(inputs).to(h.dtype)
            states.append(h)
        return h


class Hops(nn.Module):
    r"""One layer of :class:`DRew`, over ``hops`` distances:
    :math:`\mathrm{ReLU}(\sum_k \mathbf{\bar A}_k\mathbf{H}_k\mathbf{W}_k)`.
    """

    def __init__(self, channels: int, hops: int, norm: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hops, channels, channels))
        self.norms = nn.ModuleList(
            BatchNorm(channels, allow_single_element=True) for _ in range(hops if norm else 0)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew, as for one linear layer of all hops concatenated."""
        bound = (self.weight.size(0) * self.weight.size(1)) ** -0.5
        nn.init.uniform_(self.weight, -bound, bound)
        for norm in self.norms:
            norm.reset_parameters()  # type: ignore[operator]

    def forward(self, inputs: list[tuple[Adjacency, Tensor]]) -> Tensor:
        """Return ``[n, channels]``, from the graph of each hop and the states ``[n, channels]``."""
        total = torch.zeros_like(inputs[0][1])
        for k, (hop, h) in enumerate(inputs):
            if not self.norms and hop.num_edges == 0:
                continue
            # Weights first: then autograd keeps the states, which exist anyway, and no result of
            # any of the L²/2 products.
            message = hop.propagate(h @ self.weight[k], "sym")
            if self.norms:
                message = nn.functional.normalize(self.norms[k](message).relu(), dim=-1)
            total = total + message
        return total.relu()


_KNOWN: WeakKeyDictionary[Adjacency, list[Adjacency]] = WeakKeyDictionary()


def neighbourhoods(adj: Adjacency, reach: int) -> list[Adjacency]:
    r"""Return :math:`\mathbf{A}_1 \dots \mathbf{A}_\text{reach}`, the pairs at each distance.

    They are remembered as long as ``adj`` lives. More than :data:`MAX_PAIRS` pairs are refused.
    """
    # Without adj itself: a value that holds its key would keep it alive for ever.
    farther = _KNOWN.get(adj, [])
    if len(farther) < reach - 1:
        farther = _KNOWN[adj] = _beyond_neighbours(adj, reach)
    return [adj, *farther][:reach]


def _beyond_neighbours(adj: Adjacency, reach: int) -> list[Adjacency]:
    """Return the graphs of the hops 2 … reach, by products of boolean matrices.

    Who lies k hops away is a neighbour of who lies k − 1 hops away, and not nearer.
    """
    entries = (np.ones(adj.num_edges, dtype=np.bool_), adj.col.cpu(), adj.rowptr.cpu())
    neighbours = csr_array(entries, shape=(adj.num_nodes, adj.num_nodes))
    _check_room(_fewest_pairs(adj, neighbours, reach), reach)
    nearer = neighbours + csr_array(identity(adj.num_nodes, dtype=np.bool_))
    hop, hops, pairs = neighbours, [], 0
    for _ in range(2, reach + 1):
        hop = neighbours @ hop > nearer
        nearer = nearer + hop
        pairs += hop.nnz
        _check_room(pairs, reach)
        hop.sort_indices()
        hops.append(_as_adjacency(hop, adj))
    return hops


def _check_room(pairs: int, reach: int) -> None:
    if pairs > MAX_PAIRS:
        raise ValueError(
            f"max_hops must be below {reach} for this graph: more than {MAX_PAIRS:,} pairs of "
            f"nodes lie within {reach} hops"
        )


def _fewest_pairs(adj: Adjacency, neighbours: csr_array, reach: int) -> int:
    """A lower bound from one search: all nodes within half the reach of one node are pairs.

    It refuses a graph like Tolokers at once; the products would take ten seconds to find the same.
    """
    if adj.num_nodes == 0:
        return 0
    hub = int(adj.degree.argmax())
    distance = dijkstra(neighbours, indices=hub, unweighted=True, limit=reach // 2)
    near = int(np.isfinite(distance).sum())
    return near * (near - 1) - adj.num_edges


def _as_adjacency(hop: csr_array, adj: Adjacency) -> Adjacency:
    rowptr, col = torch.from_numpy(hop.indptr), torch.from_numpy(hop.indices)
    index = adj.col.dtype
    return Adjacency(rowptr.to(index), col.to(index), rowptr.long().diff()).to(adj.col.device)
