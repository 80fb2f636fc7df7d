"""EEGNN: the exit loop over SAS-GNN (Algorithms 1 and 2)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from eegnn.nn.exit_model import ExitModel
from eegnn.nn.sas_conv import EdgeTerm, SASConv
from eegnn.nn.weights import Storage


@dataclass(eq=False, repr=False)
class EEGNN(ExitModel):
    r"""Early-Exit GNN: every node, or graph, decides for itself when it has seen enough.

    The states evolve as in :class:`~eegnn.SASGNN`, with a step size :math:`\tau` that two small
    networks choose for each unit and layer; a unit leaves, and answers, when they say so. See
    :class:`~eegnn.EarlyExit` for the loop.

    The defaults are the method of the paper with one addition: heads start with a preference for
    *continue* (``continue_bias``). The paper to the letter, with its heads and parameter counts, is
    ``EEGNN(..., head_layers=2, continue_bias=None, storage="paper")``.

    Args:
        in_channels, hidden_channels, out_channels: see :class:`~eegnn.nn.model.GraphModel`, also
            for ``pool``, ``edge_dim``, ``dropout`` and ``decoder_layers``.
        num_layers, level: see :class:`~eegnn.nn.exit_model.ExitModel`, also for the arguments of
            the loop and the heads.
        edge_term, storage, weight_scale: see :class:`~eegnn.SASConv`.
    """

    _: KW_ONLY
    edge_term: EdgeTerm | None = None
    storage: Storage = "free"
    weight_scale: float = 1.0

    uses_edges = True
    supports_edge_weight = True

    def make_step(self) -> SASConv:
        """Return one step for all layers."""
        return SASConv(
            self.hidden_channels,
            self.edge_dim,
            self.edge_term,
            storage=self.storage,
            weight_scale=self.weight_scale,
        )
