"""NodeFormer (Wu et al., NeurIPS 2022): attention over all nodes by random features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.encoders import Encoder
from eegnn.nn.fixed_depth import FixedDepthModel
from eegnn.nn.pooling import POOLS, spread
from eegnn.zoo.gcn import propagate_with_self_loops
from eegnn.zoo.linear_attention import linear_attention


@dataclass(eq=False, repr=False)
class NodeFormer(FixedDepthModel):
    r"""A transformer over all nodes of a graph, at a cost linear in their number.

    .. math::
        \mathbf{H}^{l+1} = \mathrm{dropout}\bigl(\mathrm{LN}\bigl(\mathrm{attention}^l(\mathbf{H}^l)
        + \mathbf{H}^l\bigr)\bigr), \qquad \mathbf{H}^0 = \mathrm{dropout}\bigl(\mathrm{ELU}(
        \mathrm{LN}(\mathbf{X}\mathbf{W} + \mathbf{b}))\bigr)

    with :class:`KernelAttention`, which has the equation.

    Args:
        heads: attention heads, each as wide as the model.
        random_features: number :math:`M` of random features, drawn anew in each pass of training.
        gumbel_samples: number :math:`K` of draws of the Gumbel noise in training.
        temperature: :math:`\tau`.
        relational_bias: whether neighbours are weighed up by a number for each head.
        conv_dropout: after the encoder and after each layer.
    """

    num_layers: int = 2
    _: KW_ONLY
    heads: int = 4
    random_features: int = 30
    gumbel_samples: int = 10
    temperature: float = 0.25
    relational_bias: bool = True
    conv_dropout: float = 0.0

    decoder_bias = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if _check.number("temperature", self.temperature, 0) == 0:
            raise ValueError("temperature must be above 0, got 0")
        self.encoder = NormEncoder(self.in_channels, self.hidden_channels, self.conv_dropout)
        self.layers = nn.ModuleList(NodeFormerLayer(self) for _ in range(self.num_layers))

    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Apply one layer after the other; a graph without nodes has nothing to attend to."""
        for layer in self.layers[: num_layers if adj.num_nodes else 0]:
            h = layer(h, adj).to(h.dtype)
        return h


class NormEncoder(Encoder):
    """A linear layer, layer normalisation, ELU, dropout."""

    def __init__(self, in_channels: int, out_channels: int, dropout: float) -> None:
        super().__init__(in_channels, out_channels, relu=False)
        self.norm, self.drop = nn.LayerNorm(out_channels), Dropout(dropout)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        super().reset_parameters()
        if hasattr(self, "norm"):  # not yet while the parent is made
            self.norm.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Return the initial states, ``[n, out_channels]``."""
        return self.drop(F.elu(self.norm(super().forward(x))))


class NodeFormerLayer(nn.Module):
    """Attention, its input, layer normalisation, dropout."""

    def __init__(self, model: NodeFormer) -> None:
        super().__init__()
        self.attention = KernelAttention(model)
        self.norm = nn.LayerNorm(model.hidden_channels)
        self.dropout = Dropout(model.conv_dropout)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return the shape of ``h``."""
        return self.dropout(self.norm(self.attention(h, adj) + h))


class KernelAttention(nn.Module):
    r"""Softmax attention whose kernel is a product of random features, with Gumbel noise.

    .. math::
        \mathbf{z}_i = \frac1K\sum_{k=1}^K \frac{\sum_j \phi(\mathbf{q}_i)^\top\phi(\mathbf{k}_j)
        \,e^{g_{jk}/\tau}\,\mathbf{v}_j}{\sum_j \phi(\mathbf{q}_i)^\top\phi(\mathbf{k}_j)\,
        e^{g_{jk}/\tau}} \;\Bigl[{} + \mathrm{sigmoid}(b)\sum_j\tilde a_{ij}\mathbf{v}_j\Bigr]

    in each head, over the nodes of a graph; then a linear map of all heads. :math:`g_{jk}` is
    Gumbel noise, which there is in training alone. With :math:`\mathbf{x}' = \mathbf{x}\,
    \tau^{-1/2}d^{-1/4}`,

    .. math::
        \phi(\mathbf{x}) = M^{-1/2}\bigl(\exp(\mathbf{\Omega}\mathbf{x}' - \|\mathbf{x}'\|^2/2 - c)
        + 10^{-6}\bigr), \qquad \mathbb{E}\,\phi(\mathbf{q})^\top\phi(\mathbf{k}) \propto
        \exp\bigl(\mathbf{q}^\top\mathbf{k}/(\tau\sqrt d)\bigr)

    where the rows of :math:`\mathbf{\Omega}`, ``[M, d]``, are orthogonal in blocks of :math:`d` and
    as long as normal vectors, and :math:`c`, the largest entry of :math:`\mathbf{\Omega}
    \mathbf{x}'` of a query, or of all keys of a graph, keeps the exponential small. In evaluation
    :math:`\mathbf{\Omega}` is always the same.
    """

    def __init__(self, model: NodeFormer) -> None:
        super().__init__()
        self.heads, self.random_features = model.heads, model.random_features
        self.gumbel_samples, self.temperature = model.gumbel_samples, model.temperature
        channels, heads = model.hidden_channels, model.heads
        self.query = nn.Linear(channels, heads * channels)
        self.key = nn.Linear(channels, heads * channels)
        self.value = nn.Linear(channels, heads * channels)
        self.out = nn.Linear(heads * channels, channels)
        self.bias = nn.Parameter(torch.full((heads,), 0.1)) if model.relational_bias else None

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for lin in (self.query, self.key, self.value, self.out):
            lin.reset_parameters()
        if self.bias is not None:
            nn.init.constant_(self.bias, 0.1)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return the states ``[n, channels]`` after attention over all nodes of each graph."""
        n, width = h.shape
        query, key, value = (
            lin(h).view(n, self.heads, width) for lin in (self.query, self.key, self.value)
        )
        generator = None if self.training else torch.Generator().manual_seed(0)
        projection = orthogonal_features(self.random_features, width, generator).to(h)
        scale = self.temperature**-0.5 * width**-0.25
        query = softmax_features(query * scale, projection, None)
        key = softmax_features(key * scale, projection, adj)
        attended = self.attend(query, key, value, adj)
        if self.bias is not None:
            around = propagate_with_self_loops(adj, value.flatten(1)).view_as(value)
            attended = attended + self.bias.sigmoid().unsqueeze(-1) * around
        return self.out(attended.flatten(1))

    def attend(self, query: Tensor, key: Tensor, value: Tensor, adj: Adjacency) -> Tensor:
        """Average the values by the features of queries and keys, ``[n, heads, M]``."""
        if self.training:  # each draw of the noise as heads of their own
            noise = (
                -torch.empty(
                    *key.shape[:2], self.gumbel_samples, dtype=key.dtype, device=key.device
                )
                .exponential_()
                .log()
            )
            key = (key.unsqueeze(2) * (noise / self.temperature).exp().unsqueeze(-1)).flatten(1, 2)
            query, value = (x.repeat_interleave(self.gumbel_samples, 1) for x in (query, value))
        total, weight = linear_attention(query, key, value, adj)
        return (total / weight).unflatten(1, (self.heads, -1)).mean(dim=2)


def softmax_features(x: Tensor, projection: Tensor, adj: Adjacency | None) -> Tensor:
    r"""Return :math:`\phi` of ``[n, heads, d]``, ``[n, heads, M]``; of keys where there is a graph.

    The largest entry is that of each query, or of the keys of a graph, for each head.
    """
    z = x @ projection.T
    largest = z.amax(dim=-1)
    if adj is not None:
        largest = spread(POOLS["max"](largest, adj), adj)
    z = z - x.square().sum(dim=-1, keepdim=True) / 2 - largest.unsqueeze(-1)
    return (z.exp() + 1e-6) * projection.size(0) ** -0.5


def orthogonal_features(count: int, width: int, generator: torch.Generator | None) -> Tensor:
    """Return ``[count, width]``: rows as long as normal vectors, orthogonal in blocks."""
    blocks = [
        torch.linalg.qr(torch.randn(width, width, generator=generator, device="cpu"))[0].T
        for _ in range(-(-count // width))
    ]
    length = torch.randn(count, width, generator=generator, device="cpu").norm(dim=1, keepdim=True)
    # The signs of a QR decomposition are not random: with them a kernel was wrong by up to 38 %
    # with two million features, for vectors of a length about 1 in four dimensions.
    sign = torch.randn(count, 1, generator=generator, device="cpu").sign()
    return sign * length * torch.cat(blocks)[:count]
