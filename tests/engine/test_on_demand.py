"""Answers for some nodes are those of the whole graph, from what they depend on alone."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor

from eegnn import EEGNN, SASGNN, Adjacency, Exits
from eegnn.engine import on_demand
from eegnn.nn.model import GraphModel
from eegnn.source import GraphSource, TensorGraph
from eegnn.zoo.gcn import GCN
from tests.engine.blocked.examples import GRAPHS
from tests.nn.model_examples import lively

MODELS: list[dict[str, Any]] = [
    {},
    {"head_layers": 2},
    {"confidence": "sas", "head_layers": 2},
    {"confidence": "mlp"},
    {"after_exit": "freeze"},
    {"after_exit": "freeze", "head_layers": 2},
    {"step_size": 0.5},
]
KNOBS: list[dict[str, Any]] = [
    {},
    {"exit_threshold": 0.6},
    {"exit_threshold": 0.9},
    {"exit_threshold": 0.0},
    {"exit_threshold": 1.0},
    {"max_layers": 3},
]


@pytest.fixture
def _never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the neighbourhood of a small graph grow, however much of it that is."""
    monkeypatch.setattr(on_demand, "SHARE", 2.0)


def random_graph(rng: random.Random) -> tuple[Tensor, int]:
    """Undirected, with isolated nodes and perhaps without edges."""
    n = rng.randint(1, 60)
    pairs = [(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randint(0, 80))]
    return torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T, n


def random_model(rng: random.Random) -> tuple[GraphModel, dict[str, Any]]:
    if rng.random() < 0.15:
        return SASGNN(3, 8, 2, rng.randint(1, 5), shared=rng.random() < 0.5), {}
    model = EEGNN(3, 8, 2, rng.randint(1, 12), **rng.choice(MODELS))
    return lively(model, scale=1.0, continue_bias=1.0), rng.choice(KNOBS)


def assert_same(found: tuple[Tensor, Exits], whole: tuple[Tensor, Exits], nodes: Tensor) -> None:
    (out, exits), (truth, known) = found, whole
    assert torch.equal(exits.layer, known.layer[nodes])
    torch.testing.assert_close(out, truth[nodes], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(exits.time, known.time[nodes], rtol=1e-5, atol=1e-5)
    taken = torch.arange(exits.tau.size(0)).unsqueeze(1) < exits.layer
    expected = known.tau[: exits.tau.size(0), nodes]
    torch.testing.assert_close(exits.tau[taken], expected[taken], rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("_never_whole")
@pytest.mark.filterwarnings("ignore:edge_index is directed")
def test_200_random_graphs_and_models_answer_as_the_whole_graph() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        torch.manual_seed(seed)
        edges, n = random_graph(rng)
        (model, knobs), x = random_model(rng), torch.randn(n, 3)
        nodes = torch.tensor([rng.randrange(n) for _ in range(rng.randint(0, 6))]).long()
        found = model.predict(x, edges, nodes=nodes, **knobs)
        assert found[1].backend == "on_demand"
        assert_same(found, model.predict(x, edges, **knobs), nodes)


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("options", MODELS, ids=str)
def test_the_whole_graph_gives_the_same_answers(
    options: dict[str, Any], share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_demand, "SHARE", share)
    for seed, knobs in enumerate(KNOBS):
        torch.manual_seed(seed)
        graph = GRAPHS["sparse"](seed)
        model = lively(EEGNN(3, 8, 2, 12, **options), scale=1.0, continue_bias=1.0)
        x, nodes = torch.randn(graph.num_nodes, 3), torch.randint(graph.num_nodes, (5,))
        found = model.predict(x, graph.edge_index(), nodes=nodes, **knobs)
        assert_same(found, model.predict(x, graph.edge_index(), **knobs), nodes)
        if share == 0.0:
            edges = graph.edge_index().size(1)
            assert found[1].touched == (graph.num_nodes, edges)


@pytest.mark.usefixtures("_never_whole")
@pytest.mark.parametrize(
    "nodes",
    [[], [69], list(range(70)), [5, 3, 5, 5], [0]],
    ids=["none", "isolated", "all", "repeated", "one"],
)
def test_any_list_of_nodes_can_be_asked(nodes: list[int]) -> None:
    torch.manual_seed(0)
    edges = torch.tensor([(i, i + 1) for i in range(60)]).T
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    model, x = lively(EEGNN(3, 8, 2, 9), scale=1.0, continue_bias=1.0), torch.randn(70, 3)
    found = model.predict(x, edges, nodes=nodes)
    assert found[0].shape == (len(nodes), 2)
    assert_same(found, model.predict(x, edges), torch.tensor(nodes, dtype=torch.int64))
    layers = found[1].layer.double()
    assert float(found[1].cost) == pytest.approx(float(layers.mean()) / 9 if nodes else 0.0)


class Counting(TensorGraph):
    """Notes which nodes' features and neighbours are read."""

    def __init__(self, x: Tensor, adj: Adjacency) -> None:
        super().__init__(x, adj)
        self.read: list[int] = []
        self.expanded: list[int] = []

    def features(self, nodes: Tensor) -> Tensor:
        self.read += nodes.tolist()
        return super().features(nodes)

    def neighbors(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        self.expanded += nodes.tolist()
        return super().neighbors(nodes)


def path(n: int) -> Adjacency:
    edges = torch.tensor([(i, i + 1) for i in range(n - 1)]).T
    return Adjacency.from_edge_index(torch.cat([edges, edges.flip(0)], dim=1), n)


@pytest.mark.usefixtures("_never_whole")
@pytest.mark.parametrize(("hops", "scale", "bias"), [(1, 1.0, 1.0), (2, 2.0, 0.0)])
def test_a_node_reads_as_many_hops_as_it_takes_steps(hops: int, scale: float, bias: float) -> None:
    """On a path, within r hops of a node in the middle are 2r + 1 nodes."""
    torch.manual_seed(1)
    model = lively(EEGNN(3, 8, 2, 9, head_layers=hops), scale=scale, continue_bias=bias)
    x, adj, seen = torch.randn(81, 3), path(81), set()
    for node in range(30, 50):
        source = Counting(x, adj)
        _, exits = model.predict(None, source, nodes=[node])
        radius = hops * int(exits.layer)
        near = range(node - radius, node + radius + 1)
        assert sorted(source.read) == list(near)  # each once
        assert sorted(source.expanded) == list(near)[1:-1]
        assert exits.touched == (len(near), 2 * (len(near) - 2))
        seen.add(int(exits.layer))
    assert len(seen) > 2


@pytest.mark.usefixtures("_never_whole")
def test_nothing_is_read_for_a_node_after_it_has_left() -> None:
    torch.manual_seed(1)
    model = lively(EEGNN(3, 8, 2, 9), scale=1.0, continue_bias=1.0)
    x, adj = torch.randn(400, 3), path(400)
    nodes = list(range(20, 390, 40))
    source = Counting(x, adj)
    _, exits = model.predict(None, source, nodes=nodes)
    assert exits.layer.unique().numel() > 2
    expected = [
        near
        for node, layer in zip(nodes, exits.layer.tolist(), strict=True)
        for near in range(node - layer, node + layer + 1)
    ]
    assert sorted(source.read) == expected


@pytest.mark.usefixtures("_never_whole")
def test_no_state_is_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of steps: within a radius of l nodes have taken steps 1 … l, each once."""
    torch.manual_seed(1)
    model = lively(EEGNN(3, 8, 2, 9), scale=1.0, continue_bias=1.0)
    taken: list[tuple[int, int]] = []
    take = on_demand._Run._take

    def counted(run: on_demand._Run, part: Any, layer: int) -> Any:
        taken.extend((node, layer) for node in run.near.nodes[part.targets].tolist())
        return take(run, part, layer)

    monkeypatch.setattr(on_demand._Run, "_take", counted)
    # Neighbours that leave at different layers, and read into what others have computed.
    _, exits = model.predict(torch.randn(60, 3), path(60), nodes=[20, 23, 24, 30])
    assert exits.layer.unique().numel() > 1
    assert len(set(taken)) == len(taken)
    needed = {
        (near, step)
        for node, layer in zip([20, 23, 24, 30], exits.layer.tolist(), strict=True)
        for step in range(1, layer + 1)
        for near in range(node - layer + step, node + layer - step + 1)
    }
    assert set(taken) == needed


@pytest.mark.usefixtures("_never_whole")
def test_a_budget_is_kept_and_those_that_it_stops_say_so() -> None:
    torch.manual_seed(1)
    model = lively(EEGNN(3, 8, 2, 9), scale=1.0, continue_bias=1.0)
    x, adj = torch.randn(400, 3), path(400)
    nodes = torch.arange(20, 390, 40)
    whole = model.predict(x, adj)
    for budget in range(10, 120, 7):
        source = Counting(x, adj)
        out, exits = model.predict(None, source, nodes=nodes, max_nodes=budget)
        assert exits.touched is not None
        assert exits.truncated is not None
        assert len(set(source.read)) == exits.touched.nodes <= budget
        answered = ~exits.truncated
        assert torch.equal(exits.layer[answered], whole[1].layer[nodes][answered])
        torch.testing.assert_close(out[answered], whole[0][nodes][answered], rtol=1e-5, atol=1e-5)
        for unit in exits.truncated.nonzero().view(-1).tolist():
            steps = int(exits.layer[unit])
            assert steps < int(whole[1].layer[nodes[unit]])
            if steps:
                limited, _ = model.predict(x, adj, max_layers=steps)
                torch.testing.assert_close(out[unit], limited[nodes[unit]], rtol=1e-5, atol=1e-5)
    _, exits = model.predict(x, adj, nodes=nodes, max_nodes=400)
    assert exits.truncated is not None
    assert not bool(exits.truncated.any())


def test_a_hub_that_is_too_much_does_not_stop_the_others() -> None:
    torch.manual_seed(0)
    graph = GRAPHS["hub"](0)  # node 0 has 39 neighbours; 55 is the end of a tail
    model = lively(EEGNN(3, 8, 2, 4), scale=1.0, continue_bias=2.0)
    x = torch.randn(graph.num_nodes, 3)
    _, exits = model.predict(x, graph.edge_index(), nodes=[0, 55], max_nodes=20)
    assert exits.truncated is not None
    assert exits.truncated.tolist() == [True, False]
    assert exits.layer[0] == 0


def test_models_that_need_all_nodes_compute_them() -> None:
    torch.manual_seed(0)
    graph, x = GRAPHS["ring"](0), torch.randn(60, 3)
    nodes = torch.tensor([7, 7, 0])
    for model in (
        GCN(3, 8, 2, 2),
        lively(EEGNN(3, 8, 2, 4, step_size="mean"), scale=1.0, continue_bias=1.0),
    ):
        found = model.predict(x, graph.edge_index(), nodes=nodes)
        assert_same(found, model.predict(x, graph.edge_index()), nodes)
        assert found[1].touched == (60, 120)
    weight = torch.rand(graph.edge_index().size(1))
    model = lively(EEGNN(3, 8, 2, 4), scale=1.0, continue_bias=1.0)
    found = model.predict(x, graph.edge_index(), nodes=nodes, edge_weight=weight)
    assert_same(found, model.predict(x, graph.edge_index(), edge_weight=weight), nodes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": [60]}, r"nodes must lie in 0 … 59, got 60"),
        ({"nodes": [-1, 3]}, r"nodes must lie in 0 … 59, got -1"),
        ({"nodes": [[1]]}, r"nodes must have shape \[U\], got \[1, 1\]"),
        ({"nodes": [0.5]}, r"nodes must hold integers, got torch.float32"),
        ({"nodes": [True]}, r"nodes must hold integers, got torch.bool"),
        ({"nodes": [1, 2, 3], "max_nodes": 2}, r"max_nodes must be at least 3, got 2"),
        ({"max_nodes": 2}, r"max_nodes goes with nodes"),
        ({"nodes": [1], "max_nodes": 9, "sample": True}, r"max_nodes does not go with"),
    ],
)
def test_what_cannot_be_asked_is_refused(change: dict[str, Any], message: str) -> None:
    graph = GRAPHS["ring"](0)
    with pytest.raises((ValueError, TypeError), match=message):
        EEGNN(3, 8, 2, 4).predict(torch.zeros(60, 3), graph.edge_index(), **change)


def test_graphs_are_not_asked_by_their_nodes() -> None:
    graph = GRAPHS["ring"](0)
    with pytest.raises(ValueError, match="nodes goes with level='node'"):
        EEGNN(3, 8, 2, 4, "graph").predict(torch.zeros(60, 3), graph.edge_index(), nodes=[1])


def test_a_source_that_returns_no_nodes_is_named() -> None:
    class Wrong(TensorGraph):
        def neighbors(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
            return torch.ones_like(nodes), torch.full_like(nodes, 999)

    source: GraphSource = Wrong(torch.zeros(500, 3), path(500))
    with pytest.raises(ValueError, match="must lie in 0 … 499, got 999"):
        EEGNN(3, 8, 2, 4).predict(None, source, nodes=[1])


def test_features_that_are_not_finite_are_named_by_their_node() -> None:
    x = torch.zeros(500, 3)
    x[7, 1] = torch.nan
    with pytest.raises(ValueError, match="x holds NaN or infinite values at node 7"):
        EEGNN(3, 8, 2, 4).predict(None, TensorGraph(x, path(500)), nodes=[6])
