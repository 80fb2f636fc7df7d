"""What all graph neural ODEs have in common."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from eegnn import EarlyExit
from eegnn.graph import Adjacency
from eegnn.nn.model import GraphModel
from eegnn.zoo.adgn import ADGN, ADGNStep
from eegnn.zoo.graff import GRAFF, GRAFFStep
from eegnn.zoo.graphcon import GraphCON
from eegnn.zoo.ode import EulerModel
from eegnn.zoo.phdgn import PHDGN
from eegnn.zoo.swan import SWAN, SWANStep
from tests.graphs import both_ways
from tests.zoo.ode_examples import GRAPHS, adjacency, lively, states

EULER: list[tuple[type[EulerModel], dict[str, Any]]] = [
    (ADGN, {"phi": "gcn"}),
    (ADGN, {"phi": "sum", "activation": "relu"}),
    (GRAFF, {"source": True, "activation": "tanh"}),
    (GRAFF, {"w_style": "sum", "omega_style": "zero"}),
    (SWAN, {"phi": "antisymmetric"}),
    (SWAN, {"phi": "sum", "beta": -1.0}),
]
MODELS: list[tuple[type[GraphModel], dict[str, Any]]] = [
    *EULER,
    (GraphCON, {"step_size": 0.5}),
    (PHDGN, {}),
    (PHDGN, {"damping": "mlp", "forcing": "dgn", "phi": "gcn", "readout": "p"}),
    (PHDGN, {"damping": "param", "forcing": "mlp", "readout": "q"}),
]


def name(value: object) -> str:
    if isinstance(value, type):
        return value.__name__
    return "-".join(map(str, value.values())) if isinstance(value, dict) else str(value)


every_model = pytest.mark.parametrize(("kind", "options"), MODELS, ids=name)
every_euler_model = pytest.mark.parametrize(("kind", "options"), EULER, ids=name)


def build(kind: type[GraphModel], num_layers: int = 3, **options: Any) -> Any:
    return lively(kind(3, 4, 2, num_layers, **options)).eval()


def inputs(graph: int = 1) -> tuple[Tensor, Tensor]:
    n, pairs = GRAPHS[graph]
    return states(n, 3), both_ways(pairs)


@every_model
def test_nodes_have_no_order(kind: type[GraphModel], options: dict[str, Any]) -> None:
    model, (x, edges) = build(kind, **options), inputs()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    new_name = order.argsort()
    torch.testing.assert_close(
        model(x[order], new_name[edges]), model(x, edges)[order], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("level", ["node", "graph"])
@every_model
def test_a_batch_equals_its_graphs_one_by_one(
    kind: type[GraphModel], options: dict[str, Any], level: str
) -> None:
    model = build(kind, level=level, **options)
    several = [
        Data(x=states(n, 3, seed=n), edge_index=both_ways(pairs)) for n, pairs in [*GRAPHS, (1, [])]
    ]
    batch = Batch.from_data_list(several)
    together = model(batch.x, batch.edge_index, batch=batch.batch)
    alone = [model(g.x, Adjacency.from_edge_index(g.edge_index, len(g.x))) for g in several]
    torch.testing.assert_close(together, torch.cat(alone), rtol=0, atol=1e-12)


@every_model
def test_every_parameter_gets_a_gradient(kind: type[GraphModel], options: dict[str, Any]) -> None:
    model, (x, edges) = build(kind, **options), inputs()
    model(x, edges).square().sum().backward()
    unmoved = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    ]
    assert unmoved == []


@every_model
def test_gradients_are_those_of_finite_differences(
    kind: type[GraphModel], options: dict[str, Any]
) -> None:
    model, (x, edges) = build(kind, num_layers=2, **options), inputs(0)
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: model(x, edges), x, fast_mode=True)


@every_model
def test_graphs_without_features_or_edges_work(
    kind: type[GraphModel], options: dict[str, Any]
) -> None:
    model = kind(0, 4, 2, 3, **options)
    out = model(None, adjacency(*GRAPHS[2]))
    assert out.shape == (3, 2)
    assert out.dtype == torch.float32
    assert out.isfinite().all()
    torch.testing.assert_close(out[0], out[1])  # nothing tells the nodes apart


@every_model
@pytest.mark.parametrize("limit", [1, 2])
def test_max_layers_gives_a_shallower_model(
    kind: type[GraphModel], options: dict[str, Any], limit: int
) -> None:
    deep, (x, edges) = build(kind, **options), inputs()
    out, exits = deep.predict(x, edges, max_layers=limit)
    assert exits.layer.tolist() == [limit] * len(x)
    torch.testing.assert_close(exits.time, torch.full_like(exits.time, limit * deep.step_size))
    shallow = kind(3, 4, 2, limit, **options).double()
    shallow.load_state_dict(deep.state_dict())
    assert torch.equal(out, shallow(x, edges))


@every_model
def test_reset_draws_all_weights_anew(kind: type[GraphModel], options: dict[str, Any]) -> None:
    model = build(kind, **options)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    model.reset_parameters()
    same = [name for name, weight in model.named_parameters() if torch.equal(weight, before[name])]
    assert same == []


@every_euler_model
def test_weights_are_shared_unless_told_otherwise(
    kind: type[EulerModel], options: dict[str, Any]
) -> None:
    shared, several = build(kind, **options), build(kind, shared=False, **options)
    assert len(several.steps) == 3
    for step in several.steps:
        step.load_state_dict(shared.steps[0].state_dict())
    rest = {k: v for k, v in shared.state_dict().items() if not k.startswith("steps.")}
    several.load_state_dict(rest, strict=False)
    x, edges = inputs()
    assert torch.equal(several(x, edges), shared(x, edges))
    several.steps[1].reset_parameters()
    assert not torch.allclose(several(x, edges), shared(x, edges))


@pytest.mark.parametrize("step", [ADGNStep(4), GRAFFStep(4), SWANStep(4)], ids=repr)
@pytest.mark.parametrize("level", ["node", "graph"])
def test_the_exit_loop_takes_the_same_steps(
    step: ADGNStep | GRAFFStep | SWANStep, level: Any
) -> None:
    lively(step)

    def stay(h: Tensor, adj: Adjacency) -> Tensor:
        return h.new_tensor([50.0, -50.0]).expand(len(h), 2)

    def certain(h: Tensor, adj: Adjacency) -> Tensor:
        return h.new_ones(len(h))

    loop = EarlyExit(step, stay, certain, 3, level, step_size=0.1, pool="add").eval()
    n, pairs = GRAPHS[1]
    adj, h = adjacency(n, pairs), states(n)
    out, exits = loop(h, adj)
    for _ in range(3):
        h = h + 0.1 * step(h, adj)
    expected = h if level == "node" else h.sum(0, keepdim=True)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)
    assert set(exits.layer.tolist()) == {3}


@every_model
def test_mixed_precision_keeps_the_states_in_single(
    kind: type[GraphModel], options: dict[str, Any]
) -> None:
    model, (x, edges) = build(kind, **options).float(), inputs()
    plain = model(x.float(), edges)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model(x.float(), edges)
    torch.testing.assert_close(mixed.float(), plain, rtol=0.1, atol=0.1)


@every_model
def test_a_step_has_a_size(kind: type[GraphModel], options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="step_size must be above 0"):
        kind(3, 4, 2, 3, **{**options, "step_size": 0.0})


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (ADGN, {"phi": "mean"}, "phi must be one of 'gcn', 'sum', got 'mean'"),
        (ADGN, {"gamma": -0.1}, "gamma must be at least 0, got -0.1"),
        (ADGN, {"activation": "gelu"}, "activation must be one of"),
        (GRAFF, {"w_style": "prod"}, "w_style must be one of 'diag_dom', 'sum', got 'prod'"),
        (GRAFF, {"omega_style": "full"}, "omega_style must be one of 'diag', 'zero', got 'full'"),
        (SWAN, {"phi": "mean"}, "phi must be one of 'antisymmetric', 'gcn', 'sum', got 'mean'"),
        (GraphCON, {"alpha": -1}, "alpha must be at least 0, got -1"),
        (PHDGN, {"damping": "no"}, "damping must be one of 'param', 'param+', 'mlp', 'dgn', got"),
        (PHDGN, {"forcing": "no"}, "forcing must be one of 'mlp', 'dgn', got 'no'"),
        (PHDGN, {"readout": "qp"}, "readout must be one of 'p', 'q', 'pq', got 'qp'"),
        (PHDGN, {"phi": "mean"}, "phi must be one of 'gcn', 'sum', got 'mean'"),
    ],
    ids=name,
)
def test_wrong_options_are_named(
    kind: type[GraphModel], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        kind(3, 4, 2, 3, **options)


@every_euler_model
def test_shared_is_yes_or_no(kind: type[GraphModel], options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="shared must be True or False, got 1"):
        kind(3, 4, 2, 3, **{**options, "shared": 1})
