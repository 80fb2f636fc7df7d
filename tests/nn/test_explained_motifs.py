"""What GNNExplainer finds in a graph with known motifs, on models that have learned them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch_geometric import seed_everything
from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import BAGraph
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import Constant
from torch_geometric.utils import k_hop_subgraph

from eegnn import EEGNN
from tests.nn.test_edge_mask import CONFIG, Net

LAYERS, WIDTH = 3, 20
MODELS: dict[str, Callable[[], nn.Module]] = {
    "EEGNN": lambda: EEGNN(1, WIDTH, 4, LAYERS),
    "EarlyExit(GCNConv)": lambda: Net(GCNConv(WIDTH, WIDTH), LAYERS, channels=(1, WIDTH, 4)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_houses_of_ba_shapes_are_found(name: str) -> None:
    """Of the edges around a node of a house, those of the house get the larger masks."""
    seed_everything(0)
    data = ExplainerDataset(BAGraph(300, 5), "house", num_motifs=80, transform=Constant())[0]
    model = MODELS[name]()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(500):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.x, data.edge_index), data.y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
    explainer = Explainer(
        model, GNNExplainer(epochs=100), "phenomenon", CONFIG, "attributes", "object"
    )
    truth, found = [], []
    for node in range(401, data.num_nodes, 52):
        mask = explainer(data.x, data.edge_index, target=data.y, index=node).edge_mask
        _, _, _, near = k_hop_subgraph(node, LAYERS, data.edge_index)
        assert not mask[~near].any()
        truth.append(data.edge_mask[near])
        found.append(mask[near])
    score = roc_auc_score(torch.cat(truth), torch.cat(found))
    assert score > 0.8  # 0.91 and 0.93 when this was written; PyG's GCN had 0.91
