r"""The networks that look at a state and decide: confidence :math:`f_c`, temperature :math:`f_\nu`.

Every head is called as ``head(h, adj)``. Those that read neighbours have ``uses_graph = True``; at
graph level they run on the nodes and their outputs are averaged over each graph, while the others
run on the pooled states (Algorithm 2).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.sas_conv import SASConv


class MeanGNN(nn.Module):
    r"""Layers :math:`\mathbf{h}_i \leftarrow \mathbf{W}[\mathbf{h}_i \,\|\,
    \mathrm{mean}_{j\in\Gamma(i)}\mathbf{h}_j] + \mathbf{b}`, with ReLU between them.

    Args:
        in_channels: width of the states.
        hidden_channels: width :math:`m_f` between the layers.
        out_channels: width of the output.
        num_layers: depth :math:`L_f`.
        bias: whether the layers have a bias.
    """

    uses_graph = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        widths = _widths(in_channels, hidden_channels, out_channels, num_layers)
        self.lins = nn.ModuleList(nn.Linear(2 * a, b, bias) for a, b in itertools.pairwise(widths))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        _reset(self.lins)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return ``[n, out_channels]``."""
        for k, lin in enumerate(self.lins):
            assert isinstance(lin, nn.Linear)
            own, mean = lin.weight.chunk(2, dim=1)
            # Averaging and the linear map commute: propagate the narrower side. Then one product
            # makes both halves, since products with two columns are slower than with four.
            if lin.out_features < h.size(-1):
                both = nn.functional.linear(h, torch.cat([own, mean]))
                centre, around = both.tensor_split(2, dim=-1)
                around = adj.propagate(around, "mean")
            else:
                centre = nn.functional.linear(h, own)
                around = nn.functional.linear(adj.propagate(h, "mean"), mean)
            h = centre + around
            if lin.bias is not None:
                h = h + lin.bias
            if k < len(self.lins) - 1:
                h = h.relu()
        return h

    def __repr__(self) -> str:
        return _repr(self)


class MLP(nn.Module):
    """Linear layers with ReLU between them; sees each unit alone. Arguments as :class:`MeanGNN`."""

    uses_graph = False

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        widths = _widths(in_channels, hidden_channels, out_channels, num_layers)
        self.lins = nn.ModuleList(nn.Linear(a, b, bias) for a, b in itertools.pairwise(widths))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        _reset(self.lins)

    def forward(self, h: Tensor, adj: Adjacency | None = None) -> Tensor:
        """Return ``[U, out_channels]``."""
        for k, lin in enumerate(self.lins):
            h = lin(h)
            if k < len(self.lins) - 1:
                h = h.relu()
        return h

    def __repr__(self) -> str:
        return _repr(self)


class SASHead(nn.Module):
    """A small SAS-GNN as head, the paper's choice on the ECHO benchmark.

    A linear map to ``hidden_channels``, ``num_layers`` steps of :class:`SASConv` with shared
    weights, a linear map to ``out_channels``. Arguments as :class:`MeanGNN`.
    """

    uses_graph = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        _widths(in_channels, hidden_channels, out_channels, num_layers)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.num_layers = num_layers
        self.lins = nn.ModuleList(
            [
                nn.Linear(in_channels, hidden_channels, bias),
                nn.Linear(hidden_channels, out_channels, bias),
            ]
        )
        self.conv = SASConv(hidden_channels)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        _reset(self.lins)
        self.conv.reset_parameters()

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return ``[n, out_channels]``."""
        h = self.lins[0](h).relu()
        step = self.conv.bind(adj)
        for _ in range(self.num_layers):
            h = h + step(h, adj)
        return self.lins[1](h)

    def __repr__(self) -> str:
        return _repr(self)


HEADS: dict[str, Callable[..., nn.Module]] = {"mean": MeanGNN, "mlp": MLP, "sas": SASHead}


class _Wrapped(nn.Module):
    """A head with a start of its own."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    @property
    def uses_graph(self) -> bool:
        """Whether the head reads neighbours."""
        return bool(self.head.uses_graph)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()  # type: ignore[operator]
        self._start()

    def _start(self) -> None:
        """Change the weights that were drawn."""


class Confidence(_Wrapped):
    r"""The confidence :math:`f_c`: raw logits :math:`\mathbf{C}` over {continue, exit}.

    Args:
        head: a module ``(h, adj) → [U, 2]``, its last layer in ``head.lins[-1]``.
        continue_bias: initial preference :math:`C_0 - C_1` for *continue*, the same for every unit:
            it becomes the bias of the last layer, whose weights start at 0. ``None``: the head
            starts as PyTorch draws it, as in the paper.

    Shapes:
        - **h**: ``[U, channels]``
        - **returns**: ``[U, 2]``
    """

    def __init__(self, head: nn.Module, continue_bias: float | None = 3.0) -> None:
        super().__init__(head)
        if continue_bias is not None:
            _check.number("continue_bias", continue_bias, -1e3, 1e3)
        self.continue_bias = continue_bias
        self._start()

    def _start(self) -> None:
        if self.continue_bias is None:
            return
        last = self.head.lins[-1]  # type: ignore[index]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.zero_()
            last.bias.copy_(torch.tensor([self.continue_bias / 2, -self.continue_bias / 2]))

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return **C**."""
        return self.head(h, adj)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.head!r}, continue_bias={self.continue_bias})"


class Temperature(_Wrapped):
    r"""The inverse temperature :math:`1/\nu = \mathrm{softplus}(g(\mathbf{H})) + \nu_0` (Eq. 21).

    Args:
        head: a module ``(h, adj) → [U, 1]``, its last layer in ``head.lins[-1]``; the paper's is
            one linear layer without bias.
        nu0: :math:`\nu_0 \ge 0`, the smallest inverse temperature.
        zero_init: start the last layer's weights at 0, so that all units begin with the same
            temperature. The paper: no.

    Shapes:
        - **h**: ``[U, channels]``
        - **returns**: ``[U]``
    """

    def __init__(self, head: nn.Module, nu0: float = 0.1, zero_init: bool = False) -> None:
        super().__init__(head)
        self.nu0 = _check.number("nu0", nu0, 0)
        self.zero_init = _check.boolean("zero_init", zero_init)
        self._start()

    def _start(self) -> None:
        if self.zero_init:
            nn.init.zeros_(self.head.lins[-1].weight)  # type: ignore[index,union-attr]

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return 1/ν."""
        return nn.functional.softplus(self.head(h, adj).squeeze(-1)) + self.nu0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.head!r}, nu0={self.nu0:g})"


def reach(head: object) -> int:
    """How many hops a head of this module sees."""
    if isinstance(head, Confidence | Temperature):
        return reach(head.head)
    if isinstance(head, MeanGNN):
        return len(head.lins)
    return head.num_layers if isinstance(head, SASHead) else 0


def _widths(in_channels: int, hidden: int, out_channels: int, num_layers: int) -> list[int]:
    _check.integer("in_channels", in_channels, at_least=1)
    _check.integer("hidden_channels", hidden, at_least=1)
    _check.integer("out_channels", out_channels, at_least=1)
    _check.integer("num_layers", num_layers, at_least=1)
    return [in_channels, *[hidden] * (num_layers - 1), out_channels]


def _reset(modules: nn.ModuleList) -> None:
    for module in modules:
        module.reset_parameters()  # type: ignore[operator]


def _repr(head: MeanGNN | MLP | SASHead) -> str:
    return f"{type(head).__name__}({head.in_channels}, {head.out_channels})"
