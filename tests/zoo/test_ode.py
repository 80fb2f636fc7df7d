"""What all graph neural ODEs have in common."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

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
from tests.zoo.examples import GRAPHS, adjacency, drawn, states

EULER: list[tuple[type[EulerModel], dict[str, Any]]] = [
    (ADGN, {"phi": "gcn"}),
    (ADGN, {"phi": "sum", "activation": "relu"}),
    (GRAFF, {"source": True, "activation": "tanh"}),
    (GRAFF, {"w_style": "sum", "omega_style": "zero"}),
    (SWAN, {"phi": "antisymmetric"}),
    (SWAN, {"phi": "sum", "beta": -1.0}),
]


def name(value: object) -> str:
    if isinstance(value, type):
        return value.__name__
    return "-".join(map(str, value.values())) if isinstance(value, dict) else str(value)


every_euler_model = pytest.mark.parametrize(("kind", "options"), EULER, ids=name)


def build(kind: type[GraphModel], num_layers: int = 3, **options: Any) -> Any:
    return drawn(kind(3, 4, 2, num_layers, **options)).eval()


@pytest.mark.parametrize("kind", [ADGN, GRAFF, SWAN, GraphCON, PHDGN])
def test_a_linear_encoder_starts_from_a_linear_map_of_the_features(kind: Any) -> None:
    linear, usual = build(kind, linear_encoder=True), build(kind)
    x, adj = states(4, 3), adjacency(4, [(0, 1), (1, 2)])
    start = x @ linear.encoder.weight.T + linear.encoder.bias
    assert (start < 0).any()
    assert torch.allclose(linear(x, adj), linear.evolve(start, adj)[0], atol=1e-12)
    assert torch.allclose(usual(x, adj), usual.evolve(start.relu(), adj)[0], atol=1e-12)


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
    n, pairs = GRAPHS[1]
    x, edges = states(n, 3), both_ways(pairs)
    assert torch.equal(several(x, edges), shared(x, edges))
    several.steps[1].reset_parameters()
    assert not torch.allclose(several(x, edges), shared(x, edges))


@pytest.mark.parametrize("step", [ADGNStep(4), GRAFFStep(4), SWANStep(4)], ids=repr)
@pytest.mark.parametrize("level", ["node", "graph"])
def test_the_exit_loop_takes_the_same_steps(
    step: ADGNStep | GRAFFStep | SWANStep, level: Any
) -> None:
    drawn(step)

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
