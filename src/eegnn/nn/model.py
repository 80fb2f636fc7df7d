"""What all models share: arguments, encoder, pooling, decoder, `predict`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from eegnn import _check
from eegnn._arguments import check_arguments
from eegnn.graph import Adjacency
from eegnn.nn.encoders import Decoder, Encoder, PairDecoder
from eegnn.nn.evaluation_mode import evaluation_mode
from eegnn.nn.exits import Exits
from eegnn.nn.inputs import GraphInputs, Options, checked_inputs
from eegnn.nn.nodes import predict_nodes
from eegnn.nn.pairs import PAIR_POOLS
from eegnn.nn.pooling import POOLS, pooled_channels
from eegnn.nn.program import states_of_units
from eegnn.source import GraphSource
from eegnn.typing import Level


@dataclass(eq=False, repr=False)
class GraphModel(nn.Module):
    r"""Encoder → states → (pool) → decoder.

    A subclass defines how states evolve, in :meth:`evolve`. Models are dataclasses: the arguments
    of a constructor are the fields of its class and of the classes above it, and are checked by
    their types. A subclass declares and documents only the arguments that it adds, and makes its
    modules in ``__post_init__``.
    ``config`` holds all arguments, from which :func:`eegnn.load` builds the model again.

    Args:
        in_channels: number of node features; 0 for none.
        hidden_channels: width :math:`m'`.
        out_channels: number of outputs.
        num_layers: depth :math:`L`.
        level: what is predicted, ``"node"``, ``"graph"``, or ``"edge"`` for pairs of nodes.
        pool: what is decoded. With ``level="graph"`` ``"mean"``, ``"add"``, ``"max"``, or
            ``"concat"`` for add ‖ max ‖ mean, which the ECHO benchmark uses, and a batch norm
            before the decoder. With ``level="edge"`` ``"dot"``, ``"hadamard"`` or ``"concat"``,
            see :class:`~eegnn.nn.encoders.PairDecoder`.
        edge_dim: number of edge features, or ``None``.
        dropout: after the encoder and before the decoder, outside the dynamics.
        decoder_layers: depth of the decoder.
    """

    in_channels: int = field(metadata={"at_least": 0})
    hidden_channels: int
    out_channels: int
    num_layers: int = 10
    level: Level = "node"
    _: KW_ONLY
    pool: str = "mean"
    edge_dim: int | None = None
    dropout: float = 0.0
    decoder_layers: int = 1

    levels: ClassVar[tuple[Level, ...]] = ("node", "graph", "edge")  #: what it can predict
    uses_edges: ClassVar[bool] = False  #: whether it takes edge features
    supports_edge_weight = False  #: whether it takes weights of edges
    supports_directed = False  #: whether it takes a directed :class:`~eegnn.Adjacency`
    decoder_bias: ClassVar[bool | None] = None  #: see :class:`~eegnn.nn.encoders.Decoder`
    cost_of_nodes: ClassVar[bool] = False  #: whether ``exits.cost`` averages nodes, not units
    #: Submodules that were saved under another name before: that name → the name now.
    former_names: ClassVar[dict[str, str]] = {}

    def __post_init__(self) -> None:
        super().__init__()
        self.config = {each.name: getattr(self, each.name) for each in fields(self)}
        check_arguments(self)
        _check.choice("level", self.level, self.levels)
        pools, where = (PAIR_POOLS, " with level='edge'") if self.level == "edge" else (POOLS, "")
        _check.choice(f"pool{where}", self.pool, tuple(pools))
        if self.edge_dim is not None and not self.uses_edges:
            raise ValueError(f"{type(self).__name__} takes no edge features: edge_dim must be None")
        self.encoder = Encoder(self.in_channels, self.hidden_channels, self.dropout)
        self.decoder = self.make_decoder(self.hidden_channels)

    def make_decoder(self, channels: int) -> Decoder:
        """Return a new decoder of states of this width."""
        sizes = (self.out_channels, self.decoder_layers, self.dropout)
        if self.level == "edge":
            return PairDecoder(self.pool, channels, *sizes)
        concat = self.level == "graph" and self.pool == "concat"
        width = pooled_channels(self.pool, channels) if concat else channels
        # With a batch norm, since sums are larger than means by the number of nodes.
        return Decoder(width, *sizes, self.decoder_bias, norm=concat)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return all arguments of the constructor with their defaults."""
        return {each.name: each.default for each in fields(cls)}

    def before_epoch(self, epoch: int) -> None:
        """Called by the training loop before each epoch, counted from 1; here it does nothing."""

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in self.children():
            reset(module)

    @abstractmethod
    def evolve(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None, **options: Unpack[Options]
    ) -> tuple[Tensor, Exits]:
        """Let the initial states ``h`` ``[n, m']`` evolve, and decode them.

        ``edge_attr`` and the options are those of :meth:`predict`, which were checked.

        Returns:
            Predictions ``[U, out_channels]`` and :class:`~eegnn.Exits`.
        """

    def forward(
        self,
        x: Tensor | None,
        edge_index: Tensor | Adjacency,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
        edge_label_index: Tensor | None = None,
        return_exits: bool = False,
    ) -> Any:
        """Predict.

        Args:
            x: node features ``[n, in_channels]``, dense or sparse CSR; ``None`` for a model with
                ``in_channels=0``.
            edge_index: ``[2, E]`` as in PyG, a sparse ``adj_t``, or an :class:`~eegnn.Adjacency`.
            edge_attr: edge features ``[E, edge_dim]``, a row for each column of ``edge_index``.
            batch: the graph of each node ``[n]``, as PyG's loaders make it.
            edge_weight: ``[E]``, see :meth:`Adjacency.weighted <eegnn.Adjacency.weighted>`.
            batch_size: the number of graphs, where the last ones may have no nodes.
            edge_label_index: ``[2, P]``, the pairs of nodes to predict for with ``level="edge"``,
                as PyG's ``RandomLinkSplit`` names them.
            return_exits: also return :class:`~eegnn.Exits`.

        Returns:
            ``[n, out_channels]``, ``[graphs, out_channels]`` with ``level="graph"``, or
            ``[P, out_channels]`` with ``level="edge"``.
        """
        x, adj = self._enter(
            x, edge_index, edge_attr, batch, edge_weight, batch_size, edge_label_index
        )
        out, exits = self.evolve(self._encode(x), adj, edge_attr)
        return (out, exits) if return_exits else out

    def predict(
        self,
        x: Tensor | None,
        edge_index: Tensor | Adjacency | GraphSource,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
        edge_label_index: Tensor | None = None,
        nodes: Tensor | Sequence[int] | None = None,
        max_nodes: int | None = None,
        max_layers: int | None = None,
        exit_threshold: float | None = None,
        sample: bool | None = None,
    ) -> tuple[Tensor, Exits]:
        """Predict in evaluation mode without gradients, whatever mode the model is in.

        Args:
            x, edge_index, edge_attr, batch, edge_weight, batch_size, edge_label_index: as in
                :meth:`forward`; or ``edge_index`` is a :class:`~eegnn.source.GraphSource`, and
                ``x`` is ``None``.
            nodes: for ``level="node"``, the nodes whose predictions and exits are wanted, ``[U]``,
                perhaps repeated. They are those of the whole graph; where
                :func:`eegnn.engine.on_demand.run` can, only what they depend on is read.
            max_nodes: with ``nodes``, how many nodes may be read, see ``exits.truncated``.
            max_layers, exit_threshold, sample: see :class:`~eegnn.nn.inputs.Options`.
        """
        options = Options(max_layers=max_layers, exit_threshold=exit_threshold, sample=sample)
        given = (edge_attr, batch, edge_weight, batch_size, edge_label_index)
        with evaluation_mode(self), torch.no_grad():
            if nodes is not None:
                return predict_nodes(self, x, edge_index, given, nodes, max_nodes, **options)
            if max_nodes is not None:
                raise ValueError("max_nodes goes with nodes, those whose answers are wanted")
            if isinstance(edge_index, GraphSource):
                x, edge_index = edge_index.whole()
            x, adj = self._enter(x, edge_index, *given)
            return self.evolve(self._encode(x), adj, edge_attr, **options)

    def embed(
        self,
        x: Tensor | None,
        edge_index: Tensor | Adjacency,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        **inputs: Unpack[GraphInputs],
    ) -> Tensor:
        """Return the states at the exit, which :meth:`forward` decodes; gradients flow as there.

        Args:
            x, edge_index, edge_attr, batch, inputs: as in :meth:`forward`.

        Returns:
            ``[n, m']``; pooled, ``[graphs, m']``, with ``level="graph"``; of both ends,
            ``[P, 2m']``, with ``level="edge"``.
        """
        found: list[Tensor] = []
        hook = self.decoder.register_forward_pre_hook(lambda _, given: found.append(given[0]))
        try:
            self(x, edge_index, edge_attr, batch, **inputs)
        finally:
            hook.remove()
        if not found:
            raise ValueError(
                f"{type(self).__name__} has no states to return: its decoder is not its last part"
            )
        return found[0]

    def pool_units(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return what is decoded, see :func:`~eegnn.nn.program.states_of_units`."""
        return states_of_units(self.level, self.pool, h, adj)

    _enter = checked_inputs

    def _encode(self, x: Tensor) -> Tensor:
        # Under autocast the products are in low precision; the states, which are sums, are not.
        return self.encoder(x).to(self.encoder.bias.dtype)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        for former, name in self.former_names.items():
            start = f"{prefix}{former}."
            for key in [key for key in state_dict if key.startswith(start)]:
                state_dict[f"{prefix}{name}.{key.removeprefix(start)}"] = state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.hidden_channels}, "
            f"{self.out_channels}, num_layers={self.num_layers}, level={self.level!r})"
        )
