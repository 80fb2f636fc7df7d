"""A model with exits: encoder, exit loop over any step, decoder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, Unpack

import torch
from torch import Tensor

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.early_exit import EarlyExit
from eegnn.nn.evaluation_mode import evaluation_mode
from eegnn.nn.exits import Exits
from eegnn.nn.heads import HEADS, MLP, Confidence, Temperature
from eegnn.nn.inputs import GraphInputs, Options
from eegnn.nn.model import GraphModel
from eegnn.nn.pairs import pair_channels
from eegnn.nn.pooling import pooled_channels
from eegnn.nn.program import Program, explain
from eegnn.typing import AfterExit, Step


@dataclass(eq=False, repr=False)
class ExitModel(GraphModel):
    r"""Encoder → :class:`~eegnn.EarlyExit` over a step → decoder.

    Args:
        num_layers: the budget; the paper's :math:`L = 20` counts from 0 and is 21 steps.
        level: what leaves, ``"node"``, ``"graph"`` or ``"edge"``.
        after_exit, step_size, recompute: see :class:`~eegnn.EarlyExit`.
        confidence: :math:`f_c`: ``"mean"`` (MeanGNN, the default for nodes), ``"sas"`` (SAS-GNN)
            or ``"mlp"`` (on pooled states, the default for graphs, and the only one for pairs, on
            :func:`~eegnn.nn.pairs.sum_product_difference`). :math:`f_\nu` is one linear layer
            without bias.
        head_layers: depth :math:`L_f` of :math:`f_c`.
        head_channels: its width :math:`m_f` between the layers.
        continue_bias: initial preference for *continue*, see :class:`~eegnn.nn.heads.Confidence`.
        nu0: :math:`\nu_0`, the smallest inverse temperature.
    """

    num_layers: int = 21
    _: KW_ONLY
    after_exit: AfterExit = "evolve"
    step_size: float | Literal["adaptive", "mean"] = "adaptive"
    confidence: Literal["mean", "mlp", "sas"] | None = None
    head_layers: int = 1
    head_channels: int = 32
    continue_bias: float | None = 3.0
    nu0: float = 0.1
    recompute: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        width = self.hidden_channels
        pooled = width
        if self.level != "node":
            graphs = self.level == "graph"
            pooled = pooled_channels(self.pool, width) if graphs else pair_channels("concat", width)
        kind = self.confidence or ("mean" if self.level == "node" else "mlp")
        _check.choice("confidence", kind, tuple(HEADS))
        seen = width if HEADS[kind].uses_graph else pooled
        f_c = HEADS[kind](seen, self.head_channels, 2, self.head_layers)
        f_nu = MLP(pooled, self.head_channels, 1, num_layers=1, bias=False)
        self.loop = EarlyExit(
            self.make_step(),
            Confidence(f_c, self.continue_bias),
            Temperature(f_nu, self.nu0, zero_init=self.continue_bias is not None),
            self.num_layers,
            self.level,
            pool=self.pool,
            after_exit=self.after_exit,
            step_size=self.step_size,
            recompute=self.recompute,
        )

    @abstractmethod
    def make_step(self) -> Step | Sequence[Step]:
        """Return what :class:`~eegnn.EarlyExit` repeats, or a list with a step for each layer."""

    def program(
        self, adj: Adjacency, edge_attr: Tensor | None = None, **options: Unpack[Options]
    ) -> Program:
        """Return what a forward pass on this graph runs."""
        return self.loop.program(adj, edge_attr, self.decoder, **options)

    def evolve(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None, **options: Unpack[Options]
    ) -> tuple[Tensor, Exits]:
        """Run the exit loop and decode."""
        return self.loop(h, adj, edge_attr, readout=self.decoder, **options)

    def explain_backend(
        self,
        x: Tensor | None,
        edge_index: Tensor | Adjacency,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        max_layers: int | None = None,
        exit_threshold: float | None = None,
        sample: bool | None = None,
        **inputs: Unpack[GraphInputs],
    ) -> str:
        """Return which backend :meth:`predict` takes for these inputs, and why.

        The arguments are those of :meth:`predict`.
        """
        options = Options(max_layers=max_layers, exit_threshold=exit_threshold, sample=sample)
        with evaluation_mode(self), torch.no_grad():
            x, adj = self._enter(x, edge_index, edge_attr, batch, **inputs)
            return explain(self.program(adj, edge_attr, **options), self._encode(x))


def freeze_after_exit(model: GraphModel) -> None:
    """Let nodes that have left stay as they are, in a model that was trained with them evolving.

    Only active nodes are computed then, and the answers change a little, since active nodes read
    the states of nodes that have left.

    Args:
        model: one with exits for nodes; it is changed.
    """
    if not isinstance(model, ExitModel) or model.level != "node":
        raise ValueError(
            f"freezing needs a model with exits for nodes, such as EEGNN, got "
            f"{type(model).__name__} with level={model.level!r}"
        )
    model.loop.after_exit = "freeze"
