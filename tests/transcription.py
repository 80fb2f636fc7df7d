"""Algorithms 1 and 2 of the paper, transcribed line by line.

Plain NumPy in float64, with Python loops over nodes and edges. Nothing of the library runs here;
:func:`read` takes the numbers of a model out of its parameters, and that is all it knows of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]
Edge = tuple[int, int]
Layer = tuple[Array, "Array | None"]  # weight [out, in] and bias [out]


@dataclass(frozen=True)
class Graph:
    """Undirected edges, each named once, and the graph of every node."""

    edges: list[Edge]
    num_nodes: int
    graph_of: list[int] = field(default_factory=list)

    @property
    def num_graphs(self) -> int:
        return max(self.graph_of) + 1 if self.graph_of else 1

    def members(self, graph: int) -> list[int]:
        if not self.graph_of:
            return list(range(self.num_nodes))
        return [i for i in range(self.num_nodes) if self.graph_of[i] == graph]

    def neighbours(self, i: int) -> list[int]:
        return [v for u, v in self.edges if u == i] + [u for u, v in self.edges if v == i]

    def edge_index(self) -> Tensor:
        """Both directions of every edge, ``[2, 2 |E|]``, as the library wants it."""
        both = self.edges + [(v, u) for u, v in self.edges]
        return torch.tensor(both, dtype=torch.int64).reshape(-1, 2).T.contiguous()

    def batch(self) -> Tensor | None:
        return torch.tensor(self.graph_of) if self.graph_of else None


@dataclass(frozen=True)
class Weights:
    """The numbers of an EEGNN; ``confidence`` is f_c, from states and graph to C."""

    omega: Array
    weight: Array
    encoder: Layer
    decoder: list[Layer]
    confidence: Callable[[Array, Graph], Array]
    confidence_reads_neighbours: bool
    temperature: list[Layer]
    nu0: float
    edge: Array | None = None  # W_e, [d, m']
    edge_term: str = "none"
    norm: list[Array] | None = None  # γ, β, running mean and variance, of what is decoded


@dataclass(frozen=True)
class Outcome:
    """What the algorithm returns, and ``states``, H⁰, H¹, … of all nodes."""

    output: Array
    layer: list[int]
    time: Array
    tau: Array
    cost: float
    states: list[Array]


def run(
    w: Weights,
    graph: Graph,
    x: Array,
    *,
    num_layers: int,
    level: str = "node",
    pool: str = "mean",
    after_exit: str = "evolve",
    step_size: float | str = "adaptive",
    training: bool = False,
    noise: Array | None = None,
    max_layers: int | None = None,
    exit_threshold: float | None = None,
    edge_features: Array | None = None,
) -> Outcome:
    """Algorithm 1 (``level="node"``) and Algorithm 2 (``"graph"``).

    ``noise[l][u]`` is g(0) - g(1) of unit u at layer l; ``None`` for none.
    """
    last = min(max_layers or num_layers, num_layers) - 1  # the paper's L
    h = np.array([np.maximum(_affine(row, w.encoder), 0.0) for row in x])
    units, width = _pooled(h, graph, level, pool).shape
    unit_of = [i if level == "node" else _graph_of(graph, i) for i in range(len(h))]
    z, exit_list = np.zeros((units, width)), dict[int, int]()
    taus, time, states = [], np.zeros(units), [h]
    reached, expected_steps = np.ones(units), np.zeros(units)

    for layer in range(last + 1):  # the paper's l
        seen = _pooled(h, graph, level, pool)
        logits = _head(w, h, seen, graph, level)  # C
        # 1/ν = softplus(f_ν(H)) + ν₀
        inverse = np.array([np.logaddexp(0.0, _mlp(row, w.temperature)[0]) for row in seen]) + w.nu0
        drawn = logits.copy()
        if noise is not None:
            drawn[:, 0] += noise[layer]
        c = np.array([_softmax(drawn[u] * inverse[u]) for u in range(units)])
        tau = _step_sizes(c[:, 0], step_size, graph)
        for u in exit_list:
            if level == "graph" or after_exit == "freeze":
                tau[u] = 0.0
        delta = derivative(h, graph, w.omega, w.weight, edge_features, w.edge, w.edge_term)
        h = np.array([h[i] + tau[unit_of[i]] * delta[i] for i in range(len(h))])
        after = _pooled(h, graph, level, pool)
        for u in range(units):
            expected_steps[u] += reached[u]
            reached[u] *= _softmax(logits[u])[0]
            leaves = np.argmax(c[u]) == 1
            if exit_threshold is not None:
                leaves = 1.0 - reached[u] >= exit_threshold
            if u in exit_list:
                continue
            time[u] += tau[u]
            if leaves or layer == last:
                z[u] = after[u]
                exit_list[u] = layer + 1
        taus.append(tau)
        states.append(h)
        if not training and len(exit_list) == units:
            break

    left = [exit_list[u] for u in range(units)]
    if w.norm is not None:
        scale, shift, mean, variance = w.norm
        if training:
            mean, variance = z.mean(axis=0), z.var(axis=0)
        z = scale * (z - mean) / np.sqrt(variance + 1e-5) + shift
    return Outcome(
        output=np.array([_mlp(row, w.decoder) for row in z]),
        layer=left,
        time=time,
        tau=np.array(taus),
        cost=sum(expected_steps if training else left) / units / num_layers,
        states=states,
    )


def derivative(
    h: Array,
    graph: Graph,
    omega: Array,
    weight: Array,
    edge_features: Array | None = None,
    edge_weight: Array | None = None,
    edge_term: str = "none",
) -> Array:
    """Eq. 1 and 4, node by node: σ₁(-σ₂(h_i Ω) + f_e(E)_i + Σ_j h_j W / √(d_i d_j))."""
    degree = [len(graph.neighbours(i)) for i in range(graph.num_nodes)]
    out = np.zeros_like(h)
    for i in range(graph.num_nodes):
        z = -np.maximum(h[i] @ omega, 0.0)
        for j in graph.neighbours(i):
            z = z + h[j] @ weight / math.sqrt(degree[i] * degree[j])
        if edge_term != "none":
            assert edge_features is not None
            assert edge_weight is not None
            incident = np.zeros(h.shape[1])
            for k, edge in enumerate(graph.edges):
                if i in edge:
                    incident = incident + edge_features[k] @ edge_weight
            z = z + (incident if edge_term == "linear" else -np.maximum(incident, 0.0))
        out[i] = np.maximum(np.tanh(z), 0.0)
    return out


def read(model: Any) -> Weights:
    """Take the numbers out of an :class:`eegnn.EEGNN`."""
    conv, f_nu = model.loop.step, model.loop.temperature
    f_c = model.loop.confidence.head
    norm = getattr(model.decoder.norm, "module", None)
    return Weights(
        *_matrices(conv),
        encoder=(_number(model.encoder.weight), _number(model.encoder.bias)),
        decoder=_layers(model.decoder.mlp.lins),
        confidence=_confidence(f_c),
        confidence_reads_neighbours=type(f_c).__name__ != "MLP",
        temperature=_layers(f_nu.head.lins),
        nu0=f_nu.nu0,
        edge=None if conv.edge is None else _number(conv.edge.weight).T,
        edge_term=conv.edge_term,
        norm=None
        if norm is None
        else [_number(v) for v in (norm.weight, norm.bias, norm.running_mean, norm.running_var)],
    )


def antisymmetric(value: Array, channels: int) -> Array:
    """Fill Ω_as from its strict upper triangle, row by row, or from Ω as Ω - Ωᵀ."""
    omega = np.zeros((channels, channels))
    if value.ndim == 2:
        for a in range(channels):
            for b in range(channels):
                omega[a, b] = value[a, b] - value[b, a]
        return omega
    numbers = iter(value)
    for a in range(channels):
        for b in range(a + 1, channels):
            omega[a, b] = next(numbers)
            omega[b, a] = -omega[a, b]
    return omega


def symmetric(value: Array, channels: int) -> Array:
    """Fill W_s from its upper triangle, row by row, or from GRAFF's m × (m + 2) numbers."""
    weight = np.zeros((channels, channels))
    if value.ndim == 1:
        numbers = iter(value)
        for a in range(channels):
            for b in range(a, channels):
                weight[a, b] = weight[b, a] = next(numbers)
        return weight
    for a in range(channels):
        for b in range(a + 1, channels):
            weight[a, b] = weight[b, a] = value[a, b]
    off_diagonal = [sum(abs(weight[a, b]) for b in range(channels)) for a in range(channels)]
    for a in range(channels):
        weight[a, a] = value[a, channels] * off_diagonal[a] + value[a, channels + 1]
    return weight


def _number(tensor: Tensor) -> Array:
    return tensor.detach().numpy().astype(np.float64)


def _layers(lins: Any) -> list[Layer]:
    return [(_number(lin.weight), None if lin.bias is None else _number(lin.bias)) for lin in lins]


def _matrices(conv: Any) -> tuple[Array, Array]:
    return (
        antisymmetric(_number(conv.antisymmetric.value), conv.channels),
        symmetric(_number(conv.symmetric.value), conv.channels),
    )


def _confidence(head: Any) -> Callable[[Array, Graph], Array]:
    """f_c as a function of states and graph: MeanGNN, SAS-GNN or MLP."""
    layers = _layers(head.lins)

    def mean_gnn(h: Array, graph: Graph) -> Array:
        for k, layer in enumerate(layers):
            h = h if k == 0 else np.maximum(h, 0.0)
            rows = []
            for i in range(graph.num_nodes):
                around = _average(h, graph.neighbours(i))
                rows.append(_affine(np.concatenate([h[i], around]), layer))
            h = np.array(rows)
        return h

    def sas_gnn(h: Array, graph: Graph) -> Array:
        h = np.array([np.maximum(_affine(row, layers[0]), 0.0) for row in h])
        for _ in range(head.num_layers):
            h = h + derivative(h, graph, *_matrices(head.conv))
        return np.array([_affine(row, layers[1]) for row in h])

    def mlp(rows: Array, graph: Graph) -> Array:
        return np.array([_mlp(row, layers) for row in rows])

    return {"MeanGNN": mean_gnn, "SASHead": sas_gnn, "MLP": mlp}[type(head).__name__]


def _head(w: Weights, h: Array, seen: Array, graph: Graph, level: str) -> Array:
    """C = f_c(H, Ā), or f_c(Pool(H)); a head that reads neighbours is averaged over the graph."""
    if level == "node" or not w.confidence_reads_neighbours:
        return w.confidence(seen, graph)
    return _pooled(w.confidence(h, graph), graph, level, "mean")


def _affine(value: Array, layer: Layer) -> Array:
    weight, bias = layer
    return weight @ value + (0.0 if bias is None else bias)


def _mlp(value: Array, layers: list[Layer]) -> Array:
    for k, layer in enumerate(layers):
        value = _affine(value if k == 0 else np.maximum(value, 0.0), layer)
    return value


def _pooled(h: Array, graph: Graph, level: str, pool: str) -> Array:
    """What is decoded: the states of nodes, or the pooled states of graphs."""
    if level == "node":
        return h
    if pool == "concat":
        return np.hstack([_pooled(h, graph, level, one) for one in ("add", "max", "mean")])
    rows = np.zeros((graph.num_graphs, h.shape[1]))
    for g in range(graph.num_graphs):
        members = graph.members(g)
        if pool == "max":
            for c in range(h.shape[1]):
                rows[g, c] = max((h[i, c] for i in members), default=0.0)
        else:
            rows[g] = _average(h, members) * (1 if pool == "mean" else len(members))
    return rows


def _average(rows: Array, members: list[int]) -> Array:
    total = np.zeros(rows.shape[1])
    for i in members:
        total = total + rows[i]
    return total / max(len(members), 1)


def _graph_of(graph: Graph, i: int) -> int:
    return graph.graph_of[i] if graph.graph_of else 0


def _step_sizes(tau: Array, step_size: float | str, graph: Graph) -> Array:
    """The step sizes that are used: τ, its mean over the nodes of a graph, or one number."""
    if step_size == "adaptive":
        return tau.copy()
    if step_size != "mean":
        return np.full(len(tau), float(step_size))
    members = [graph.members(_graph_of(graph, i)) for i in range(len(tau))]
    return np.array([sum(tau[j] for j in nodes) / len(nodes) for nodes in members])


def _softmax(values: Array) -> Array:
    exponentials = np.exp(values - values.max())
    return exponentials / exponentials.sum()
