"""What holds for every model of fixed depth, as checks that take a model."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from eegnn.nn.model import GraphModel
from tests.graphs import Pairs, both_ways
from tests.zoo.examples import drawn, states

#: Unlike sizes, among them a single node and nodes without edges.
SEVERAL: list[tuple[int, Pairs]] = [
    (5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2)]),
    (1, []),
    (3, []),
    (7, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]),
]


def ready(model: GraphModel, seed: int = 0) -> Any:
    """With drawn weights and statistics, in double precision, in evaluation mode."""
    model = drawn(model, seed).eval()
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_(generator=generator)
            module.running_var.uniform_(0.5, 2.0, generator=generator)
    return model


def graphs_for(model: GraphModel) -> list[Data]:
    built = []
    for seed, (n, pairs) in enumerate(SEVERAL):
        edges = both_ways(pairs)
        graph = Data(x=states(n, model.in_channels, seed), edge_index=edges)
        if model.edge_dim is not None:
            graph.edge_attr = states(edges.size(1), model.edge_dim, seed + 10)
        built.append(graph)
    return built


def predict(model: GraphModel, graph: Data, batch: Tensor | None = None) -> Tensor:
    return model(graph.x, graph.edge_index, graph.edge_attr, batch)


def check_batches(model: GraphModel) -> None:
    """A batch equals its graphs one by one."""
    several = graphs_for(model)
    batch = Batch.from_data_list(several)
    alone = torch.cat([predict(model, graph) for graph in several])
    assert alone.std() > 1e-3
    assert torch.allclose(predict(model, batch, batch.batch), alone, atol=1e-10)


def check_permutations(model: GraphModel) -> None:
    """Nodes named otherwise get the same outputs."""
    graph = graphs_for(model)[3]
    order = torch.tensor([3, 6, 0, 5, 1, 2, 4])
    place = torch.argsort(order)
    renamed = Data(graph.x[order], place[graph.edge_index], graph.edge_attr)
    assert torch.allclose(predict(model, renamed), predict(model, graph)[order], atol=1e-10)


def check_gradients(model: GraphModel) -> None:
    """All weights get finite gradients, with a graph in the batch that is empty.

    In training some are 0, of what batch normalisation takes away again; in evaluation none is.
    """
    model = ready(model)
    batch = Batch.from_data_list(graphs_for(model))
    number = torch.tensor([0, 1, 3, 4])[batch.batch]
    for training in (True, False):
        model.train(training).zero_grad()
        model(batch.x, batch.edge_index, batch.edge_attr, number).square().sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
            assert training or parameter.grad.any(), name


def check_small_graphs(model: GraphModel) -> None:
    """A single node, nodes without edges and no nodes at all go through, in training too."""
    edge_attr = None if model.edge_dim is None else states(0, model.edge_dim)
    for n, batch in [(1, None), (3, None), (0, None), (0, torch.zeros(0, dtype=torch.int64))]:
        for training in (True, False):
            x = states(n, model.in_channels)
            out = model.train(training)(x, both_ways([]), edge_attr, batch)
            assert out.shape == (n, model.out_channels)
            assert out.isfinite().all()


def check_depth(model: GraphModel) -> None:
    """Each layer changes something, and nobody stays longer than `max_layers`."""
    graph = graphs_for(model)[3]
    outs = []
    for limit in range(1, model.num_layers + 1):
        out, exits = model.predict(graph.x, graph.edge_index, graph.edge_attr, max_layers=limit)
        assert exits.layer.tolist() == [limit] * 7
        outs.append(out)
    assert all(not torch.allclose(a, b) for a, b in pairwise(outs))
    assert torch.equal(outs[-1], predict(model, graph))
