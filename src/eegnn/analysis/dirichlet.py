"""Dirichlet energy: how much the states of neighbours differ, for over-smoothing."""

from __future__ import annotations

from torch import Tensor

from eegnn._edge_values import widest_float
from eegnn.graph import Adjacency

#: Numbers that are held at once.
_CHUNK = 2**23


def dirichlet_energy(h: Tensor, adj: Adjacency) -> Tensor:
    r"""Return the Dirichlet energy of states (Appendix, "Over-smoothing").

    .. math::
        E^{dir}(\mathbf{H}) = \sum_{(i,j)\in\mathcal{E}} \Bigl\lVert
        \frac{\mathbf{h}_j}{\sqrt{d_j+1}} - \frac{\mathbf{h}_i}{\sqrt{d_i+1}}\Bigr\rVert^2

    :math:`\mathcal{E}` holds both directions of an edge. Values near zero say that neighbours
    cannot be told apart. The differences are summed as they stand, in float64: the quadratic form
    of the Laplacian would lose small energies to cancellation.

    Args:
        h: ``[n, m']``, or ``[L + 1, n, m']`` for all layers.
        adj: the graph.

    Returns:
        ``float64`` (``float32`` on MPS), a scalar or ``[L + 1]``.
    """
    wide = widest_float(h.device)
    scaled = h.to(wide) * (adj.degree + 1).to(wide).rsqrt().unsqueeze(-1)
    first, second = adj.edge_index
    once = first < second
    first, second = first[once], second[once]
    total = scaled.new_zeros(h.shape[:-2])
    step = max(1, _CHUNK // max(1, scaled[..., :1, :].numel()))
    for i, j in zip(first.split(step), second.split(step), strict=True):
        total = total + (scaled[..., i, :] - scaled[..., j, :]).square().sum(dim=(-2, -1))
    return 2 * total
