"""PH-DGN (Heilig et al., ICLR 2025): a port-Hamiltonian system of momenta and positions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.zoo.adgn import PHI_NORMS, Phi
from eegnn.zoo.ode import ODEModel

Damping = Literal["param", "param+", "mlp", "dgn"]
Forcing = Literal["mlp", "dgn"]
Readout = Literal["p", "q", "pq"]


@dataclass(eq=False, repr=False)
class PHDGN(ODEModel):
    r"""Port-Hamiltonian Deep Graph Network.

    Each node has a momentum :math:`\mathbf{p}_i` and a position :math:`\mathbf{q}_i`, both of
    width :math:`m'` and both starting from :math:`\mathbf{h}_i^0`. The energy is

    .. math::
        H(\mathbf{P}, \mathbf{Q}) = \sum_i \mathbf{1}^\top\log\cosh(\mathbf{W}_p\mathbf{p}_i +
        \Phi_p(\mathbf{P})_i + \mathbf{b}_p) + \mathbf{1}^\top\log\cosh(\mathbf{W}_q\mathbf{q}_i +
        \Phi_q(\mathbf{Q})_i + \mathbf{b}_q)

    and a step of the symplectic Euler method

    .. math::
        \mathbf{Q}' &= \mathbf{Q} + \varepsilon\,\nabla_p H(\mathbf{P}) \\
        \mathbf{P}' &= \mathbf{P} - \varepsilon\,\bigl(\nabla_q H(\mathbf{Q}') +
        D(\mathbf{Q}')\odot\nabla_p H(\mathbf{P}) - F(\mathbf{Q}', t)\bigr)

    By default damping :math:`D` and force :math:`F` are 0: the conservative model, whose steps are
    symplectic and keep the energy up to :math:`O(\varepsilon)`. Weights are the same in all steps.

    Args:
        phi: :math:`\Phi(\mathbf{X}) = \mathbf{\bar A}\mathbf{X}\mathbf{V}^\top` without
            self-loops: ``"sum"`` or ``"gcn"``, as in :class:`~eegnn.zoo.adgn.ADGNStep`.
        damping: :math:`D(\mathbf{q})`, see :class:`DampingTerm`; ``None`` for none.
        forcing: :math:`F(\mathbf{q}, t)`, see :class:`ForcingTerm`; ``None`` for none.
        readout: what is decoded, ``"p"``, ``"q"``, or both side by side, ``"pq"``.
    """

    _: KW_ONLY
    phi: Phi = "sum"
    damping: Damping | None = None
    forcing: Forcing | None = None
    readout: Readout = "pq"

    former_names: ClassVar[dict[str, str]] = {"damping": "damping_term", "forcing": "forcing_term"}

    def __post_init__(self) -> None:
        super().__post_init__()
        width, damping, forcing = self.hidden_channels, self.damping, self.forcing
        self.gradient_p = HamiltonianGradient(width, self.phi)
        self.gradient_q = HamiltonianGradient(width, self.phi)
        self.damping_term = None if damping is None else DampingTerm(width, damping)
        self.forcing_term = None if forcing is None else ForcingTerm(width, forcing)
        if self.readout == "pq":
            self.decoder = self.make_decoder(2 * width)

    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Update positions and momenta in turn; return what is read out."""
        p = q = h
        for layer in range(num_layers):
            p, q = self.advance(p, q, adj, layer * self.step_size)
        if self.readout == "pq":
            return torch.cat([p, q], dim=1)
        return p if self.readout == "p" else q

    def advance(self, p: Tensor, q: Tensor, adj: Adjacency, time: float) -> tuple[Tensor, Tensor]:
        """Take one step from momenta and positions ``[n, m']`` at a time."""
        velocity = self.gradient_p(p, adj)
        q = torch.add(q, velocity, alpha=self.step_size)
        decay = self.gradient_q(q, adj)
        if self.damping_term is not None:
            decay = decay + self.damping_term(q, adj) * velocity
        if self.forcing_term is not None:
            decay = decay - self.forcing_term(q, adj, time)
        return torch.sub(p, decay, alpha=self.step_size), q


class HamiltonianGradient(nn.Module):
    r"""The gradient of :math:`\sum_i\mathbf{1}^\top\log\cosh(\mathbf{W}\mathbf{x}_i +
    \Phi(\mathbf{X})_i + \mathbf{b})`.

    .. math::
        \nabla H = \mathbf{S}\mathbf{W} + \mathbf{\bar A}\mathbf{S}\mathbf{V}, \qquad
        \mathbf{S} = \tanh(\mathbf{X}\mathbf{W}^\top + \mathbf{\bar A}\mathbf{X}\mathbf{V}^\top +
        \mathbf{b})

    since :math:`\mathbf{\bar A}` is symmetric: a step reaches neighbours of neighbours.

    """

    def __init__(self, channels: int, phi: Phi) -> None:
        super().__init__()
        self.phi = _check.choice("phi", phi, tuple(PHI_NORMS))
        self.own = nn.Linear(channels, channels)
        self.neighbours = nn.Linear(channels, channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew, those of the neighbours as Glorot does."""
        self.own.reset_parameters()
        nn.init.xavier_uniform_(self.neighbours.weight)

    def forward(self, x: Tensor, adj: Adjacency) -> Tensor:
        """Return the gradient, ``[n, channels]`` as ``x``."""
        norm = PHI_NORMS[self.phi]
        s = torch.addmm(self.own(x), adj.propagate(x, norm), self.neighbours.weight.T).tanh()
        return torch.addmm(s @ self.own.weight, adj.propagate(s, norm), self.neighbours.weight)


class DampingTerm(nn.Module):
    r"""The damping :math:`D(\mathbf{Q})`, a factor for each entry of :math:`\nabla_p H`.

    Where it is positive, energy is lost.

    Args:
        channels: width :math:`m'`.
        form: ``"param"`` for a learned vector of either sign, ``"param+"`` for its ReLU,
            ``"mlp"`` for four layers with a ReLU after each, ``"dgn"`` for
            :math:`\mathrm{ReLU}(\mathbf{A}\mathbf{Q}\mathbf{U}^\top)`.
    """

    def __init__(self, channels: int, form: Damping) -> None:
        super().__init__()
        self.channels = channels
        self.form = _check.choice("damping", form, ("param", "param+", "mlp", "dgn"))
        if form in ("param", "param+"):
            self.vector = nn.Parameter(torch.empty(channels))
        else:
            self.lins = _layers(4 if form == "mlp" else 1, channels, channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        if self.form in ("param", "param+"):
            nn.init.normal_(self.vector, std=(2 / self.channels) ** 0.5)
        else:
            reset(self.lins)

    def forward(self, q: Tensor, adj: Adjacency) -> Tensor:
        """Return the factors, ``[n, channels]`` or ``[channels]``."""
        if self.form == "param":
            return self.vector
        if self.form == "param+":
            return self.vector.relu()
        if self.form == "dgn":
            return self.lins[0](adj.propagate(q, "sum")).relu()
        for lin in self.lins:
            q = lin(q).relu()
        return q


class ForcingTerm(nn.Module):
    r"""The external force :math:`F(\mathbf{Q}, t)` on the momenta.

    Args:
        channels: width :math:`m'`.
        form: ``"mlp"`` for four layers with sines between them, ``"dgn"`` for
            :math:`\tanh(\mathbf{A}[\mathbf{Q} \,\|\, t]\,\mathbf{U}^\top)`.
    """

    def __init__(self, channels: int, form: Forcing) -> None:
        super().__init__()
        self.form = _check.choice("forcing", form, ("mlp", "dgn"))
        self.lins = _layers(4 if form == "mlp" else 1, channels + 1, channels)

    def forward(self, q: Tensor, adj: Adjacency, time: float) -> Tensor:
        """Return the force at a time, ``[n, channels]``."""
        state = torch.cat([q, q.new_full((q.size(0), 1), time)], dim=1)
        if self.form == "dgn":
            return self.lins[0](adj.propagate(state, "sum")).tanh()
        for lin in self.lins[:-1]:
            state = lin(state).sin()
        return self.lins[-1](state)


def _layers(count: int, channels: int, out_channels: int) -> nn.ModuleList:
    """Linear layers, the last of them without bias."""
    inner = [nn.Linear(channels, channels) for _ in range(count - 1)]
    return nn.ModuleList([*inner, nn.Linear(channels, out_channels, bias=False)])
