"""Explainers of PyG on models of this library, with edge lists in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.explain import (
    AttentionExplainer,
    CaptumExplainer,
    Explainer,
    Explanation,
    GNNExplainer,
    PGExplainer,
)
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import GCN, GATConv, GCNConv, SAGEConv, Sequential
from torch_geometric.utils import get_num_hops, k_hop_subgraph

from eegnn import EEGNN, SASGNN, Adjacency, EarlyExit, SASConv
from eegnn.nn.heads import MLP, Confidence, MeanGNN, Temperature
from eegnn.zoo.early import EEModel

N, WIDTH, LAYERS, NODE = 40, 6, 3, 17
#: A path with two chords, in which three hops from the node in the middle are a small part.
PATH = torch.cat(
    [torch.stack([torch.arange(N - 1), torch.arange(1, N)]), torch.tensor([[15, 2], [18, 30]])],
    dim=1,
)
BOTH = torch.cat([PATH, PATH.flip(0)], dim=1)
CONFIG = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


class Net(nn.Module):
    """What a user of PyG writes around an exit loop."""

    def __init__(
        self,
        step: Any,
        num_layers: int = LAYERS,
        channels: tuple[int, int, int] = (WIDTH, WIDTH, 3),
        **options: Any,
    ) -> None:
        super().__init__()
        first, width, last = channels
        self.encoder, self.decoder = nn.Linear(first, width), nn.Linear(width, last)
        self.loop = EarlyExit(
            step,
            Confidence(MeanGNN(width, 4, 2), 1.0),
            Temperature(MLP(width, 4, 1)),
            num_layers,
            **options,
        )

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        h, _ = self.loop(self.encoder(x).relu(), edge_index)
        return self.decoder(h)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "EEGNN": lambda: EEGNN(WIDTH, 8, 3, LAYERS),
    "EEGNN, recomputed": lambda: EEGNN(WIDTH, 8, 3, LAYERS, recompute=True),
    "SASGNN": lambda: SASGNN(WIDTH, 8, 3, LAYERS, shared=False),
    "EarlyExit(GCNConv)": lambda: Net(GCNConv(WIDTH, WIDTH)),
    "EarlyExit(SAGEConv)": lambda: Net(SAGEConv(WIDTH, WIDTH)),
    "EarlyExit(Sequential)": lambda: Net(
        Sequential("x, edge_index", [(GCNConv(WIDTH, WIDTH), "x, edge_index -> x"), nn.ReLU()])
    ),
    "EarlyExit of three": lambda: Net([GCNConv(WIDTH, WIDTH) for _ in range(LAYERS)]),
    "SASConv in Sequential": lambda: Sequential(
        "x, edge_index", [(SASConv(WIDTH), "x, edge_index -> x") for _ in range(LAYERS)]
    ),
    "EE+GIN": lambda: EEModel(WIDTH, 8, 3, LAYERS, backbone="gin"),
}
ORDERS = {
    "in order": BOTH,
    "shuffled": BOTH[:, torch.randperm(BOTH.size(1), generator=torch.Generator().manual_seed(1))],
    "directed": PATH[:, torch.randperm(PATH.size(1), generator=torch.Generator().manual_seed(2))],
}


def explain(
    model: nn.Module, algorithm: Any, x: Tensor, edge_index: Tensor, **options: Any
) -> Explanation:
    """The explanation of one node, by an edge mask alone."""
    return Explainer(model.eval(), algorithm, "model", CONFIG, edge_mask_type="object", **options)(
        x, edge_index, index=NODE
    )


def within_reach(edge_index: Tensor) -> Tensor:
    """The edges that can matter to the node in so many layers: each is used in both directions."""
    near, _, _, _ = k_hop_subgraph(NODE, LAYERS - 1, BOTH, num_nodes=N)
    return torch.isin(edge_index, near).any(dim=0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:edge_index is directed")
def test_gnn_explainer_marks_the_edges_within_reach_and_no_others(name: str, order: str) -> None:
    edges, x = ORDERS[order], torch.randn(N, WIDTH)
    found = explain(MODELS[name](), GNNExplainer(epochs=2), x, edges).edge_mask
    assert found.shape == (edges.size(1),)
    reach = within_reach(edges)
    assert not found[~reach].any()
    # Each way out of a node that is 0 everywhere is lost, and an edge away from the node's own
    # last neighbours carries nothing back in time; what leads to the node itself always counts.
    at_node = (edges == NODE).any(dim=0) if order == "directed" else edges[1] == NODE
    assert found[at_node].all()
    assert (found > 0).sum() > at_node.sum()


@pytest.mark.parametrize("conv", [GCNConv, SAGEConv])
def test_a_masked_convolution_is_that_of_pyg_with_the_mask_in_its_own_order(conv: Any) -> None:
    """In one layer with a step of 1, the loop adds what PyG's layer computes by itself."""
    edges, x = ORDERS["shuffled"], torch.randn(N, WIDTH)
    alone, net = conv(WIDTH, WIDTH), Net(conv(WIDTH, WIDTH), 1, step_size=1.0)
    net.loop.step.conv.load_state_dict(alone.state_dict())
    mask = torch.randn(edges.size(1), requires_grad=True)
    found = []
    for module, call in (
        (alone, lambda: x + alone(x, edges)),
        (net, lambda: net.loop(x, edges)[0]),
    ):
        set_masks(module, mask, edges)
        out = call()
        clear_masks(module)
        found.append((out, *torch.autograd.grad(out.sin().sum(), mask)))
    torch.testing.assert_close(found[1], found[0])
    assert net.loop.step.conv.explain is False
    torch.testing.assert_close(net.loop(x, edges)[0], x + alone(x, edges))


@pytest.mark.parametrize("name", MODELS)
def test_edges_with_a_mask_of_zero_carry_nothing(name: str) -> None:
    """Without the edges 10–11 and 2–30 the nodes up to 10 are a graph of their own."""
    model, edges, x = MODELS[name]().eval(), ORDERS["shuffled"], torch.randn(N, WIDTH)
    across = (edges <= 10).any(dim=0) & (edges > 10).any(dim=0)
    other = torch.cat([x[:11], torch.randn(N - 11, WIDTH)])
    assert not torch.equal(model(x, edges)[:11], model(other, edges)[:11])
    set_masks(model, (~across).float(), edges, apply_sigmoid=False)
    with torch.no_grad():  # the path that evaluation takes
        pruned = model(x, edges)
    masked = model(x, edges)
    torch.testing.assert_close(masked[:11], model(other, edges)[:11], rtol=0, atol=0)
    torch.testing.assert_close(pruned, masked.detach())
    clear_masks(model)
    assert not torch.equal(model(x, edges)[:11], model(other, edges)[:11])


@pytest.mark.parametrize("name", MODELS)
def test_integrated_gradients_of_captum_add_up_and_follow_the_order_of_edges(name: str) -> None:
    pytest.importorskip("captum", reason="needs captum")
    model, x, order = MODELS[name](), torch.randn(N, WIDTH), torch.randperm(BOTH.size(1))
    algorithm = CaptumExplainer("IntegratedGradients", n_steps=200)
    found = explain(model, algorithm, x, BOTH)
    again = explain(model, algorithm, x, BOTH[:, order])
    torch.testing.assert_close(again.edge_mask, found.edge_mask[order], rtol=1e-3, atol=1e-5)
    assert not found.edge_mask[~within_reach(BOTH)].any()
    explainer = Explainer(model, algorithm, "model", CONFIG, edge_mask_type="object")
    nothing = explainer.get_masked_prediction(x, BOTH, edge_mask=torch.zeros(BOTH.size(1)))
    change = (model(x, BOTH) - nothing)[NODE, found.target[NODE]]
    assert found.edge_mask.sum().item() == pytest.approx(change.item(), rel=0.02, abs=1e-3)


def test_a_step_of_two_convolutions_sees_two_hops_at_each_layer() -> None:
    assert get_num_hops(Net(GCN(WIDTH, WIDTH, 2))) == 2 * LAYERS


@pytest.mark.parametrize("name", ["EEGNN", "EarlyExit(GCNConv)", "EarlyExit of three"])
@pytest.mark.filterwarnings("ignore:Converting a tensor")  # PyG's own
def test_pg_explainer_sees_as_far_as_the_model_and_follows_the_order_of_edges(name: str) -> None:
    model, x, order = MODELS[name]().eval(), torch.randn(N, WIDTH), torch.randperm(BOTH.size(1))
    # With a convolution for each layer, the module that takes the mask is one too many.
    assert get_num_hops(model) == LAYERS + (name == "EarlyExit of three")
    explainer = Explainer(
        model, PGExplainer(epochs=2, lr=0.1), "phenomenon", CONFIG, edge_mask_type="object"
    )
    with torch.no_grad():
        target = model(x, BOTH).argmax(dim=-1)
    before = [p.clone() for p in model.parameters()]
    for epoch in range(2):
        explainer.algorithm.train(epoch, model, x, BOTH, target=target, index=NODE)
    found = explainer(x, BOTH, target=target, index=NODE).edge_mask
    again = explainer(x, BOTH[:, order], target=target, index=NODE).edge_mask
    torch.testing.assert_close(again, found[order])
    _, _, _, reach = k_hop_subgraph(NODE, get_num_hops(model), BOTH, num_nodes=N)
    assert torch.equal(found > 0, reach)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_attention_of_a_convolution_in_a_loop_is_not_given_in_another_order() -> None:
    net, x = Net(GATConv(WIDTH, WIDTH)), torch.randn(N, WIDTH)
    with pytest.raises(ValueError, match=r"Could not collect any attention coefficients"):
        explain(net, AttentionExplainer(), x, ORDERS["shuffled"])


def test_graphs_of_a_batch_are_explained() -> None:
    model = EEGNN(WIDTH, 8, 3, LAYERS, level="graph").eval()
    x, batch = torch.randn(2 * N, WIDTH), torch.arange(2).repeat_interleave(N)
    edges = torch.cat([BOTH, BOTH + N], dim=1)
    config = {**CONFIG, "task_level": "graph"}
    explainer = Explainer(model, GNNExplainer(epochs=2), "model", config, edge_mask_type="object")
    found = explainer(x, edges, index=1, batch=batch).edge_mask
    assert not found[: BOTH.size(1)].any()
    assert found[BOTH.size(1) :].any()


def test_a_mask_that_does_not_belong_to_the_edges_is_named() -> None:
    model = EEGNN(WIDTH, 8, 3, LAYERS)
    set_masks(model, torch.ones(5), BOTH)
    with pytest.raises(ValueError, match=r"edge_mask must have shape \[82\], got \[5\]"):
        model(torch.randn(N, WIDTH), BOTH)


def test_hops_are_no_part_of_what_is_saved() -> None:
    model = EEGNN(WIDTH, 8, 3, LAYERS)
    x = torch.randn(N, WIDTH)
    explain(model, GNNExplainer(epochs=1), x, BOTH)
    assert not [name for name in model.state_dict() if "hop" in name]
    assert not [name for name, _ in model.named_parameters() if "hop" in name]
    adj = Adjacency.from_edge_index(BOTH, N)
    torch.testing.assert_close(model(x, adj), model(x, BOTH))
