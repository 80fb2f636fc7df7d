"""Models without exits: every unit takes all steps."""

from __future__ import annotations

from abc import abstractmethod
from typing import Unpack

from torch import Tensor

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.exits import Exits
from eegnn.nn.inputs import Options
from eegnn.nn.model import GraphModel


class FixedDepthModel(GraphModel):
    """A model without exits: every unit goes through all layers.

    A subclass defines the layers, in :meth:`run_layers`.
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
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None, **options: Unpack[Options]
    ) -> tuple[Tensor, Exits]:
        """Run all layers and decode; every unit leaves at the end."""
        limit = fixed_depth(self, **options)
        units = self.pool_units(self.run_layers(h, adj, edge_attr, limit), adj)
        return self.decoder(units), Exits.all_at(limit, self.num_layers, units, self.step_size)


def fixed_depth(
    model: GraphModel,
    max_layers: int | None = None,
    exit_threshold: float | None = None,
    sample: bool | None = None,
) -> int:
    """Return the number of layers to run in a model without exits.

    Args:
        model: the model.
        max_layers, exit_threshold, sample: see :class:`~eegnn.nn.inputs.Options`.
    """
    if exit_threshold is not None or sample:
        raise ValueError("exit_threshold and sample need a model with exits, such as EEGNN")
    if max_layers is None:
        return model.num_layers
    return min(_check.integer("max_layers", max_layers, at_least=1), model.num_layers)
