r"""The networks that look at a state and decide: confidence :math:`f_c`, temperature :math:`f_\nu`.

Every head is called as ``head(h, adj)``. Those that read neighbours have ``uses_graph = True``; at
graph level they run on the nodes and their outputs are averaged over each graph, while the others
run on the pooled states (Algorithm 2).
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch_geometric.nn.inits import reset

from eegnn import _check
from eegnn._linear import linear
from eegnn.graph import Adjacency
from eegnn.nn.sas_conv import SASConv
from eegnn.typing import Head


class MLP(nn.Module):
    """Linear layers with ReLU between them; sees each unit alone.

    Args:
        in_channels: width of the states.
        hidden_channels: width :math:`m_f` between the layers.
        out_channels: width of the output.
        num_layers: depth :math:`L_f`.
        bias: whether the layers have a bias.
    """

    uses_graph = False
    _reads = 1  #: how many matrices a layer has: one for each input

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels = _check.integer("in_channels", in_channels, at_least=1)
        _check.integer("hidden_channels", hidden_channels, at_least=1)
        self.out_channels = _check.integer("out_channels", out_channels, at_least=1)
        self.num_layers = _check.integer("num_layers", num_layers, at_least=1)
        self.lins = self._layers(hidden_channels, bias)

    def _layers(self, hidden: int, bias: bool) -> nn.ModuleList:
        widths = [self.in_channels, *[hidden] * (self.num_layers - 1), self.out_channels]
        return nn.ModuleList(
            nn.Linear(self._reads * a, b, bias) for a, b in itertools.pairwise(widths)
        )

    @property
    def num_hops(self) -> int:
        """How many hops the head sees."""
        return self.num_layers if self.uses_graph else 0

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in self.children():
            reset(module)

    def forward(self, h: Tensor, adj: Adjacency | None = None) -> Tensor:
        """Return the output of each unit, ``[U, out_channels]``."""
        return self._layer(self._hidden(h, adj), adj, *_weights(self.lins[-1]))

    def bind_scalar(self) -> Head:
        """Return ``(h, adj) → [U]``, the only output, or the first minus the second.

        It is one head with a last layer of one column, which is made once for a forward pass.
        """
        weight, bias = _weights(self.lins[-1])
        weight, bias = _contrast(weight), None if bias is None else _contrast(bias)
        return lambda h, adj: self._layer(self._hidden(h, adj), adj, weight, bias)

    def _hidden(self, h: Tensor, adj: Adjacency | None) -> Tensor:
        """Return the states that the last layer reads."""
        for lin in list(self.lins)[:-1]:
            h = self._layer(h, adj, *_weights(lin)).relu()
        return h

    def _layer(
        self, h: Tensor, adj: Adjacency | None, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        """Apply a layer with ``weight`` ``[out, in]`` or, for a single output, ``[in]``."""
        return linear(h, weight, bias)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels})"


class MeanGNN(MLP):
    r"""Layers :math:`\mathbf{h}_i \leftarrow \mathbf{W}[\mathbf{h}_i \,\|\,
    \mathrm{mean}_{j\in\Gamma(i)}\mathbf{h}_j] + \mathbf{b}`, with ReLU between them.

    Arguments as :class:`MLP`.
    """

    uses_graph = True
    _reads = 2

    def _layer(
        self, h: Tensor, adj: Adjacency | None, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        assert adj is not None
        own, mean = weight.chunk(2, dim=-1)
        # Averaging and the linear map commute: the map comes first, since it is mostly to fewer
        # columns. A single output is the last layer, which is right at the targets alone.
        last = weight.dim() == 1
        rows = adj.num_targets if last else adj.num_nodes
        return linear(h[:rows], own, bias) + adj.propagate(linear(h, mean), "mean", last)


class SASHead(MLP):
    """A small SAS-GNN as head, the paper's choice on the ECHO benchmark.

    A linear map to ``hidden_channels``, ``num_layers`` steps of :class:`SASConv` with shared
    weights, a linear map to ``out_channels``. Arguments as :class:`MLP`.
    """

    uses_graph = True

    def _layers(self, hidden: int, bias: bool) -> nn.ModuleList:
        ends = [(self.in_channels, hidden), (hidden, self.out_channels)]
        lins = nn.ModuleList(nn.Linear(*widths, bias) for widths in ends)
        self.conv = SASConv(hidden)
        return lins

    def _hidden(self, h: Tensor, adj: Adjacency | None) -> Tensor:
        assert adj is not None
        h = self.lins[0](h).relu()
        step = self.conv.bind(adj)
        for _ in range(self.num_layers):
            h = h + step(h, adj)
        return h


HEADS: dict[str, type[MLP]] = {"mean": MeanGNN, "mlp": MLP, "sas": SASHead}


class _StartedHead(nn.Module):
    """A head whose last layer may have initial weights of its own."""

    def __init__(self, head: MLP) -> None:
        super().__init__()
        self.head, self.uses_graph = head, head.uses_graph

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        self._start()

    def _start(self) -> None:
        """Change the initial weights."""


class Confidence(_StartedHead):
    r"""The confidence :math:`f_c`: raw logits :math:`\mathbf{C}` over {continue, exit}.

    Args:
        head: with two outputs.
        continue_bias: initial preference :math:`C_0 - C_1` for *continue*, the same for every unit:
            it becomes the bias of the last layer, whose weights start at 0. ``None``: the head
            starts as PyTorch draws it, as in the paper.

    Shapes:
        - **h**: ``[U, channels]``
        - **returns**: ``[U, 2]``
    """

    def __init__(self, head: MLP, continue_bias: float | None = 3.0) -> None:
        super().__init__(head)
        if continue_bias is not None:
            _check.number("continue_bias", continue_bias, -1e3, 1e3)
        self.continue_bias = continue_bias
        self._start()

    def _start(self) -> None:
        if self.continue_bias is None:
            return
        last, half = self.head.lins[-1], self.continue_bias / 2
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.zero_()
            last.bias.copy_(torch.tensor([half, -half]))

    def forward(self, h: Tensor, adj: Adjacency | None = None) -> Tensor:
        """Return the logits **C** of *continue* and *exit*, ``[U, 2]``."""
        return self.head(h, adj)

    def bind_scalar(self) -> Head:
        """Return ``(h, adj) → C₀ − C₁``, ``[U]``: the softmax depends on nothing else."""
        return self.head.bind_scalar()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.head!r}, continue_bias={self.continue_bias})"


class Temperature(_StartedHead):
    r"""The inverse temperature :math:`1/\nu = \mathrm{softplus}(g(\mathbf{H})) + \nu_0` (Eq. 21).

    Args:
        head: with one output; the paper's is one linear layer without bias.
        nu0: :math:`\nu_0 \ge 0`, the smallest inverse temperature.
        zero_init: start the last layer's weights at 0, so that all units begin with the same
            temperature. The paper: no.

    Shapes:
        - **h**: ``[U, channels]``
        - **returns**: ``[U]``
    """

    def __init__(self, head: MLP, nu0: float = 0.1, zero_init: bool = False) -> None:
        super().__init__(head)
        self.nu0 = _check.number("nu0", nu0, 0)
        self.zero_init = _check.boolean("zero_init", zero_init)
        self._start()

    def _start(self) -> None:
        if self.zero_init:
            nn.init.zeros_(self.head.lins[-1].weight)  # type: ignore[arg-type]

    def forward(self, h: Tensor, adj: Adjacency | None = None) -> Tensor:
        """Return the inverse temperature 1/ν of each unit, ``[U]``."""
        return softplus(self.head(h, adj).squeeze(-1)) + self.nu0

    def bind_scalar(self) -> Head:
        """Return :meth:`forward` with weights that are made once for a forward pass."""
        head = self.head.bind_scalar()
        return lambda h, adj: softplus(head(h, adj)) + self.nu0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.head!r}, nu0={self.nu0:g})"


def _weights(lin: nn.Module) -> tuple[Tensor, Tensor | None]:
    assert isinstance(lin, nn.Linear)
    return lin.weight, lin.bias


def _contrast(rows: Tensor) -> Tensor:
    """Return the only row, or the first minus the second."""
    return rows[0] if len(rows) == 1 else rows[0] - rows[1]
