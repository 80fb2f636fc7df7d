from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.utils import contains_self_loops, is_undirected

from eegnn.bench import inputs
from eegnn.bench.inputs import (
    PAPER_EXITS,
    benchmark_graph,
    paper_exit_layers,
    skewed_graph,
)
from eegnn.data.registry import DATASETS


@pytest.mark.parametrize("skew", [0.2, 1.0])
def test_skewed_graph_is_undirected_and_skewed(skew: float) -> None:
    edge_index = skewed_graph(1_000, 20_000, skew=skew)
    assert is_undirected(edge_index)
    assert not contains_self_loops(edge_index)
    degree = torch.bincount(edge_index[0], minlength=1_000).double()
    assert (degree.max() > 2 * degree.mean()) == (skew == 1.0)


@pytest.mark.parametrize("name", PAPER_EXITS)
def test_a_graph_that_is_not_on_disk_is_generated_with_its_size(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "on_disk", lambda *_: False)
    graph, figures = benchmark_graph(name), DATASETS[name].figures
    assert not graph.real
    assert graph.adj.num_nodes == figures["nodes"]
    assert graph.adj.num_edges == pytest.approx(figures["edges"], rel=0.03)
    assert graph.x.shape == (graph.adj.num_nodes, figures["features"])


def test_other_data_sets_are_refused() -> None:
    with pytest.raises(ValueError, match=r"dataset must be one of roman-empire, .*, got 'cora'"):
        benchmark_graph("cora")


def test_nothing_is_on_disk_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EEGNN_MIRROR", raising=False)
    assert not inputs.on_disk("tolokers", tmp_path)


@pytest.mark.parametrize("name", PAPER_EXITS)
def test_exit_layers_are_the_papers(name: str) -> None:
    layer = paper_exit_layers(name, 9_999, 21)
    low, middle, high = PAPER_EXITS[name]
    assert int(layer.min()) == round(low)
    assert int(layer.median()) == round(middle)
    assert int(layer.max()) == round(high)
    assert int(layer.min()) >= 1
    assert int(paper_exit_layers(name, 9_999, 5).max()) <= 5
