"""Co-GNN (Finkelshtein, Huang, Bronstein and Ceylan, 2024): nodes choose when to communicate."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, Unpack

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.exits import Exits
from eegnn.nn.fixed_depth import fixed_depth
from eegnn.nn.gumbel import continue_score, logistic_noise
from eegnn.nn.heads import MLP, Temperature
from eegnn.nn.inputs import Options
from eegnn.nn.model import GraphModel

Aggregation = Literal["mean", "sum"]
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": nn.functional.relu,
    "gelu": nn.functional.gelu,
}


@dataclass(eq=False, repr=False)
class CoGNN(GraphModel):
    r"""Cooperative graph neural network: nodes choose when to listen and when to broadcast.

    Before each layer, two action networks :math:`\pi_{in}`, :math:`\pi_{out}`, shared by all
    layers, give logits of *keep* and *drop*. A straight-through Gumbel-softmax draws from them, and
    its first entries :math:`r_i, s_i \in \{0, 1\}` say which edges carry a message:

    .. math::
        \mathbf{r} = \mathrm{GS}(\pi_{in}(\mathbf{H}), \nu)_0, \quad
        \mathbf{s} = \mathrm{GS}(\pi_{out}(\mathbf{H}), \nu)_0, \qquad
        \mathbf{h}_i \leftarrow \sigma\Bigl(\mathbf{W}^l\bigl[\mathbf{h}_i \,\|\,
        \textstyle\bigoplus_{j\in\Gamma(i)} r_i s_j \mathbf{h}_j\bigr] + \mathbf{b}^l\Bigr)
        \;[{} + \mathbf{h}_i]

    The mean divides by the number of all neighbours, heard or not. An edge weight is a product of
    something of its target and something of its source, so a layer multiplies by
    :math:`\mathrm{diag}(\mathbf r)\,\mathbf{\bar A}\,\mathrm{diag}(\mathbf s)` and nothing is done
    edge by edge.

    The actions are drawn at evaluation too, from PyTorch's global random numbers: two predictions
    differ, unless :func:`torch.manual_seed` comes before or ``predict(..., sample=False)`` takes
    the likelier actions. ``dropout`` comes before every activation, and nowhere else; the decoder
    has a bias.

    Args:
        environment, action: aggregation :math:`\bigoplus` of the layers and of the action networks,
            ``"mean"`` or ``"sum"``.
        action_layers, action_channels: depth of an action network, and width between its layers.
        temperature: ``"learned"`` for
            :math:`1/\nu_i = \mathrm{softplus}(\mathbf{w}^\top\mathbf{h}_i) + \tau_0`, or a number
            :math:`\nu`.
        tau0: :math:`\tau_0`.
        skip: add the input of a layer to its output.
        layer_norm: one :class:`torch.nn.LayerNorm` for all layers, before each and after the last.
        activation: ``"relu"`` or ``"gelu"``; the action networks always have ReLU.
    """

    _: KW_ONLY
    environment: Aggregation = "mean"
    action: Aggregation = "mean"
    action_layers: int = 1
    action_channels: int = 16
    temperature: float | Literal["learned"] = "learned"
    tau0: float = 0.5
    skip: bool = False
    layer_norm: bool = False
    activation: Literal["relu", "gelu"] = "relu"

    levels = ("node", "graph")  # its decoder has an activation of its own
    decoder_bias = True
    former_names: ClassVar[dict[str, str]] = {"temperature": "learned_temperature"}

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.number("tau0", self.tau0, 0)
        width = self.hidden_channels
        self.drop = Dropout(self.dropout)
        self.norm = nn.LayerNorm(width) if self.layer_norm else None
        widths = [width, *[self.action_channels] * (self.action_layers - 1), 2]
        self.actions = ActionNets(widths, self.action, self.dropout)
        self.learned_temperature: Temperature | None = None
        if self.temperature == "learned":
            linear = MLP(width, width, 1, bias=False)
            self.learned_temperature = Temperature(linear, nu0=self.tau0)
        elif _check.number("temperature", self.temperature, 0) == 0:
            raise ValueError('temperature must be above 0 or "learned", got 0')
        self.lins = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(self.num_layers))

    def evolve(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None, **options: Unpack[Options]
    ) -> tuple[Tensor, Exits]:
        """Run all layers and decode; every unit leaves at the end.

        ``sample=False`` takes the likelier actions instead of drawing them.
        """
        noisy = options.pop("sample", None) is not False
        limit = fixed_depth(self, **options)
        for lin in self.lins[:limit]:
            h = self._normalised(h)
            listens, broadcasts = self._act(h, adj, noisy)
            heard = listens * adj.propagate(broadcasts * h, self.environment)
            out = self._activate(lin(torch.cat([h, heard], dim=1)).to(h.dtype))
            h = h + out if self.skip else out
        units = self.pool_units(self._normalised(h), adj)
        return self._decode(units), Exits.all_at(limit, self.num_layers, units)

    def _act(self, h: Tensor, adj: Adjacency, noisy: bool) -> tuple[Tensor, Tensor]:
        """Return who listens and who broadcasts, two columns of zeros and ones ``[n, 1]``."""
        score = self.actions(h, adj).to(h.dtype)
        if noisy:
            score = score + logistic_noise(score)
        if self.learned_temperature is not None:
            inverse = self.learned_temperature(h, adj).to(h.dtype).unsqueeze(-1)
        else:
            inverse = score.new_tensor(1 / float(self.temperature))
        listens, broadcasts = continue_score(score, inverse, hard=True).split(1, dim=1)
        return listens, broadcasts

    def _normalised(self, h: Tensor) -> Tensor:
        return h if self.norm is None else self.norm(h)

    def _encode(self, x: Tensor) -> Tensor:
        h = nn.functional.linear(x, self.encoder.weight, self.encoder.bias)
        return self._activate(h).to(self.encoder.bias.dtype)

    def _decode(self, units: Tensor) -> Tensor:
        *others, last = self.decoder.mlp.lins
        for lin in others:
            units = self._activate(lin(units))
        return last(units)

    def _activate(self, z: Tensor) -> Tensor:
        return _ACTIVATIONS[self.activation](self.drop(z))


class ActionNets(nn.Module):
    r"""The two action networks, which have one shape and one input, side by side.

    Each has layers :math:`\mathbf{h}_i \leftarrow \mathbf{W}[\mathbf{h}_i \,\|\,
    \bigoplus_{j\in\Gamma(i)}\mathbf{h}_j] + \mathbf{b}` with dropout and ReLU between them, and two
    outputs: logits of *keep* and *drop*. Only their difference matters, so the last layer computes
    the difference, and both networks propagate together: one column for each instead of two.
    ``widths`` are those of the input, between the layers, and of the output, 2.
    """

    def __init__(self, widths: list[int], aggregation: Aggregation, dropout: float) -> None:
        super().__init__()
        self.aggregation = aggregation
        self.dropout = Dropout(dropout)
        self.listen = nn.ModuleList(nn.Linear(2 * a, b) for a, b in itertools.pairwise(widths))
        self.broadcast = nn.ModuleList(nn.Linear(2 * a, b) for a, b in itertools.pairwise(widths))

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return the log-odds ``[n, 2]`` of listening and of broadcasting."""
        last = len(self.listen) - 1
        for k, lins in enumerate(zip(self.listen, self.broadcast, strict=True)):
            weights: list[Tensor] = [lin.get_parameter("weight") for lin in lins]
            biases: list[Tensor] = [lin.get_parameter("bias") for lin in lins]
            if k == last:
                weights, biases = [w[:1] - w[1:] for w in weights], [b[:1] - b[1:] for b in biases]
            own, around = zip(*(weight.chunk(2, dim=1) for weight in weights), strict=True)
            if k == 0:  # both networks read the same states
                own_weight, around_weight = torch.cat(own), torch.cat(around)
            else:  # each reads its own half
                own_weight, around_weight = torch.block_diag(*own), torch.block_diag(*around)
            seen = self._aggregate(h, around_weight, adj)
            h = nn.functional.linear(h, own_weight, torch.cat(biases)) + seen
            if k < last:
                h = self.dropout(h).relu()
        return h

    def _aggregate(self, h: Tensor, weight: Tensor, adj: Adjacency) -> Tensor:
        """Aggregate and map; the two commute, and the narrower side is propagated."""
        if weight.size(0) < h.size(1):
            return adj.propagate(nn.functional.linear(h, weight), self.aggregation)
        return nn.functional.linear(adj.propagate(h, self.aggregation), weight)
