"""Algorithms 1 and 2 of the paper, transcribed line by line.

Plain NumPy in float64, with Python loops over nodes and edges. Nothing of the library runs here;
:func:`read` takes the numbers of a model out of its parameters, and that is all it knows of it.
"""

from __future__ import annotations

import math
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
    """The numbers of an EEGNN."""

    omega: Array
    weight: Array
    encoder: Layer
    decoder: list[Layer]
    confidence: list[Layer]
    confidence_reads_neighbours: bool
    temperature: list[Layer]
    nu0: float
    edge: Array | None = None  # W_e, [d, m']


@dataclass(frozen=True)
class Outcome:
    output: Array
    layer: list[int]
    time: Array
    tau: Array
    cost: float


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


def read(model: Any) -> Weights:
    """Take the numbers out of an :class:`eegnn.EEGNN`."""

    def number(tensor: Tensor) -> Array:
        return tensor.detach().numpy().astype(np.float64)

    def layers(lins: Any) -> list[Layer]:
        return [
            (number(lin.weight), None if lin.bias is None else number(lin.bias)) for lin in lins
        ]

    conv, f_c, f_nu = model.loop.step, model.loop.confidence.head, model.loop.temperature.head
    return Weights(
        omega=antisymmetric(number(conv.antisymmetric.value), conv.channels),
        weight=symmetric(number(conv.symmetric.value), conv.channels),
        encoder=(number(model.encoder.weight), number(model.encoder.bias)),
        decoder=layers(model.decoder.mlp.lins),
        confidence=layers(f_c.lins),
        confidence_reads_neighbours=type(f_c).__name__ == "MeanGNN",
        temperature=layers(f_nu.lins),
        nu0=model.loop.temperature.nu0,
        edge=None if conv.edge is None else number(conv.edge.weight).T,
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


def run(
    w: Weights,
    graph: Graph,
    x: Array,
    *,
    num_layers: int,
    level: str = "node",
    pool: str = "mean",
    objective: str = "expected",
    after_exit: str = "evolve",
    answer: str = "mixture",
    step_size: float | str = "adaptive",
    hard: bool = False,
    head_norm: bool = True,
    task: str = "classification",
    training: bool = False,
    noise: Array | None = None,
    max_layers: int | None = None,
    exit_threshold: float | None = None,
    edge_features: Array | None = None,
    edge_term: str = "none",
) -> Outcome:
    """Algorithm 1 (``level="node"``) and Algorithm 2 (``"graph"``).

    ``noise[l][u]`` is g(0) - g(1) of unit u at layer l; ``None`` for none.
    """
    n, limit = graph.num_nodes, num_layers if max_layers is None else min(max_layers, num_layers)
    units = n if level == "node" else graph.num_graphs
    h = np.array([np.maximum(_affine(x[i], w.encoder), 0.0) for i in range(n)])
    survival = [1.0] * units
    exit_list: set[int] = set()
    state = np.zeros((units, h.shape[1]))
    layer = [limit] * units
    taus: list[list[float]] = []
    time = [0.0] * units
    expected_steps = [0.0] * units
    weights: list[list[float]] = []
    outputs: list[list[Array]] = []
    mixing = training and objective == "expected"

    for step in range(limit):
        seen = _units(h, graph, level, pool)
        confidence = _confidence(w, h, seen, graph, level, head_norm)
        tau, leaves, weights_here = [0.0] * units, [False] * units, [0.0] * units
        for u in range(units):
            looked_at = _normalised(seen[u]) if head_norm else seen[u]
            inverse = np.logaddexp(0.0, _mlp(looked_at, w.temperature)[0]) + w.nu0
            gumbel = 0.0 if noise is None else noise[step][u]
            c = _softmax((confidence[u] + np.array([gumbel, 0.0])) * inverse)
            tau[u] = float(c[0])
            if hard and training:
                tau[u] = 1.0 if int(np.argmax(c)) == 0 else 0.0
            stay = _softmax(confidence[u] * (1.0 if objective == "sampled" else inverse))[0]
            weights_here[u] = float(survival[u] * (1.0 - stay))
            doubt = 1.0
            if exit_threshold not in (None, 1.0):
                counts = [*(row[u] for row in weights), survival[u]]
                said = [*(row[u] for row in outputs), _mlp(seen[u], w.decoder)]
                would_say = _mixture(task, counts, said) if answer == "mixture" else said[-1]
                doubt = _doubt(task, would_say)
            survival[u] = float(survival[u] * stay)
            expected_steps[u] += survival[u]
            if exit_threshold is not None:
                leaves[u] = survival[u] * doubt <= 1.0 - exit_threshold
            elif objective == "expected":
                leaves[u] = survival[u] <= 0.5
            else:
                leaves[u] = int(np.argmax(c)) == 1
        weights.append(weights_here)
        outputs.append([_mlp(seen[u], w.decoder) for u in range(units)])
        for u in range(units):
            if leaves[u] and u not in exit_list:
                state[u], layer[u] = seen[u], step
                exit_list.add(u)
        if not training and len(exit_list) == units:
            break
        tau = _step_sizes(tau, step_size, graph)
        for u in range(units):
            # A graph in training with "expected" goes on: it may yet leave at any later layer.
            still = not mixing if level == "graph" else after_exit == "freeze"
            if u in exit_list and still:
                tau[u] = 0.0
            if u not in exit_list:
                time[u] += tau[u]
        taus.append(tau)
        delta = derivative(h, graph, w.omega, w.weight, edge_features, w.edge, edge_term)
        for i in range(n):
            h[i] = h[i] + tau[i if level == "node" else _graph_of(graph, i)] * delta[i]

    last = _units(h, graph, level, pool)
    for u in range(units):
        if u not in exit_list:
            state[u] = last[u]
    weights.append(survival)
    outputs.append([_mlp(last[u], w.decoder) for u in range(units)])
    if mixing:
        output = [
            _mixture(task, [row[u] for row in weights], [row[u] for row in outputs])
            for u in range(units)
        ]
    elif answer == "mixture":
        output = []
        for u in range(units):
            passed = [row[u] for row in weights[: layer[u]]]
            counts = [*passed, 1.0 - sum(passed)]  # the exit that is taken counts for the rest
            output.append(_mixture(task, counts, [row[u] for row in outputs[: layer[u] + 1]]))
    else:
        output = [_mlp(state[u], w.decoder) for u in range(units)]
    steps = expected_steps if training else layer
    return Outcome(
        output=np.array(output),
        layer=layer,
        time=np.array(time),
        tau=np.array(taus).reshape(len(taus), units),
        cost=sum(steps) / units / num_layers,
    )


def _doubt(task: str, output: Array) -> float:
    """From 0, sure, to 1, undecided."""
    if task == "classification":
        return float(1.0 - _softmax(output).max()) * len(output) / max(len(output) - 1, 1)
    if task == "multilabel":
        yes = 1.0 / (1.0 + np.exp(-output))
        return float(2.0 * np.minimum(yes, 1.0 - yes).max())
    return 1.0


def _affine(value: Array, layer: Layer) -> Array:
    weight, bias = layer
    return weight @ value + (0.0 if bias is None else bias)


def _mlp(value: Array, layers: list[Layer]) -> Array:
    for k, layer in enumerate(layers):
        value = _affine(value if k == 0 else np.maximum(value, 0.0), layer)
    return value


def _mean_gnn(h: Array, graph: Graph, layers: list[Layer]) -> Array:
    for k, layer in enumerate(layers):
        if k:
            h = np.maximum(h, 0.0)
        rows = []
        for i in range(graph.num_nodes):
            around = np.zeros(h.shape[1])
            for j in graph.neighbours(i):
                around = around + h[j] / len(graph.neighbours(i))
            rows.append(_affine(np.concatenate([h[i], around]), layer))
        h = np.array(rows)
    return h


def _confidence(
    w: Weights, h: Array, seen: Array, graph: Graph, level: str, head_norm: bool
) -> Array:
    """C = f_c(H, Ā), or f_c(Pool(H)); a head that reads neighbours is averaged over the graph."""
    if not w.confidence_reads_neighbours:
        rows = [_normalised(row) if head_norm else row for row in seen]
        return np.array([_mlp(row, w.confidence) for row in rows])
    nodes = np.array([_normalised(row) for row in h]) if head_norm else h
    of_nodes = _mean_gnn(nodes, graph, w.confidence)
    if level == "node":
        return of_nodes
    return np.array([_average(of_nodes, graph.members(g)) for g in range(graph.num_graphs)])


def _units(h: Array, graph: Graph, level: str, pool: str) -> Array:
    if level == "node":
        return h.copy()
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


def _step_sizes(tau: list[float], step_size: float | str, graph: Graph) -> list[float]:
    if step_size == "adaptive":
        return list(tau)
    if step_size != "mean":
        return [float(step_size)] * len(tau)
    out = []
    for i in range(len(tau)):
        members = graph.members(_graph_of(graph, i))
        out.append(sum(tau[j] for j in members) / len(members))
    return out


def _normalised(row: Array) -> Array:
    """``head_norm``: each state scaled to root mean square 1 before the heads look at it."""
    mean_square = sum(entry**2 for entry in row) / len(row)
    return np.array([entry / math.sqrt(mean_square + 1e-6) for entry in row])


def _softmax(values: Array) -> Array:
    exponentials = np.exp(values - values.max())
    return exponentials / exponentials.sum()


def _mixture(task: str, weights: list[float], outputs: list[Array]) -> Array:
    """Σ_l w_l p(y | h^l), as the logits (or the mean) of that prediction."""
    if task == "regression":
        return np.asarray(sum(w * z for w, z in zip(weights, outputs, strict=True)))
    if task == "classification":
        return np.log(sum(w * _softmax(z) for w, z in zip(weights, outputs, strict=True)))
    yes = sum(w / (1.0 + np.exp(-z)) for w, z in zip(weights, outputs, strict=True))
    no = sum(w / (1.0 + np.exp(z)) for w, z in zip(weights, outputs, strict=True))
    return np.asarray(np.log(yes) - np.log(no))
