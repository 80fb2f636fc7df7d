"""EEGNN: the exit loop over SAS-GNN (Algorithms 1 and 2)."""

from __future__ import annotations

from typing import Unpack

from eegnn import _check
from eegnn.nn.exit_layer import Level
from eegnn.nn.exit_model import ExitArguments, ExitModel
from eegnn.nn.model import arguments_in
from eegnn.nn.sas import NORMS, EdgeTerm, NormLayer, SASConv
from eegnn.nn.weights import Storage


class EEGNN(ExitModel):
    r"""Early-Exit GNN: every node, or graph, decides for itself when it has seen enough.

    The states evolve as in :class:`~eegnn.SASGNN`, with a step size :math:`\tau` that two small
    networks choose for each unit and layer; a unit leaves, and answers, when they say so. See
    :class:`~eegnn.EarlyExit` for the loop and the objectives.

    In training mode, unless sampled, the output is that of the mixture over exits:
    log-probabilities for classification (valid logits for any cross-entropy), log-odds for
    multi-label tasks, the mean for regression. For regression minimise
    :meth:`Exits.average_loss <eegnn.Exits.average_loss>` instead of a loss of that mean, which
    says little about the exit that evaluation takes. In evaluation mode the output is what each
    unit answers at its exit: the mixture of the exits up to it, or, with ``answer="state"`` and
    where exits are sampled, the prediction from its state alone.

    The defaults are those that did not collapse where they were tried (ten seeds of a small board,
    in the tests); scale features that are large. The paper to the letter is
    ``objective="sampled", head_layers=2, storage="paper", continue_bias=0, head_scale=1``.

    Args:
        in_channels, hidden_channels, out_channels: see :class:`~eegnn.nn.model.GraphModel`.
        num_layers: the budget :math:`L`.
        level: who leaves, ``"node"`` or ``"graph"``.
        edge_term, activation, inner_activation, storage, weight_scale: see :class:`~eegnn.SASConv`.
        conv_dropout, conv_norm: ``dropout`` and ``norm`` of :class:`~eegnn.SASConv`.
        **kwargs: objective and heads, see :class:`~eegnn.nn.exit_model.ExitModel`; ``pool``,
            ``task``, ``edge_dim``, ``dropout``, see :class:`~eegnn.nn.model.GraphModel`.
    """

    uses_edges = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 20,
        level: Level = "node",
        *,
        edge_term: EdgeTerm | None = None,
        activation: str = "relu_tanh",
        inner_activation: str = "relu",
        storage: Storage = "free",
        conv_dropout: float = 0.0,
        conv_norm: NormLayer | None = None,
        weight_scale: float = 1.0,
        **kwargs: Unpack[ExitArguments],
    ) -> None:
        own = arguments_in(locals())
        _check.number("conv_dropout", conv_dropout, 0, 1)
        _check.choice("conv_norm", conv_norm, (None, *NORMS))

        def make_step() -> SASConv:
            return SASConv(
                hidden_channels,
                kwargs.get("edge_dim"),
                edge_term,
                activation,
                inner_activation,
                storage,
                conv_dropout,
                conv_norm,
                weight_scale,
            )

        super().__init__(
            make_step, in_channels, hidden_channels, out_channels, num_layers, level, **kwargs
        )
        self.config |= own
