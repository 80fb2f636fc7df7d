"""A model with exits: encoder, exit loop over any step, decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Unpack

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.early_exit import EarlyExit
from eegnn.nn.exit_layer import AfterExit, Answer, Level, Objective
from eegnn.nn.exits import Exits
from eegnn.nn.heads import HEADS, MLP, Confidence, Temperature
from eegnn.nn.model import GraphModel, Shared, arguments_in
from eegnn.nn.steps import Step

HeadName = Literal["mean", "mlp", "sas"]


class ExitArguments(Shared, total=False):
    """Arguments that every model with exits takes by name; :class:`ExitModel` explains them."""

    objective: Objective | None
    after_exit: AfterExit
    answer: Answer | None
    step_size: float | Literal["adaptive", "mean"]
    hard: bool
    confidence: HeadName | None
    temperature: HeadName | Literal["linear"]
    head_layers: int
    head_channels: int
    head_norm: bool
    leak: float
    exit_threshold: float | None
    continue_bias: float
    head_scale: float
    nu0: float
    recompute: bool
    exit_bias: bool


class ExitModel(GraphModel):
    r"""Encoder → :class:`~eegnn.EarlyExit` over a step → decoder.

    Args:
        make_step: makes what :class:`~eegnn.EarlyExit` repeats; a subclass gives it.
        in_channels, hidden_channels, out_channels: see :class:`~eegnn.nn.model.GraphModel`.
        num_layers: the budget :math:`L`.
        level: who leaves, ``"node"`` or ``"graph"``.
        objective: see :class:`~eegnn.EarlyExit`. By default ``"averaged"`` for regression, where
            the mean of several exits says little about each of them, else ``"expected"``.
        after_exit, answer, step_size, hard, head_norm, leak, exit_threshold, recompute: see
            :class:`~eegnn.EarlyExit`.
        confidence: :math:`f_c`: ``"mean"`` (MeanGNN, the default for nodes), ``"sas"`` (SAS-GNN)
            or ``"mlp"`` (on pooled states, the default for graphs).
        temperature: :math:`f_\nu`: ``"linear"`` (one layer without bias) or one of the above.
        head_layers: depth :math:`L_f`.
        head_channels: width :math:`m_f` between the layers of a head.
        continue_bias, head_scale: the start of the heads, see
            :class:`~eegnn.nn.heads.Confidence`.
        nu0: :math:`\nu_0`, the smallest inverse temperature.
        exit_bias: add a learned :math:`\mathbf{b}_l` to what is decoded at layer :math:`l`: for
            tasks where *when* a unit can leave says *what* it should answer, such as distances.
        **kwargs: of :class:`~eegnn.nn.model.GraphModel`.
    """

    def __init__(
        self,
        make_step: Callable[[], Step],
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 20,
        level: Level = "node",
        *,
        objective: Objective | None = None,
        after_exit: AfterExit = "evolve",
        answer: Answer | None = None,
        step_size: float | Literal["adaptive", "mean"] = "adaptive",
        hard: bool = False,
        confidence: HeadName | None = None,
        temperature: HeadName | Literal["linear"] = "linear",
        head_layers: int = 1,
        head_channels: int = 32,
        head_norm: bool = False,
        leak: float = 0.0,
        exit_threshold: float | None = None,
        continue_bias: float = 3.0,
        head_scale: float = 0.1,
        nu0: float = 0.1,
        recompute: bool = False,
        exit_bias: bool = False,
        **kwargs: Unpack[Shared],
    ) -> None:
        own = arguments_in(locals())
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, level, **kwargs)
        self.config |= own
        _check.integer("head_layers", head_layers, at_least=1)
        _check.integer("head_channels", head_channels, at_least=1)
        _check.number("head_scale", head_scale, 0)
        if confidence is None:
            confidence = "mean" if level == "node" else "mlp"
        if objective is None:
            objective = "averaged" if self.task == "regression" else "expected"
        shape = (hidden_channels, head_channels)
        self.loop = EarlyExit(
            make_step(),
            Confidence(
                _head("confidence", confidence, shape, 2, head_layers), continue_bias, head_scale
            ),
            Temperature(_head("temperature", temperature, shape, 1, head_layers), nu0, head_scale),
            num_layers,
            level,
            pool=self.pool,
            objective=objective,
            after_exit=after_exit,
            answer=answer,
            step_size=step_size,
            hard=hard,
            head_norm=head_norm,
            leak=leak,
            exit_threshold=exit_threshold,
            task=self.task,
            recompute=recompute,
        )
        self.exit_bias = (
            ExitBias(num_layers, out_channels) if _check.boolean("exit_bias", exit_bias) else None
        )

    @property
    def averages_loss(self) -> bool:
        """Whether ``objective="averaged"``."""
        return self.loop.objective == "averaged"

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
            None if self.exit_bias is None else self.exit_bias.bias,
            max_layers=max_layers,
            exit_threshold=exit_threshold,
            sample=sample,
        )


class ExitBias(nn.Module):
    r"""A bias :math:`\mathbf{b}_l` for what is decoded at each layer, at first 0.

    Args:
        num_layers: the budget :math:`L`.
        out_channels: number of outputs :math:`C`.
    """

    def __init__(self, num_layers: int, out_channels: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(num_layers + 1, out_channels))

    def reset_parameters(self) -> None:
        """Back to 0."""
        nn.init.zeros_(self.bias)


def _head(
    argument: str, name: str, shape: tuple[int, int], out_channels: int, num_layers: int
) -> nn.Module:
    if name == "linear" and argument == "temperature":
        return MLP(*shape, out_channels, num_layers=1, bias=False)
    _check.choice(argument, name, (*HEADS, "linear") if argument == "temperature" else (*HEADS,))
    return HEADS[name](*shape, out_channels, num_layers)


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
