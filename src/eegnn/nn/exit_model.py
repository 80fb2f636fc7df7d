"""A model with exits: encoder, exit loop over any step, decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Unpack

import torch
from torch import Tensor

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.early_exit import EarlyExit
from eegnn.nn.exits import Exits
from eegnn.nn.heads import HEADS, MLP, Confidence, Temperature
from eegnn.nn.model import GraphModel, Shared, arguments_in
from eegnn.nn.program import Program
from eegnn.typing import AfterExit, Level, Step

HeadName = Literal["mean", "mlp", "sas"]


class ExitArguments(Shared, total=False):
    """Arguments that every model with exits takes by name; :class:`ExitModel` explains them."""

    after_exit: AfterExit
    step_size: float | Literal["adaptive", "mean"]
    confidence: HeadName | None
    head_layers: int
    head_channels: int
    continue_bias: float | None
    nu0: float
    recompute: bool


class ExitModel(GraphModel):
    r"""Encoder → :class:`~eegnn.EarlyExit` over a step → decoder.

    Args:
        make_step: makes what :class:`~eegnn.EarlyExit` repeats; a subclass gives it.
        in_channels, hidden_channels, out_channels: see :class:`~eegnn.nn.model.GraphModel`.
        num_layers: the budget; the paper's :math:`L = 20` counts from 0 and is 21 steps.
        level: who leaves, ``"node"`` or ``"graph"``.
        after_exit, step_size, recompute: see :class:`~eegnn.EarlyExit`.
        confidence: :math:`f_c`: ``"mean"`` (MeanGNN, the default for nodes), ``"sas"`` (SAS-GNN)
            or ``"mlp"`` (on pooled states, the default for graphs). :math:`f_\nu` is one linear
            layer without bias.
        head_layers: depth :math:`L_f` of :math:`f_c`.
        head_channels: its width :math:`m_f` between the layers.
        continue_bias: initial preference for *continue*, see :class:`~eegnn.nn.heads.Confidence`.
        nu0: :math:`\nu_0`, the smallest inverse temperature.
        **kwargs: of :class:`~eegnn.nn.model.GraphModel`.
    """

    def __init__(
        self,
        make_step: Callable[[], Step],
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 21,
        level: Level = "node",
        *,
        after_exit: AfterExit = "evolve",
        step_size: float | Literal["adaptive", "mean"] = "adaptive",
        confidence: HeadName | None = None,
        head_layers: int = 1,
        head_channels: int = 32,
        continue_bias: float | None = 3.0,
        nu0: float = 0.1,
        recompute: bool = False,
        **kwargs: Unpack[Shared],
    ) -> None:
        own = arguments_in(locals())
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, level, **kwargs)
        self.config |= own
        _check.integer("head_layers", head_layers, at_least=1)
        _check.integer("head_channels", head_channels, at_least=1)
        if confidence is None:
            confidence = "mean" if level == "node" else "mlp"
        _check.choice("confidence", confidence, tuple(HEADS))
        f_c = HEADS[confidence](hidden_channels, head_channels, 2, head_layers)
        f_nu = MLP(hidden_channels, head_channels, 1, num_layers=1, bias=False)
        self.loop = EarlyExit(
            make_step(),
            Confidence(f_c, continue_bias),
            Temperature(f_nu, nu0, zero_init=continue_bias is not None),
            num_layers,
            level,
            pool=self.pool,
            after_exit=after_exit,
            step_size=step_size,
            recompute=recompute,
        )

    def program(
        self,
        adj: Adjacency,
        edge_attr: Tensor | None = None,
        *,
        max_layers: int | None = None,
        exit_threshold: float | None = None,
    ) -> Program:
        """What a forward pass on this graph runs."""
        return self.loop.program(
            adj, edge_attr, self.decoder, max_layers=max_layers, exit_threshold=exit_threshold
        )

    def explain_backend(
        self,
        x: Tensor | None,
        edge_index: Tensor | Adjacency,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        **knobs: Any,
    ) -> str:
        """Say which backend :meth:`predict` takes for these inputs, and why.

        Args:
            x, edge_index, edge_attr, batch, knobs: as in :meth:`predict`.
        """
        training = self.training
        self.eval()
        try:
            with torch.no_grad():
                x, adj = self._enter(x, edge_index, edge_attr, batch)
                return self.loop.explain_backend(self._encode(x), adj, edge_attr, **knobs)
        finally:
            self.train(training)

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
        """Run the exit loop and decode."""
        return self.loop(
            h,
            adj,
            edge_attr,
            self.decoder,
            max_layers=max_layers,
            exit_threshold=exit_threshold,
            sample=sample,
        )


def freeze_after_exit(model: GraphModel) -> None:
    """Let nodes that have left stay as they are, in a model that was trained with them evolving.

    Only active nodes are computed then, and the answers change a little, since those who stay read
    the states of those who left.

    Args:
        model: one with exits for nodes; it is changed.
    """
    if not isinstance(model, ExitModel) or model.level != "node":
        raise ValueError(
            f"freezing needs a model with exits for nodes, such as EEGNN, got "
            f"{type(model).__name__} with level={model.level!r}"
        )
    model.loop.after_exit = "freeze"
