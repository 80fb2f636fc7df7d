"""Co-GNN (Finkelshtein, Huang, Bronstein and Ceylan, 2024): nodes choose whom they talk to."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Literal, Unpack

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.exits import Exits
from eegnn.nn.gumbel import continue_score, logistic_noise
from eegnn.nn.heads import MLP, Temperature
from eegnn.nn.model import GraphModel, Shared, arguments_in
from eegnn.nn.pooling import POOLS
from eegnn.typing import Level

Aggregation = Literal["mean", "sum"]
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": nn.functional.relu,
    "gelu": nn.functional.gelu,
}


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
    the likelier actions.

    Args:
        in_channels, hidden_channels, out_channels, num_layers, level: see
            :class:`~eegnn.nn.model.GraphModel`, as for ``**kwargs``. ``dropout`` comes before every
            activation, and nowhere else; the decoder has a bias.
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

    decoder_bias = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 10,
        level: Level = "node",
        *,
        environment: Aggregation = "mean",
        action: Aggregation = "mean",
        action_layers: int = 1,
        action_channels: int = 16,
        temperature: float | Literal["learned"] = "learned",
        tau0: float = 0.5,
        skip: bool = False,
        layer_norm: bool = False,
        activation: Literal["relu", "gelu"] = "relu",
        **kwargs: Unpack[Shared],
    ) -> None:
        own = arguments_in(locals())
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, level, **kwargs)
        self.config |= own
        self.environment = _check.choice("environment", environment, ("mean", "sum"))
        _check.choice("action", action, ("mean", "sum"))
        _check.integer("action_layers", action_layers, at_least=1)
        _check.integer("action_channels", action_channels, at_least=1)
        _check.number("tau0", tau0, 0)
        self.skip = _check.boolean("skip", skip)
        _check.boolean("layer_norm", layer_norm)
        self.activation = _ACTIVATIONS[_check.choice("activation", activation, (*_ACTIVATIONS,))]
        self.dropout = Dropout(self.config["dropout"])
        self.norm = nn.LayerNorm(hidden_channels) if layer_norm else None
        widths = [hidden_channels, *[action_channels] * (action_layers - 1), 2]
        self.actions = ActionNets(widths, action, self.config["dropout"])
        self.temperature: Temperature | float
        if temperature == "learned":
            linear = MLP(hidden_channels, hidden_channels, 1, bias=False)
            self.temperature = Temperature(linear, nu0=tau0)
        else:
            self.temperature = _check.number("temperature", temperature, 0)
            if self.temperature == 0:
                raise ValueError('temperature must be above 0 or "learned", got 0')
        self.lins = nn.ModuleList(
            nn.Linear(2 * hidden_channels, hidden_channels) for _ in range(num_layers)
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in (self.encoder, *self.lins, self.actions, self.decoder):
            module.reset_parameters()
        for part in (self.norm, self.temperature):
            if isinstance(part, nn.Module):
                part.reset_parameters()

    def evolve(
        self,
        h: Tensor,
        adj: Adjacency,
        edge_attr: Tensor | None = None,
        *,
        max_layers: int | None = None,
        exit_threshold: float | None = None,
        sample: bool | None = None,
    ) -> tuple[Tensor, Exits]:
        """Apply all layers and decode; everyone leaves at the end.

        ``sample=False`` takes the likelier actions instead of drawing them.
        """
        limit = self.fixed_depth(max_layers, exit_threshold, None)
        for lin in self.lins[:limit]:
            h = self._normalised(h)
            listens, broadcasts = self._act(h, adj, noisy=sample is not False)
            heard = listens * adj.propagate(broadcasts * h, self.environment)
            out = lin(torch.cat([h, heard], dim=1)).to(h.dtype)
            out = self.activation(self.dropout(out))
            h = h + out if self.skip else out
        h = self._normalised(h)
        units = h if self.level == "node" else POOLS[self.pool](h, adj)
        return self._decode(units), Exits.all_at(limit, self.num_layers, units)

    def _act(self, h: Tensor, adj: Adjacency, noisy: bool) -> tuple[Tensor, Tensor]:
        """Return who listens and who broadcasts, two columns of zeros and ones ``[n, 1]``."""
        score = self.actions(h, adj).to(h.dtype)
        if noisy:
            score = score + logistic_noise(score)
        if isinstance(self.temperature, Temperature):
            inverse = self.temperature(h, adj).to(h.dtype).unsqueeze(-1)
        else:
            inverse = score.new_tensor(1 / self.temperature)
        listens, broadcasts = continue_score(score, inverse, hard=True).split(1, dim=1)
        return listens, broadcasts

    def _normalised(self, h: Tensor) -> Tensor:
        return h if self.norm is None else self.norm(h)

    def _encode(self, x: Tensor) -> Tensor:
        h = nn.functional.linear(x, self.encoder.weight, self.encoder.bias)
        return self.activation(self.dropout(h)).to(self.encoder.bias.dtype)

    def _decode(self, units: Tensor) -> Tensor:
        *others, last = self.decoder.mlp.lins
        for lin in others:
            units = self.activation(self.dropout(lin(units)))
        return last(units)


class ActionNets(nn.Module):
    r"""The two action networks, which have one shape and one input, side by side.

    Each has layers :math:`\mathbf{h}_i \leftarrow \mathbf{W}[\mathbf{h}_i \,\|\,
    \bigoplus_{j\in\Gamma(i)}\mathbf{h}_j] + \mathbf{b}` with dropout and ReLU between them, and two
    outputs: logits of *keep* and *drop*. Only their difference matters, so the last layer computes
    the difference, and both networks propagate together: one column for each instead of two.

    Args:
        widths: of the input, between the layers, and of the output, 2.
        aggregation: ``"mean"`` or ``"sum"``.
        dropout: between the layers.
    """

    def __init__(self, widths: list[int], aggregation: Aggregation, dropout: float) -> None:
        super().__init__()
        self.aggregation = aggregation
        self.dropout = Dropout(dropout)
        self.listen = nn.ModuleList(nn.Linear(2 * a, b) for a, b in itertools.pairwise(widths))
        self.broadcast = nn.ModuleList(nn.Linear(2 * a, b) for a, b in itertools.pairwise(widths))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for lin in (*self.listen, *self.broadcast):
            lin.reset_parameters()

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return the log-odds ``[n, 2]`` of listening and of broadcasting."""
        last = len(self.listen) - 1
        for k, lins in enumerate(zip(self.listen, self.broadcast, strict=True)):
            weights: list[Tensor] = [lin.get_parameter("weight") for lin in lins]
            biases: list[Tensor] = [lin.get_parameter("bias") for lin in lins]
            if k == last:
                weights, biases = [w[:1] - w[1:] for w in weights], [b[:1] - b[1:] for b in biases]
            own, around = zip(*(weight.chunk(2, dim=1) for weight in weights), strict=True)
            # The first layers read the same states, the others each their own half.
            join: Callable[[tuple[Tensor, ...]], Tensor] = torch.cat if k == 0 else _block_diagonal
            seen = self._aggregate(h, join(around), adj)
            h = nn.functional.linear(h, join(own), torch.cat(biases)) + seen
            if k < last:
                h = self.dropout(h).relu()
        return h

    def _aggregate(self, h: Tensor, weight: Tensor, adj: Adjacency) -> Tensor:
        """Aggregate and map; the two commute, and the narrower side is propagated."""
        if weight.size(0) < h.size(1):
            return adj.propagate(nn.functional.linear(h, weight), self.aggregation)
        return nn.functional.linear(adj.propagate(h, self.aggregation), weight)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.listen)} layers, {self.aggregation!r})"


def _block_diagonal(blocks: tuple[Tensor, ...]) -> Tensor:
    return torch.block_diag(*blocks)
