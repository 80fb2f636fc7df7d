"""From features to states, and from states to predictions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm
from torch_geometric.nn.inits import reset

from eegnn import _check
from eegnn._sparse_linear import sparse_linear
from eegnn.nn.dropout import Dropout
from eegnn.nn.heads import MLP
from eegnn.nn.pairs import PAIR_POOLS, pair_channels


class Encoder(nn.Module):
    r"""One layer: :math:`\mathbf{H}^0 = \mathrm{ReLU}(\mathbf{X}\mathbf{W} + \mathbf{b})`.

    With ``in_channels=0`` (graphs without features) every node starts from
    :math:`\mathrm{ReLU}(\mathbf{b})`.

    Args:
        in_channels: number of features :math:`m`.
        out_channels: width :math:`m'`.
        dropout: applied to the states it returns.
        relu: whether there is a ReLU; without, the layer is linear.
    """

    def __init__(
        self, in_channels: int, out_channels: int, dropout: float = 0.0, relu: bool = True
    ) -> None:
        super().__init__()
        self.relu = relu
        self.in_channels = _check.integer("in_channels", in_channels, at_least=0)
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.dropout = Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew, as :class:`torch.nn.Linear` does."""
        bound = max(self.in_channels, 1) ** -0.5
        with torch.no_grad():
            self.weight.uniform_(-bound, bound)
            self.bias.uniform_(-bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Return the initial states **H**⁰, ``[n, out_channels]``; ``x`` may be sparse CSR."""
        linear = sparse_linear if x.layout == torch.sparse_csr else nn.functional.linear
        h = linear(x, self.weight, self.bias)
        return self.dropout(h.relu_() if self.relu else h)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.bias.numel()})"


class Decoder(nn.Module):
    """Linear layers with ReLU between them; by default a single one, without bias as in the paper.

    Args:
        in_channels: width :math:`m'`.
        out_channels: number of outputs.
        num_layers: depth; the hidden width is ``in_channels``.
        dropout: applied to the states it is given.
        bias: whether the layers have a bias; by default where there are several.
        norm: whether a batch norm brings what it is given to one scale first.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_layers: int = 1,
        dropout: float = 0.0,
        bias: bool | None = None,
        norm: bool = False,
    ) -> None:
        super().__init__()
        bias = num_layers > 1 if bias is None else bias
        self.norm = BatchNorm(in_channels, allow_single_element=True) if norm else nn.Identity()
        self.mlp = MLP(in_channels, in_channels, out_channels, num_layers, bias)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        reset(self.norm)
        self.mlp.reset_parameters()

    def forward(self, z: Tensor) -> Tensor:
        """Return the predictions of the units, ``[U, out_channels]``."""
        return self.mlp(self.dropout(self.norm(z)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.mlp!r})"


class PairDecoder(Decoder):
    r"""Linear layers with bias, and ReLU between them, on a symmetric function of two states.

    With ``pool="dot"`` and the single layer that it has, this is :math:`a\,\mathbf{z}_i^\top
    \mathbf{z}_j + b`: states of SAS-GNN have no negative entries, so that the product alone would
    never say no. With ``"hadamard"`` and one layer it is DistMult with a bias, :math:`\sum_c r_{kc}
    z_{ic} z_{jc} + b_k` for the relation :math:`k`; with more layers, an MLP. ``"concat"`` is what
    the heads see, :func:`~eegnn.nn.pairs.sum_product_difference`.

    Args:
        pool: a name from :data:`~eegnn.nn.pairs.PAIR_POOLS`.
        in_channels: width :math:`m'` of the state of one end.
        out_channels, num_layers, dropout: as in :class:`Decoder`.
    """

    def __init__(
        self,
        pool: str,
        in_channels: int,
        out_channels: int,
        num_layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        if pool == "dot" and (out_channels, num_layers) != (1, 1):
            raise ValueError(
                f"pool='dot' needs out_channels=1 and decoder_layers=1, got {out_channels} and "
                f"{num_layers}: for several labels or layers take pool='hadamard'"
            )
        channels = pair_channels(pool, in_channels)
        super().__init__(channels, out_channels, num_layers, dropout, bias=True)
        self.pool = pool

    def forward(self, z: Tensor) -> Tensor:
        """Return the predictions of pairs, ``[P, out_channels]``, from ``[P, 2m']``."""
        return self.mlp(PAIR_POOLS[self.pool](self.dropout(z)))
