"""Work that evaluation leaves out for units that have left, and what becomes of their state."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from eegnn import Adjacency
from tests.nn.exit_examples import (
    EXPECTED,
    GRAPHS,
    SAMPLED,
    SEEDS,
    Config,
    batch_of_graphs,
    confidence_of,
    connected_or_not,
    features,
    make,
)
from tests.transcription import Graph


@pytest.mark.parametrize("seed", SEEDS[1:])
@pytest.mark.parametrize("edge_dim", [None, 2])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_dropping_finished_graphs_changes_nothing(
    objective: Config, edge_dim: int | None, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, level="graph", edge_dim=edge_dim, **objective)
    x = features(seed, graph.num_nodes)
    attr = None if edge_dim is None else features(9, len(graph.edges), 2)
    sizes: list[int] = []
    select_graphs = Adjacency.select_graphs

    def counted(self: Adjacency, graphs: Tensor) -> tuple[Adjacency, Tensor]:
        sizes.append(int(graphs.sum()))
        return select_graphs(self, graphs)

    monkeypatch.setattr(Adjacency, "select_graphs", counted)
    out, exits = model.predict(
        x,
        graph.edge_index(),
        None if attr is None else torch.cat([attr, attr]),
        graph.batch(),
    )
    assert sizes, "no graph was dropped: the test would show nothing"
    assert sizes == sorted(sizes, reverse=True)
    for g in range(graph.num_graphs):
        members = graph.members(g)
        if not members:
            continue
        first = members[0]
        inside = [k for k, (u, _) in enumerate(graph.edges) if u in members]
        edges = [(graph.edges[k][0] - first, graph.edges[k][1] - first) for k in inside]
        alone = Graph(edges, len(members))
        part = None if attr is None else torch.cat([attr[inside], attr[inside]])
        out_alone, exits_alone = model.predict(x[members], alone.edge_index(), part)
        torch.testing.assert_close(out[g], out_alone[0], rtol=0, atol=1e-12)
        assert exits.layer[g] == exits_alone.layer[0]
        torch.testing.assert_close(exits.time[g], exits_alone.time[0], rtol=0, atol=1e-12)
        steps = exits_alone.tau.size(0)
        torch.testing.assert_close(exits.tau[:steps, g], exits_alone.tau[:, 0])
        assert (exits.tau[steps:, g] == 0).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("edge_dim", [None, 2])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_computing_active_rows_only_changes_nothing(
    objective: Config, edge_dim: int | None, shape: str, seed: int
) -> None:
    graph = GRAPHS[shape](seed)
    model = make(seed, after_exit="freeze", edge_dim=edge_dim, **objective).eval()
    x = features(seed, graph.num_nodes)
    attr = None if edge_dim is None else features(9, 2 * len(graph.edges), 2)
    full, full_exits = model(x, graph.edge_index(), attr, return_exits=True)
    assert full.requires_grad  # so that every row was computed
    few, few_exits = model.predict(x, graph.edge_index(), attr)
    torch.testing.assert_close(few, full.detach(), rtol=0, atol=1e-12)
    assert torch.equal(few_exits.layer, full_exits.layer)
    torch.testing.assert_close(few_exits.tau, full_exits.tau, rtol=0, atol=1e-12)
    torch.testing.assert_close(few_exits.time, full_exits.time, rtol=0, atol=1e-12)


@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
def test_exited_nodes_keep_their_state_when_frozen_and_move_on_when_evolving(
    after_exit: str,
) -> None:
    graph, x = connected_or_not(4), features(4, 11)
    # Without head norm, so that the heads are shown the states themselves.
    model = make(4, after_exit=after_exit, head_norm=False, **SAMPLED).eval()
    states: list[Tensor] = []
    confidence_of(model).register_forward_pre_hook(
        lambda _, arguments: states.append(arguments[0].detach())
    )
    _, exits = model(x, graph.edge_index(), return_exits=True)
    moved = []
    for i, layer in enumerate(exits.layer.tolist()):
        if layer < len(states) - 1:
            moved.append(not torch.equal(states[layer][i], states[-1][i]))
    assert moved
    assert any(moved) == (after_exit == "evolve")
