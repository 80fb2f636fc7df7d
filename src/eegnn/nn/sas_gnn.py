"""SASGNN: SAS-GNN with a fixed depth (Eq. 1-4)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Unpack

from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.exits import Exits
from eegnn.nn.fixed_depth import fixed_depth
from eegnn.nn.hooks import is_hooked
from eegnn.nn.inputs import Options
from eegnn.nn.model import GraphModel
from eegnn.nn.program import Program, execute
from eegnn.nn.sas_conv import EdgeTerm, NormLayer, SASConv
from eegnn.nn.weights import Storage
from eegnn.typing import Step

#: Solvers of torchdiffeq with a fixed step; the others choose their own.
_FIXED_STEP = ("midpoint", "heun2", "rk4", "explicit_adams", "implicit_adams")
SOLVERS = ("euler", *_FIXED_STEP, "dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun")


@dataclass(eq=False, repr=False)
class SASGNN(GraphModel):
    r"""Symmetric-Anti-Symmetric GNN, a deep backbone whose states stay stable and distinct.

    .. math::
        \mathbf{H}^0 = \mathrm{ReLU}(\mathbf{X}\mathbf{W} + \mathbf{b}), \qquad
        \mathbf{H}^{l+1} = \mathbf{H}^l + \tau\,\sigma_1\bigl(-\sigma_2(\mathbf{H}^l
        \mathbf{\Omega}_{as}) + f_e(\mathbf{E}) + \mathbf{\bar A}\mathbf{H}^l\mathbf{W}_s\bigr)

    and a linear decoder of :math:`\mathbf{H}^L`, after pooling for ``level="graph"``.

    Args:
        in_channels, hidden_channels, out_channels: see :class:`~eegnn.nn.model.GraphModel`, also
            for ``level``, ``pool``, ``edge_dim``, ``dropout`` and ``decoder_layers``.
        num_layers: number of steps :math:`L`.
        step_size: :math:`\tau`.
        shared: one :class:`~eegnn.SASConv` for all steps, or one for each.
        edge_term, activation, inner_activation, storage, weight_scale: see :class:`~eegnn.SASConv`.
        conv_dropout, conv_norm: ``dropout`` and ``norm`` of :class:`~eegnn.SASConv`.
        solver: ``"euler"``, or a solver of ``torchdiffeq`` for the same ODE over the time
            :math:`\tau L` (with :math:`\tau` as its step where its step is fixed).
        recompute: compute each layer again in the backward pass instead of keeping what autograd
            needs of it: less memory, more time. With ``"euler"``.
    """

    _: KW_ONLY
    step_size: float = 0.5
    shared: bool = True
    edge_term: EdgeTerm | None = None
    activation: str = "relu_tanh"
    inner_activation: str = "relu"
    storage: Storage = "free"
    conv_dropout: float = 0.0
    conv_norm: NormLayer | None = None
    weight_scale: float = 1.0
    solver: str = "euler"
    recompute: bool = False

    uses_edges = True
    supports_edge_weight = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.number("step_size", self.step_size, 0)
        _check.choice("solver", self.solver, SOLVERS)
        if self.step_size == 0:
            raise ValueError("step_size must be above 0, or nothing ever changes")
        if self.solver != "euler" and not self.shared:
            raise ValueError(
                f"solver={self.solver!r} needs shared=True: an ODE has one right-hand side"
            )
        count = 1 if self.shared else self.num_layers
        self.convs = nn.ModuleList(self._make_conv() for _ in range(count))

    def _make_conv(self) -> SASConv:
        return SASConv(
            self.hidden_channels,
            self.edge_dim,
            self.edge_term,
            self.activation,
            self.inner_activation,
            self.storage,
            self.conv_dropout,
            self.conv_norm,
            self.weight_scale,
        )

    def evolve(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None, **options: Unpack[Options]
    ) -> tuple[Tensor, Exits]:
        """Take all steps and decode; every unit leaves at the end."""
        if self.solver == "euler":
            return execute(self.program(adj, edge_attr, **options), h, adj)
        limit = fixed_depth(self, **options)
        h = self._integrate(self._steps(adj, edge_attr)[0], h, adj, limit * self.step_size)
        units = self.pool_units(h, adj)
        return self.decoder(units), Exits.all_at(limit, self.num_layers, units, self.step_size)

    def program(
        self, adj: Adjacency, edge_attr: Tensor | None = None, **options: Unpack[Options]
    ) -> Program:
        """Return what a forward pass on this graph runs: all steps, for every unit."""
        if self.solver != "euler":
            raise ValueError(f"solver must be 'euler' to go step by step, got {self.solver!r}")
        return Program(
            steps=self._steps(adj, edge_attr),
            readout=self.decoder,
            num_layers=self.num_layers,
            max_layers=fixed_depth(self, **options),
            level=self.level,
            pool=self.pool,
            step_size=self.step_size,
            training=self.training,
            hooked=is_hooked(self.convs),
            recompute=self.recompute,
        )

    def _steps(self, adj: Adjacency, edge_attr: Tensor | None) -> list[Step]:
        return [conv.bind(adj, edge_attr) for conv in self.convs]  # type: ignore[operator]

    def _integrate(self, step: Step, h: Tensor, adj: Adjacency, time: float) -> Tensor:
        try:
            from torchdiffeq import odeint
        except ImportError as error:
            raise ImportError(
                f"solver={self.solver!r} needs torchdiffeq: pip install 'eegnn[ode]'"
            ) from error
        fixed = {"step_size": self.step_size} if self.solver in _FIXED_STEP else None
        span = h.new_tensor([0.0, time])
        return odeint(lambda t, y: step(y, adj), h, span, method=self.solver, options=fixed)[-1]
