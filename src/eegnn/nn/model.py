"""What all models share: arguments, checks of the inputs, encoder, pooling, decoder, `predict`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, TypedDict, Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from eegnn import _check
from eegnn._graph_cache import adjacency_of
from eegnn.graph import Adjacency
from eegnn.nn.edge_mask import with_mask_of
from eegnn.nn.encoders import Decoder, Encoder, PairDecoder
from eegnn.nn.evaluation_mode import evaluation_mode
from eegnn.nn.exits import Exits
from eegnn.nn.inputs import check_devices, check_edge_attr, check_kind, with_pairs_for
from eegnn.nn.nodes import predict_nodes
from eegnn.nn.pairs import PAIR_POOLS
from eegnn.nn.pooling import POOLS, pooled_channels
from eegnn.nn.program import states_of_units
from eegnn.source import GraphSource
from eegnn.typing import Level

#: The largest integers that arguments may be, by how their names end. A file of a stranger may name
#: any, and what is refused here is refused before anything is built.
MOST = {"layers": 1000, "channels": 2**20, "dim": 2**20, "": 10_000}


class Options(TypedDict, total=False):
    """What can be changed in a prediction of a trained model."""

    #: Stop every unit after so many steps.
    max_layers: int | None
    #: A unit leaves once its probability of having left reaches this value: lower is earlier.
    #: ``None``: the paper's rule.
    exit_threshold: float | None
    #: Draw the Gumbel noise of training.
    sample: bool | None


@dataclass(eq=False, repr=False)
class GraphModel(nn.Module):
    r"""Encoder → states → (pool) → decoder.

    A subclass says how states evolve, in :meth:`evolve`. Models are dataclasses: the arguments of a
    constructor are the fields of its class and of the classes above it. A subclass declares and
    documents only the arguments that it adds, and makes its modules in ``__post_init__``.
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

    in_channels: int
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
        self.config = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in self.config.items():  # before anything is built
            most = next(most for ending, most in MOST.items() if name.endswith(ending))
            if isinstance(value, int) and value > most:
                raise ValueError(f"{name} must be at most {most}, got {value}")
        _check.integer("in_channels", self.in_channels, at_least=0)
        for name in ("hidden_channels", "out_channels", "num_layers", "decoder_layers"):
            _check.integer(name, getattr(self, name), at_least=1)
        _check.choice("level", self.level, self.levels)
        if self.level == "edge":
            _check.choice("pool with level='edge'", self.pool, tuple(PAIR_POOLS))
        else:
            _check.choice("pool", self.pool, tuple(POOLS))
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
        return Decoder(
            pooled_channels(self.pool, channels) if concat else channels,
            *sizes,
            self.decoder_bias,
            norm=concat,  # sums are larger than means by the number of nodes
        )

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return all arguments of the constructor with their defaults."""
        return {field.name: field.default for field in fields(cls)}

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

        Args:
            h: initial states.
            adj: the graph.
            edge_attr: edge features.
            **options: see :meth:`predict`.

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
        **options: Unpack[Options],
    ) -> tuple[Tensor, Exits]:
        """Predict in evaluation mode without gradients, whatever mode the model is in.

        Args:
            x, edge_index, edge_attr, batch, edge_weight, batch_size, edge_label_index: as in
                :meth:`forward`; or ``edge_index`` is a :class:`~eegnn.source.GraphSource`, and
                ``x`` is ``None``.
            nodes: for ``level="node"``, whose predictions and exits are wanted, ``[U]``, perhaps
                repeated. They are those of the whole graph; where
                :func:`eegnn.engine.on_demand.run` can, only what they depend on is read.
            max_nodes: with ``nodes``, how many nodes may be read, see ``exits.truncated``.
            **options: see :class:`Options`.
        """
        with evaluation_mode(self), torch.no_grad():
            given = (edge_attr, batch, edge_weight, batch_size)
            if nodes is not None:
                return predict_nodes(self, x, edge_index, given, nodes, max_nodes, **options)
            if max_nodes is not None:
                raise ValueError("max_nodes goes with nodes, those whose answers are wanted")
            if isinstance(edge_index, GraphSource):
                x, edge_index = edge_index.whole()
            x, adj = self._enter(x, edge_index, *given, edge_label_index)
            return self.evolve(self._encode(x), adj, edge_attr, **options)

    def embed(
        self,
        x: Tensor | None,
        edge_index: Tensor | Adjacency,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
        edge_label_index: Tensor | None = None,
    ) -> Tensor:
        """Return the states at the exit, which :meth:`forward` decodes; gradients flow as there.

        Args:
            x, edge_index, edge_attr, batch, edge_weight, batch_size, edge_label_index: as in
                :meth:`forward`.

        Returns:
            ``[n, m']``; pooled, ``[graphs, m']``, with ``level="graph"``; of both ends,
            ``[P, 2m']``, with ``level="edge"``.
        """
        found: list[Tensor] = []
        hook = self.decoder.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0]))
        try:
            self(
                x,
                edge_index,
                edge_attr,
                batch,
                edge_weight=edge_weight,
                batch_size=batch_size,
                edge_label_index=edge_label_index,
            )
        finally:
            hook.remove()
        if not found:
            raise ValueError(
                f"{type(self).__name__} has no states to return: its decoder is not its last part"
            )
        return found[0]

    def fixed_depth(
        self,
        max_layers: int | None = None,
        exit_threshold: float | None = None,
        sample: bool | None = None,
    ) -> int:
        """Return the number of layers to run, for a model without exits."""
        if exit_threshold is not None or sample:
            raise ValueError("exit_threshold and sample need a model with exits, such as EEGNN")
        if max_layers is None:
            return self.num_layers
        return min(_check.integer("max_layers", max_layers, at_least=1), self.num_layers)

    def pool_units(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return what is decoded, see :func:`~eegnn.nn.program.states_of_units`."""
        return states_of_units(self.level, self.pool, h, adj)

    def _encode(self, x: Tensor) -> Tensor:
        # Under autocast the products are in low precision; the states, which are sums, are not.
        return self.encoder(x).to(self.encoder.bias.dtype)

    def _enter(
        self,
        x: Tensor | None,
        edge_index: Tensor | Adjacency,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
        edge_label_index: Tensor | None = None,
    ) -> tuple[Tensor, Adjacency]:
        """Check the inputs: the only place where that is done."""
        weight = self.encoder.bias
        inputs = (x, edge_index, edge_attr, batch, edge_weight, edge_label_index)
        check_devices(weight.device, *inputs)
        num_nodes = x.size(0) if isinstance(x, Tensor) and x.dim() == 2 else None
        adj = adjacency_of(edge_index, num_nodes, batch, batch_size, edge_weight)
        if x is None:
            if self.in_channels:
                raise ValueError(f"x must have shape [N, {self.in_channels}], got None")
            x = weight.new_zeros(adj.num_nodes, 0)
        _check.features("x", x, adj.num_nodes, self.in_channels, weight.dtype, sparse=True)
        check_kind(self, adj)
        check_edge_attr(edge_attr, adj, self.edge_dim, weight.dtype)
        return x, with_mask_of(self, with_pairs_for(self.level, adj, edge_label_index))

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
