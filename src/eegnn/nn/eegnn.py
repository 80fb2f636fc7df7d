"""EEGNN: the exit loop over SAS-GNN (Algorithms 1 and 2)."""

from __future__ import annotations

from typing import Unpack

from eegnn.nn.exit_model import ExitArguments, ExitModel
from eegnn.nn.model import arguments_in
from eegnn.nn.sas_conv import EdgeTerm, SASConv
from eegnn.nn.weights import Storage
from eegnn.typing import Level


class EEGNN(ExitModel):
    r"""Early-Exit GNN: every node, or graph, decides for itself when it has seen enough.

    The states evolve as in :class:`~eegnn.SASGNN`, with a step size :math:`\tau` that two small
    networks choose for each unit and layer; a unit leaves, and answers, when they say so. See
    :class:`~eegnn.EarlyExit` for the loop.

    The defaults are the method of the paper with one addition: heads start with a preference for
    *continue* (``continue_bias``). The paper to the letter, with its heads and parameter counts, is
    ``EEGNN(..., head_layers=2, continue_bias=None, storage="paper")``.

    Args:
        in_channels, hidden_channels, out_channels: see :class:`~eegnn.nn.model.GraphModel`.
        num_layers: the budget; the paper's :math:`L = 20` counts from 0 and is 21 steps.
        level: who leaves, ``"node"`` or ``"graph"``.
        edge_term, activation, storage: see :class:`~eegnn.SASConv`.
        **kwargs: loop and heads, see :class:`~eegnn.nn.exit_model.ExitModel`; ``pool``,
            ``edge_dim``, ``dropout``, see :class:`~eegnn.nn.model.GraphModel`.
    """

    uses_edges = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 21,
        level: Level = "node",
        *,
        edge_term: EdgeTerm | None = None,
        activation: str = "relu_tanh",
        storage: Storage = "free",
        **kwargs: Unpack[ExitArguments],
    ) -> None:
        own = arguments_in(locals())

        def make_step() -> SASConv:
            return SASConv(
                hidden_channels,
                kwargs.get("edge_dim"),
                edge_term,
                activation,
                storage=storage,
            )

        super().__init__(
            make_step, in_channels, hidden_channels, out_channels, num_layers, level, **kwargs
        )
        self.config |= own
