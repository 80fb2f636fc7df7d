"""SASGNN: SAS-GNN with a fixed depth (Eq. 1-4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.advance import advance
from eegnn.nn.again import can_stream
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel, Shared, arguments_in
from eegnn.nn.pooling import POOLS
from eegnn.nn.program import Program
from eegnn.nn.sas_conv import NORMS, EdgeTerm, NormLayer, SASConv, SASStep
from eegnn.nn.steps import of_layer
from eegnn.nn.streamed_walk import same_steps
from eegnn.nn.weights import Storage
from eegnn.typing import Level

#: Solvers of torchdiffeq with a fixed step; the others choose their own.
_FIXED_STEP = ("midpoint", "heun2", "rk4", "explicit_adams", "implicit_adams")
SOLVERS = ("euler", *_FIXED_STEP, "dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun")


class SASGNN(GraphModel):
    r"""Symmetric-Anti-Symmetric GNN, a deep backbone whose states stay stable and distinct.

    .. math::
        \mathbf{H}^0 = \mathrm{ReLU}(\mathbf{X}\mathbf{W} + \mathbf{b}), \qquad
        \mathbf{H}^{l+1} = \mathbf{H}^l + \tau\,\sigma_1\bigl(-\sigma_2(\mathbf{H}^l
        \mathbf{\Omega}_{as}) + f_e(\mathbf{E}) + \mathbf{\bar A}\mathbf{H}^l\mathbf{W}_s\bigr)

    and a linear decoder of :math:`\mathbf{H}^L`, after pooling for ``level="graph"``.

    Args:
        in_channels, hidden_channels, out_channels: see :class:`~eegnn.nn.model.GraphModel`.
        num_layers: number of steps :math:`L`.
        step_size: :math:`\tau`.
        level: ``"node"`` or ``"graph"``.
        shared: one :class:`~eegnn.SASConv` for all steps, or one for each.
        edge_term, activation, inner_activation, storage, weight_scale: see :class:`~eegnn.SASConv`.
        conv_dropout, conv_norm: ``dropout`` and ``norm`` of :class:`~eegnn.SASConv`.
        solver: ``"euler"``, or a solver of ``torchdiffeq`` for the same ODE over the time
            :math:`\tau L` (with :math:`\tau` as its step where its step is fixed).
        recompute: keep as many numbers for the backward pass as there are states, and nothing
            else that grows with depth: less memory in about the same time. With ``"euler"``.
        **kwargs: ``pool``, ``edge_dim``, ``dropout`` and ``decoder_layers`` of
            :class:`~eegnn.nn.model.GraphModel`.
    """

    uses_edges = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 10,
        step_size: float = 0.5,
        level: Level = "node",
        *,
        shared: bool = True,
        edge_term: EdgeTerm | None = None,
        activation: str = "relu_tanh",
        inner_activation: str = "relu",
        storage: Storage = "free",
        conv_dropout: float = 0.0,
        conv_norm: NormLayer | None = None,
        weight_scale: float = 1.0,
        solver: str = "euler",
        recompute: bool = False,
        **kwargs: Unpack[Shared],
    ) -> None:
        own = arguments_in(locals())
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, level, **kwargs)
        self.config |= own
        _check.boolean("shared", shared)
        _check.number("conv_dropout", conv_dropout, 0, 1)
        _check.choice("conv_norm", conv_norm, (None, *NORMS))
        self.step_size = _check.number("step_size", step_size, 0)
        self.solver = _check.choice("solver", solver, SOLVERS)
        self.recompute = _check.boolean("recompute", recompute)
        if step_size == 0:
            raise ValueError("step_size must be above 0, or nothing ever changes")
        if solver != "euler" and not shared:
            raise ValueError(f"solver={solver!r} needs shared=True: an ODE has one right-hand side")
        self.convs = Convs(
            1 if shared else num_layers,
            hidden_channels,
            self.edge_dim,
            edge_term,
            activation,
            inner_activation,
            storage,
            conv_dropout,
            conv_norm,
            weight_scale,
        )

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
        """Take all steps and decode; everyone leaves at the end."""
        limit = self.fixed_depth(max_layers, exit_threshold, sample)
        steps: list[SASStep] = [conv.bind(adj, edge_attr) for conv in self.convs]  # type: ignore[operator]
        if self.solver == "euler":
            h = self._walk(steps, h, adj, limit)
        else:
            h = self._integrate(steps[0], h, adj, limit * self.step_size)
        units = h if self.level == "node" else POOLS[self.pool](h, adj)
        return self.decoder(units), Exits.all_at(limit, self.num_layers, units, self.step_size)

    def program(
        self,
        adj: Adjacency,
        edge_attr: Tensor | None = None,
        *,
        max_layers: int | None = None,
        exit_threshold: float | None = None,
    ) -> Program:
        """The same steps as a program of the exit loop, in which nobody leaves."""
        if self.solver != "euler":
            raise ValueError(f"solver must be 'euler' to go step by step, got {self.solver!r}")
        return Program(
            steps=[conv.bind(adj, edge_attr) for conv in self.convs],  # type: ignore[operator]
            confidence=lambda h, adj: h.new_zeros(h.size(0), 2),
            temperature=lambda h, adj: h.new_ones(h.size(0)),
            readout=self.decoder,
            num_layers=self.num_layers,
            max_layers=self.fixed_depth(max_layers, exit_threshold, None),
            level=self.level,
            pool=self.pool,
            step_size=self.step_size,
            exit_threshold=1.0,
        )

    def _walk(self, steps: Sequence[SASStep], h: Tensor, adj: Adjacency, limit: int) -> Tensor:
        if self.recompute and can_stream(steps, h) and all(s.is_plain(h) for s in steps):
            return same_steps(steps, h, adj, self.step_size, limit)
        in_place = not torch.is_grad_enabled() and all(isinstance(s, SASStep) for s in steps)
        buffer = torch.empty_like(h) if in_place else None
        h = h.clone() if in_place else h
        for layer in range(limit):
            step = of_layer(steps, layer)
            if in_place:
                step.advance_(h, adj, self.step_size, buffer)
            else:
                h = advance(step, h, adj, self.step_size, self.recompute)
        return h

    def _integrate(self, step: SASStep, h: Tensor, adj: Adjacency, time: float) -> Tensor:
        try:
            from torchdiffeq import odeint
        except ImportError as error:
            raise ImportError(
                f"solver={self.solver!r} needs torchdiffeq: pip install 'eegnn[ode]'"
            ) from error
        fixed = {"step_size": self.step_size} if self.solver in _FIXED_STEP else None
        span = h.new_tensor([0.0, time])
        return odeint(lambda t, y: step(y, adj), h, span, method=self.solver, options=fixed)[-1]


class Convs(nn.ModuleList):
    """``count`` layers :class:`~eegnn.SASConv` of the same kind."""

    def __init__(self, count: int, *args: Any) -> None:
        super().__init__(SASConv(*args) for _ in range(count))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for conv in self:
            conv.reset_parameters()  # type: ignore[operator]
