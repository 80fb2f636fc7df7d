"""What holds for every baseline, whatever its layers are."""

from __future__ import annotations

import dataclasses
import inspect
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from eegnn.nn.exits import Exits
from eegnn.nn.fixed_depth import FixedDepthModel
from eegnn.nn.model import GraphModel
from eegnn.zoo.adgn import ADGN
from eegnn.zoo.apgcn import APGCN
from eegnn.zoo.cognn import CoGNN
from eegnn.zoo.drew import DRew
from eegnn.zoo.gat import GAT
from eegnn.zoo.gatedgcn import GatedGCN
from eegnn.zoo.gcn import GCN
from eegnn.zoo.gcnii import GCNII
from eegnn.zoo.gin import GIN
from eegnn.zoo.gine import GINE
from eegnn.zoo.gps import GPS
from eegnn.zoo.graff import GRAFF
from eegnn.zoo.graphcon import GraphCON
from eegnn.zoo.gt import GT
from eegnn.zoo.nodeformer import NodeFormer
from eegnn.zoo.phdgn import PHDGN
from eegnn.zoo.polynormer import Polynormer
from eegnn.zoo.sage import GraphSAGE
from eegnn.zoo.separated import SeparatedGNN
from eegnn.zoo.sgformer import SGFormer
from eegnn.zoo.swan import SWAN
from eegnn.zoo.tuned import TunedGNN
from tests.graphs import both_ways
from tests.zoo.examples import GRAPHS, adjacency, ready, states

LAYER: dict[str, Any] = {"activation": "tanh", "conv_norm": "layer", "residual": True}
MODELS: list[tuple[type[GraphModel], dict[str, Any]]] = [
    (GCN, LAYER),
    (GCN, {"shared": True, "activation": "tanh"}),
    (GraphSAGE, LAYER),
    (GAT, {**LAYER, "heads": 2}),
    (GIN, LAYER),
    (GINE, LAYER),
    (GINE, {**LAYER, "edge_dim": 3}),
    (GCNII, {**LAYER, "alpha": 0.2, "theta": 1.0}),
    (GatedGCN, LAYER),
    (GatedGCN, {**LAYER, "edge_dim": 3}),
    (GT, LAYER),
    (GT, {**LAYER, "heads": 2, "edge_dim": 3}),
    (ADGN, {"phi": "gcn"}),
    (ADGN, {"phi": "sum", "activation": "relu", "shared": False}),
    (GRAFF, {"source": True, "activation": "tanh"}),
    (GRAFF, {"w_style": "sum", "omega_style": "zero", "shared": False}),
    (SWAN, {"phi": "antisymmetric"}),
    (SWAN, {"phi": "sum", "beta": -1.0, "shared": False}),
    (GraphCON, {"step_size": 0.5}),
    (PHDGN, {}),
    (PHDGN, {"damping": "mlp", "forcing": "dgn", "phi": "gcn", "readout": "p"}),
    (PHDGN, {"damping": "param", "forcing": "mlp", "readout": "q"}),
    (DRew, {}),
    (DRew, {"nu": 2, "norm": True}),
    (GPS, {}),
    (GPS, {"heads": 2, "edge_dim": 2}),
    (GPS, {"conv": "gine", "conv_dropout": 0.1, "attn_dropout": 0.1}),
    (GPS, {"conv": "gine", "edge_dim": 2}),
    (GPS, {"conv": "gcn", "conv_norm": "layer"}),
    (SGFormer, {}),
    (SGFormer, {"heads": 2, "attention_layers": 2, "pool": "add"}),
    (TunedGNN, {"conv_norm": "layer"}),
    (TunedGNN, {"conv": "sage", "residual": True, "conv_norm": "batch", "linear_encoder": True}),
    (TunedGNN, {"conv": "gat", "residual": True}),
    (SeparatedGNN, {}),
    (SeparatedGNN, {"attention": "gt", "heads": 2}),
    (NodeFormer, {}),
    (NodeFormer, {"heads": 2, "random_features": 5, "relational_bias": False}),
    (Polynormer, {"heads": 2}),
    (Polynormer, {"beta": 0.7, "conv_norm": "layer"}),
    (Polynormer, {"local_attn": False, "conv_norm": "batch"}),
    (APGCN, {"propagation_dropout": 0.2}),
    (APGCN, {"decoder_layers": 3, "pool": "add"}),
    (CoGNN, {"layer_norm": True, "skip": True, "activation": "gelu", "action_layers": 2}),
    (CoGNN, {"environment": "sum", "action": "sum", "temperature": 0.3, "decoder_layers": 2}),
]  # fmt: skip


def name(value: object) -> str:
    if isinstance(value, type):
        return value.__name__
    assert isinstance(value, dict)
    return "-".join(map(str, value.values()))


every_model = pytest.mark.parametrize(("kind", "options"), MODELS, ids=name)
fixed_depth_models = pytest.mark.parametrize(
    ("kind", "options"), [case for case in MODELS if case[0] is not APGCN], ids=name
)
differentiable_models = pytest.mark.parametrize(  # those of Co-GNN are straight-through estimates
    ("kind", "options"), [case for case in MODELS if case[0] is not CoGNN], ids=name
)
levels = pytest.mark.parametrize("level", ["node", "graph"])
Kind = type[GraphModel]
Options = dict[str, Any]


def build(kind: Kind, options: Options, num_layers: int = 3) -> Any:
    return ready(kind(3, 8, 2, num_layers, **options))


def graphs_for(model: GraphModel) -> list[Data]:
    """Unlike sizes, among them a single node and nodes without edges."""
    built = []
    for seed, (n, pairs) in enumerate(GRAPHS):
        edges = both_ways(pairs)
        graph = Data(x=states(n, model.in_channels, seed), edge_index=edges)
        if model.edge_dim is not None:
            graph.edge_attr = states(edges.size(1), model.edge_dim, seed + 10)
        built.append(graph)
    return built


def predict(model: GraphModel, graph: Data, batch: Tensor | None = None, **options: Any) -> Any:
    """Outputs and exits; without the noise that Co-GNN draws in evaluation too."""
    if isinstance(model, CoGNN):
        options["sample"] = False
    return model.predict(graph.x, graph.edge_index, graph.edge_attr, batch, **options)


@levels
@every_model
def test_a_batch_equals_its_graphs_one_by_one(kind: Kind, options: Options, level: str) -> None:
    model = build(kind, {**options, "level": level})
    several = graphs_for(model)
    batch = Batch.from_data_list(several)
    outs, exits = zip(*(predict(model, graph) for graph in several), strict=True)
    alone = torch.cat(outs)
    assert alone.std() > 1e-3
    together, exits_together = predict(model, batch, batch.batch)
    assert torch.allclose(together, alone, atol=1e-10)
    assert torch.equal(exits_together.layer, torch.cat([each.layer for each in exits]))


@every_model
def test_nodes_have_no_order(kind: Kind, options: Options) -> None:
    model = build(kind, options)
    graph = graphs_for(model)[1]
    order = torch.tensor([3, 6, 0, 5, 7, 1, 2, 4])
    renamed = Data(graph.x[order], order.argsort()[graph.edge_index], graph.edge_attr)
    assert torch.allclose(predict(model, renamed)[0], predict(model, graph)[0][order], atol=1e-10)


@every_model
def test_every_weight_gets_a_finite_gradient(kind: Kind, options: Options) -> None:
    """With an empty graph in the batch. Some gradients are 0 in training: batch normalisation
    removes a bias before it, and dropout may remove the rest."""
    model = build(kind, {**options, "dropout": 0.1}, num_layers=2)
    batch = Batch.from_data_list(graphs_for(model))
    number = torch.tensor([0, 1, 3, 4])[batch.batch]
    for training in (True, False):
        torch.manual_seed(0)
        model.train(training).zero_grad()
        out, exits = model(batch.x, batch.edge_index, batch.edge_attr, number, return_exits=True)
        (out.square().sum() + exits.cost).backward()
        for weight, parameter in model.named_parameters():
            assert parameter.grad is not None, weight
            assert parameter.grad.isfinite().all(), weight
            if not weight.endswith("lin_key.bias"):  # a softmax does not see that all keys shift
                assert training or parameter.grad.any(), weight


@differentiable_models
def test_gradients_are_those_of_finite_differences(kind: Kind, options: Options) -> None:
    model = build(kind, options, num_layers=2)
    graph = graphs_for(model)[0]
    x, edges, edge_attr = graph.x.requires_grad_(), graph.edge_index, graph.edge_attr
    assert torch.autograd.gradcheck(lambda x: model(x, edges, edge_attr), x, fast_mode=True)


@levels
@every_model
def test_small_graphs_work(kind: Kind, options: Options, level: str) -> None:
    """A single node, nodes without edges and no nodes at all; with features and without."""
    for in_channels in (3, 0):
        model = kind(in_channels, 8, 2, 3, **{**options, "level": level})
        edge_attr = None if model.edge_dim is None else torch.zeros(0, model.edge_dim)
        for n in (3, 1, 0):
            for training in (True, False):
                x = torch.ones(n, 3) if in_channels else None
                adj = adjacency(n, [])
                out, exits = model.train(training)(x, adj, edge_attr, return_exits=True)
                assert out.shape == (n if level == "node" else 1, 2)
                assert out.dtype == torch.float32
                assert out.isfinite().all()
                assert exits.cost.isfinite()


@every_model
@pytest.mark.parametrize(("limit", "layers"), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_max_layers_gives_a_shallower_model(
    kind: Kind, options: Options, limit: int, layers: int
) -> None:
    deep = build(kind, options)
    shallow = kind(3, 8, 2, layers, **options).double().eval()
    shallow.load_state_dict(deep.state_dict(), strict=False)
    graph = graphs_for(deep)[0]
    out, exits = predict(deep, graph, max_layers=limit)
    expected, exits_expected = predict(shallow, graph)
    assert torch.equal(out, expected)
    assert torch.equal(exits.layer, exits_expected.layer)
    assert exits.num_layers == 3


@fixed_depth_models
def test_each_layer_changes_something_and_every_unit_takes_all(
    kind: Kind, options: Options
) -> None:
    model = build(kind, options)
    graph = graphs_for(model)[0]
    outs = []
    for limit in (1, 2, 3):
        out, exits = predict(model, graph, max_layers=limit)
        outs.append(out)
        assert isinstance(exits, Exits)
        assert exits.layer.tolist() == [limit] * 7
        step_size = model.step_size if isinstance(model, FixedDepthModel) else 1.0
        torch.testing.assert_close(exits.time, torch.full_like(exits.time, limit * step_size))
        assert exits.cost.item() == pytest.approx(limit / 3)
    assert all(not torch.allclose(a, b) for a, b in pairwise(outs))


@fixed_depth_models
def test_a_model_without_exits_has_none_to_tune(kind: Kind, options: Options) -> None:
    model = build(kind, options)
    with pytest.raises(ValueError, match="exit_threshold and sample need a model with exits"):
        predict(model, graphs_for(model)[0], exit_threshold=0.5)


@every_model
def test_reset_draws_all_weights_anew(kind: Kind, options: Options) -> None:
    model = build(kind, options)
    before = {weight: parameter.clone() for weight, parameter in model.named_parameters()}
    model.reset_parameters()
    after = dict(model.named_parameters())
    assert [weight for weight in before if torch.equal(before[weight], after[weight])] == []


@every_model
def test_low_precision_keeps_states_in_full(kind: Kind, options: Options) -> None:
    model = build(kind, options).float()
    graph = graphs_for(model)[0]
    graph = graph.apply(lambda value: value.float() if value.is_floating_point() else value)
    full, _ = predict(model, graph)
    with torch.autocast("cpu", torch.bfloat16):
        low, exits = predict(model, graph)
    assert low.isfinite().all()
    if kind is APGCN:
        assert exits.time.dtype == torch.float32
    if kind not in (APGCN, CoGNN):  # which may decide otherwise
        assert torch.allclose(full, low.float(), rtol=0.2, atol=0.1 * float(full.abs().max()))


@every_model
def test_its_config_builds_it_again(kind: Kind, options: Options) -> None:
    model = build(kind, options)
    again = kind(**model.config).double().eval()
    again.load_state_dict(model.state_dict())
    graph = graphs_for(model)[0]
    assert torch.equal(predict(again, graph)[0], predict(model, graph)[0])
    sizes = {"in_channels": 3, "hidden_channels": 8, "out_channels": 2, "num_layers": 3}
    assert again.config == model.config == {**kind.defaults(), **sizes, **options}
    assert repr(model) == f"{kind.__name__}(3, 8, 2, num_layers=3, level='node')"


@every_model
def test_the_constructor_names_every_argument(kind: Kind, options: Options) -> None:
    signature = inspect.signature(kind).parameters
    assert [*signature][:5] == [
        "in_channels", "hidden_channels", "out_channels", "num_layers", "level"
    ]  # fmt: skip
    keywords = [*signature.values()][5:]
    assert {parameter.kind for parameter in keywords} == {inspect.Parameter.KEYWORD_ONLY}
    assert signature.keys() == kind.defaults().keys()
    for base in kind.__mro__[: kind.__mro__.index(GraphModel)]:  # no decorator was forgotten
        declared = {
            key for key, hint in inspect.get_annotations(base).items() if "ClassVar" not in hint
        }
        assert declared - {"_"} <= {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize(
    ("kind", "options", "former"),
    [
        (CoGNN, {}, {"learned_temperature": "temperature"}),
        (
            PHDGN,
            {"damping": "mlp", "forcing": "dgn"},
            {"damping_term": "damping", "forcing_term": "forcing"},
        ),
        (Polynormer, {}, {"global_attention": "global_layers"}),
    ],
    ids=name,
)
def test_weights_saved_under_former_names_are_loaded(
    kind: Kind, options: Options, former: dict[str, str]
) -> None:
    model = build(kind, options)
    saved = {}
    for key, value in model.state_dict().items():
        first, _, rest = key.partition(".")
        saved[f"{former.get(first, first)}.{rest}".removesuffix(".")] = value
    assert saved.keys() != model.state_dict().keys()
    again = kind(**model.config).double()
    again.load_state_dict(saved)
    assert all(
        torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True)
    )


@every_model
def test_edge_features_reach_the_prediction_or_are_refused(kind: Kind, options: Options) -> None:
    if not kind.uses_edges or options.get("conv") == "gcn":
        with pytest.raises(ValueError, match=f"{kind.__name__} takes no edge features"):
            kind(3, 8, 2, **{**options, "edge_dim": 3})
        model = build(kind, options)
        graph = graphs_for(model)[0]
        with pytest.raises(ValueError, match="edge_attr was given"):
            model(graph.x, graph.edge_index, states(10, 1))
        return
    model = build(kind, {**options, "edge_dim": 3})
    graph = graphs_for(model)[0]
    out, _ = predict(model, graph)
    other, _ = predict(model, Data(graph.x, graph.edge_index, 2 * graph.edge_attr))
    assert not torch.allclose(out, other)
    if kind is not GPS:  # whose attention joins all nodes
        assert torch.allclose(out[6], other[6])  # no edge ends at the isolated node
    with pytest.raises(ValueError, match="edge_attr is needed: the model has edge_dim=3"):
        model(graph.x, graph.edge_index)


@every_model
def test_pairs_are_decoded_from_the_states_of_both_ends(kind: Kind, options: Options) -> None:
    given = {**options, "level": "edge", "pool": "hadamard", "decoder_layers": 1}
    if "edge" not in kind.levels:
        with pytest.raises(ValueError, match="level must be one of 'node', 'graph', got 'edge'"):
            build(kind, given)
        return
    model, nodes = build(kind, given), build(kind, {**options, "pool": "mean"})
    pairs = torch.tensor([[0, 3, 6, 2], [1, 5, 6, 4]])
    graph = graphs_for(model)[0]
    same = {key: value for key, value in model.state_dict().items() if "decoder" not in key}
    nodes.load_state_dict(same, strict=False)
    h = nodes.embed(graph.x, graph.edge_index, graph.edge_attr)
    out, _ = predict(model, graph, edge_label_index=pairs)
    lin = model.decoder.mlp.lins[0]
    expected = [lin.weight @ (h[i] * h[j]) + lin.bias for i, j in pairs.T.tolist()]
    assert torch.allclose(out, torch.stack(expected), atol=1e-10)
