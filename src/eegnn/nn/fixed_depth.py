"""Models without exits."""

from __future__ import annotations

from abc import abstractmethod
from typing import Unpack

from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel, PredictOptions


class FixedDepthModel(GraphModel):
    """A model without exits: every unit goes through all layers.

    A subclass says what the layers are, in :meth:`run_layers`.
    """

    step_size = 1.0  #: what a layer adds to ``exits.time``

    @abstractmethod
    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Return the states of the nodes after the first ``num_layers`` layers.

        Args:
            h: initial states ``[n, m']``.
            adj: the graph.
            edge_attr: edge features.
            num_layers: how many layers to run, at most as many as the model has.
        """

    def evolve(
        self,
        h: Tensor,
        adj: Adjacency,
        edge_attr: Tensor | None = None,
        **options: Unpack[PredictOptions],
    ) -> tuple[Tensor, Exits]:
        """Run all layers and decode; every unit leaves at the end."""
        limit = self.fixed_depth(**options)
        units = self.pool_units(self.run_layers(h, adj, edge_attr, limit), adj)
        return self.decoder(units), Exits.all_at(limit, self.num_layers, units, self.step_size)
