"""SAS-GNN: the stable backbone (Eq. 1-4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn._graph_cache import adjacency_for
from eegnn._linear import linear
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS, IN_PLACE
from eegnn.nn.dropout import Dropout
from eegnn.nn.edge_mask import Hop, with_mask_of
from eegnn.nn.hooks import is_hooked
from eegnn.nn.weights import Antisymmetric, Storage, Symmetric
from eegnn.typing import Step

EdgeTerm = Literal["none", "linear", "relu"]
NormLayer = Literal["layer", "batch"]
NORMS: dict[str, Callable[[int], nn.Module]] = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}


class SASConv(nn.Module):
    r"""The right-hand side of SAS-GNN (Eq. 1, with edge features Eq. 4).

    .. math::
        \Delta\mathbf{H} = \sigma_1\bigl(-\sigma_2(\mathbf{H}\mathbf{\Omega}_{as})
        + f_e(\mathbf{E}) + \mathbf{\bar A}\mathbf{H}\mathbf{W}_s\bigr)

    with :math:`\mathbf{\Omega}_{as}` antisymmetric and :math:`\mathbf{W}_s` symmetric by
    construction and :math:`\mathbf{\bar A} = \mathbf{D}^{-1/2}\mathbf{A}\mathbf{D}^{-1/2}` without
    self-loops. The caller adds :math:`\tau\,\Delta\mathbf{H}` (Eq. 2).

    With the default activations, each node's own Jacobian has purely imaginary eigenvalues
    (Theorem 1) and the flow never increases the energy of Eq. 3 (Theorem 2); with
    ``edge_term="relu"`` both still hold (Theorem 3).

    Args:
        channels: width :math:`m'`.
        edge_dim: number of edge features :math:`d`, or ``None``.
        edge_term: :math:`f_e(\mathbf{E})`: ``"none"`` for 0, ``"linear"`` for
            :math:`\mathbf{B}\mathbf{E}\mathbf{W}_e`, ``"relu"`` for
            :math:`-\mathrm{ReLU}(\mathbf{B}\mathbf{E}\mathbf{W}_e)`. By default ``"relu"`` where
            there are edge features.
        activation: :math:`\sigma_1`, one of ``"relu_tanh"``, ``"relu"``, ``"tanh"``,
            ``"identity"``.
        inner_activation: :math:`\sigma_2`, from the same list.
        storage: how the two matrices are stored, see :mod:`eegnn.nn.weights`.
        dropout: applied to :math:`\Delta\mathbf{H}`. Not in the paper's dynamics; for its
            ``+drop+norm`` variants.
        norm: ``"layer"`` or ``"batch"``, applied before :math:`\sigma_1`. As ``dropout``.
        weight_scale: factor on the initial :math:`\mathbf{\Omega}_{as}` and
            :math:`\mathbf{W}_s`. With many steps a smaller start (0.1 for 40 steps) keeps the
            states from growing before anything is learned.

    Shapes:
        - **h**: ``[n, channels]``
        - **edge_attr**: ``[E, edge_dim]``
        - **returns**: ``[n, channels]``
    """

    def __init__(
        self,
        channels: int,
        edge_dim: int | None = None,
        edge_term: EdgeTerm | None = None,
        activation: str = "relu_tanh",
        inner_activation: str = "relu",
        storage: Storage = "free",
        dropout: float = 0.0,
        norm: NormLayer | None = None,
        weight_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.channels = _check.integer("channels", channels, at_least=1)
        self.edge_dim = edge_dim
        self.edge_term = _check_edge_term(edge_dim, edge_term)
        self.activation = _check.choice("activation", activation, tuple(ACTIVATIONS))
        self.inner_activation = _check.choice(
            "inner_activation", inner_activation, tuple(ACTIVATIONS)
        )
        self.antisymmetric = Antisymmetric(channels, storage)
        self.symmetric = Symmetric(channels, storage)
        self.edge = None
        if self.edge_term != "none":
            assert edge_dim is not None
            self.edge = nn.Linear(edge_dim, channels, bias=False)
        self.dropout = Dropout(dropout)
        self.norm = None
        if norm is not None:
            self.norm = NORMS[_check.choice("norm", norm, tuple(NORMS))](channels)
        self._hop = Hop()
        self.weight_scale = _check.number("weight_scale", weight_scale, 0)
        self._start()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in (self.antisymmetric, self.symmetric, self.edge, self.norm):
            if module is not None:
                module.reset_parameters()  # type: ignore[operator]
        self._start()

    def _start(self) -> None:
        with torch.no_grad():
            for part in (self.antisymmetric, self.symmetric):
                part.value.mul_(self.weight_scale)

    @property
    def omega(self) -> Tensor:
        r""":math:`\mathbf{\Omega}_{as}`, antisymmetric, as used in ``H @ omega``."""
        return self.antisymmetric()

    @property
    def weight(self) -> Tensor:
        r""":math:`\mathbf{W}_s`, symmetric, as used in ``Ā H @ weight``."""
        return self.symmetric()

    def bind(self, adj: Adjacency, edge_attr: Tensor | None = None) -> Step:
        """Make what does not change from step to step, once for a forward pass.

        Where hooks are registered it is made at every step, so that they are called.
        """
        if is_hooked(self):
            return lambda h, part: self(h, part, edge_attr)
        return SASStep(self, adj, edge_attr)

    def forward(
        self,
        h: Tensor,
        edge_index: Tensor | Adjacency,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Return ΔH.

        Args:
            h: states.
            edge_index: ``[2, E]`` as in PyG, a sparse ``adj_t``, or an :class:`~eegnn.Adjacency`.
            edge_attr: edge features, a row for each column of ``edge_index``.
            edge_weight: ``[E]``, see :meth:`Adjacency.weighted <eegnn.Adjacency.weighted>`.
        """
        adj = adjacency_for(type(self).__name__, h, edge_index, edge_weight=edge_weight)
        adj = with_mask_of(self, adj)
        return self._hop(SASStep(self, adj, edge_attr)(h, adj))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, edge_term={self.edge_term!r})"


class SASStep:
    """A :class:`SASConv` during one forward pass: dense weights and edge term are at hand.

    Calling it with the Adjacency it was bound to, or with a part of it, returns ΔH.
    """

    def __init__(self, conv: SASConv, adj: Adjacency, edge_attr: Tensor | None) -> None:
        if edge_attr is None and conv.edge is not None:
            raise ValueError(f"edge_attr is needed: edge_term={conv.edge_term!r}")
        if edge_attr is not None and conv.edge_dim is None:
            raise ValueError("edge_attr was given, but edge_dim is None")
        if adj.is_directed:
            raise ValueError(
                "SAS-GNN needs an undirected graph, got a directed one: its theorems hold for a "
                "symmetric matrix (directed=False uses each edge in both directions)"
            )
        self.conv = conv
        self.omega, self.weight = conv.omega, conv.weight
        self._edge_term: Tensor | None = None
        if conv.edge is not None:
            assert edge_attr is not None
            # B(E W) = (B E) W, and the right-hand form multiplies n rows instead of |E|.
            term = conv.edge(adj.incidence_sum(edge_attr))
            self._edge_term = -term.relu() if conv.edge_term == "relu" else term

    def __call__(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return ΔH of Eq. 1, ``[n, channels]``."""
        conv = self.conv
        inner = IN_PLACE[conv.inner_activation](linear(h, self.omega.T))
        # Ā(HW) keeps nothing but H for the backward pass; (ĀH)W would keep ĀH too.
        z = adj.propagate(linear(h, self.weight.T), "sym").sub_(inner)
        edge_term = self.edge_term(adj)
        if edge_term is not None:
            z = z + edge_term
        if conv.norm is not None:
            z = conv.norm(z)
        return conv.dropout(IN_PLACE[conv.activation](z))

    def edge_term(self, adj: Adjacency) -> Tensor | None:
        r"""Return :math:`f_e(\mathbf{E})` at the nodes of a graph, ``[n, channels]``."""
        if self._edge_term is None or adj.nodes is None:
            return self._edge_term
        return self._edge_term[adj.nodes]


def _check_edge_term(edge_dim: int | None, edge_term: EdgeTerm | None) -> EdgeTerm:
    if edge_term is None:
        edge_term = "none" if edge_dim is None else "relu"
    _check.choice("edge_term", edge_term, ("none", "linear", "relu"))
    if edge_dim is not None:
        _check.integer("edge_dim", edge_dim, at_least=1)
    elif edge_term != "none":
        raise ValueError(f"edge_term={edge_term!r} needs edge_dim, the number of edge features")
    return edge_term
