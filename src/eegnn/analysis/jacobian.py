"""Jacobians of a step and their eigenvalues: what Theorem 1 is about, and what it is not."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.functional import jacobian

from eegnn.graph import Adjacency
from eegnn.typing import Step

#: The largest Jacobian that is made: 8192² float64 numbers take 512 MB.
LARGEST = 8192


def node_jacobian(step: Step, h: Tensor, adj: Adjacency, node: int) -> Tensor:
    r"""Return :math:`\partial\dot{\mathbf{h}}_i / \partial\mathbf{h}_i`, ``[m', m']``, with the
    states of all others held fixed.

    For :class:`~eegnn.SASConv` this is
    :math:`-\mathrm{diag}(\sigma_1')\,\mathrm{diag}(\sigma_2')\,\mathbf{\Omega}_{as}^\top`, whose
    eigenvalues are purely imaginary (Theorem 1): a node alone neither explodes nor forgets.

    Args:
        step: a callable ``(h, adj) → Δh``, for instance a :class:`~eegnn.SASConv`.
        h: states ``[n, m']``.
        adj: the graph.
        node: :math:`i`.
    """
    if not 0 <= node < h.size(0):
        raise ValueError(f"node must be in [0, {h.size(0)}), got {node}")

    def own(state: Tensor) -> Tensor:
        rows = torch.cat([h[:node], state.unsqueeze(0), h[node + 1 :]])
        return step(rows, adj)[node]

    return jacobian(own, h[node])


def graph_jacobian(step: Step, h: Tensor, adj: Adjacency) -> Tensor:
    r"""Return :math:`\partial\dot{\mathbf{H}} / \partial\mathbf{H}`, ``[n·m', n·m']``, the states
    of one node after those of another.

    Theorem 1 does not cover it: with the neighbours included, eigenvalues have real parts of both
    signs.

    Args:
        step, h, adj: as in :func:`node_jacobian`; a small graph.
    """
    if h.numel() > LARGEST:
        raise ValueError(
            f"h must hold at most {LARGEST} numbers, n · m', for a Jacobian of that many rows, "
            f"got {h.numel()}"
        )
    return jacobian(lambda state: step(state.view_as(h), adj).flatten(), h.flatten())


def spectrum(matrix: Tensor) -> Tensor:
    """Return the eigenvalues ``complex128 [k]`` of a matrix ``[k, k]``, largest real part first.

    They are computed on the CPU, wherever the matrix is.
    """
    values = torch.linalg.eigvals(matrix.cpu().double())
    return values[values.real.argsort(descending=True)]
