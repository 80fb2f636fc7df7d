"""Graphs and models on a device that is not the CPU: simulated here, see `tests/accelerator.py`."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from eegnn import EEGNN, SASGNN, Adjacency, EarlyExit, SASConv
from eegnn._edge_values import WITHOUT_FLOAT64
from eegnn._graph_cache import adjacency_of
from eegnn._spmm import CSR_DEVICES
from eegnn.analysis.dirichlet import dirichlet_energy
from eegnn.analysis.jacobian import spectrum
from eegnn.analysis.layers import outputs_by_layer
from eegnn.analysis.oracle import oracle
from eegnn.analysis.sensitivity import layer_sensitivity
from eegnn.engine.blocked import infer, partition
from eegnn.graph import Norm
from eegnn.io import MODELS, load, save
from eegnn.nn.heads import MLP, Confidence, Temperature
from eegnn.nn.model import GraphModel
from eegnn.nn.pooling import POOLS
from eegnn.train.metrics import METRICS, score_of
from eegnn.typing import Level
from eegnn.zoo.registry import ENTRIES
from tests.accelerator import DEVICE, recorded, without_float64
from tests.graphs import NORMS
from tests.train.problems import ring

N = 12
EDGES = ring(N, chords=4)
WEIGHT = torch.rand(EDGES.size(1), generator=torch.Generator().manual_seed(0))
X = torch.randn(N, 3, generator=torch.Generator().manual_seed(1))


@pytest.fixture(params=["as CUDA", "as MPS"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the device have CSR products and float64, or neither."""
    if request.param == "as CUDA":
        monkeypatch.setattr("eegnn._spmm.CSR_DEVICES", CSR_DEVICES | {"simulated"})
    else:
        monkeypatch.setattr("eegnn._edge_values.WITHOUT_FLOAT64", WITHOUT_FLOAT64 | {"simulated"})
    return str(request.param)


def twins(kind: type[GraphModel], **options: Any) -> tuple[GraphModel, GraphModel]:
    """The same model on the CPU and on the device."""
    torch.manual_seed(0)
    model = kind(3, 8, 2, num_layers=4, **options)
    return model, copy.deepcopy(model).to(DEVICE)


def batch_of(seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    sizes = (5, 3, 7)
    return Batch.from_data_list(
        [Data(x=torch.randn(n, 3, generator=generator), edge_index=ring(n)) for n in sizes]
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("made", ["there", "here"])
@pytest.mark.parametrize("options", [{}, {"edge_weight": WEIGHT}, {"directed": True}])
def test_propagation_is_that_of_the_cpu(
    kind: str, norm: Norm, made: str, options: dict[str, Any]
) -> None:
    edges = EDGES[:, ::2] if options.get("directed") else EDGES
    here = Adjacency.from_edge_index(edges, N, **options)
    with without_float64() if kind == "as MPS" else recorded():
        if made == "here":
            there = here.to(DEVICE)
        else:
            moved = {name: _moved(value) for name, value in options.items()}
            there = Adjacency.from_edge_index(edges.to(DEVICE), N, **moved)
        assert there.device == DEVICE
        for h in (X, X[:, 0], torch.stack([X, 2 * X])):
            own, far = h.clone().requires_grad_(), h.to(DEVICE).requires_grad_()
            out, expected = there.propagate(far, norm), here.propagate(own, norm)
            torch.testing.assert_close(out.cpu(), expected)
            out.square().sum().backward()
            expected.square().sum().backward()
            assert far.grad is not None
            assert own.grad is not None
            torch.testing.assert_close(far.grad.cpu(), own.grad)


def _moved(value: Any) -> Any:
    return value.to(DEVICE) if isinstance(value, Tensor) else value


@pytest.mark.parametrize("pool", POOLS)
def test_pools_are_those_of_the_cpu(pool: str) -> None:
    batch = batch_of(0)
    here = Adjacency.from_edge_index(batch.edge_index, batch.num_nodes, batch.batch)
    expected = POOLS[pool](batch.x, here)
    torch.testing.assert_close(POOLS[pool](batch.x.to(DEVICE), here.to(DEVICE)).cpu(), expected)


def test_what_is_one_tensor_stays_one_when_a_graph_moves() -> None:
    adj = Adjacency.from_edge_index(EDGES, N)
    adj.propagate(X, "sym")
    value, transposed = adj.to(DEVICE)._norm_values("sym", torch.float32)
    assert value is transposed


def test_a_pyg_data_takes_its_adjacency_along() -> None:
    data = Data(x=X, adj=Adjacency.from_edge_index(EDGES, N))
    assert data.to(DEVICE).adj.device == DEVICE
    assert data.to(DEVICE).cpu().adj.device.type == "cpu"
    assert data.to("meta").adj.device.type == "meta"


@pytest.mark.parametrize("model", [SASGNN, EEGNN])
@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("edge_index", {"x": X.to(DEVICE), "edge_index": EDGES}),
        ("edge_index", {"x": X.to(DEVICE), "edge_index": Adjacency.from_edge_index(EDGES, N)}),
        ("x", {"x": X, "edge_index": EDGES.to(DEVICE)}),
        (
            "edge_attr",
            {"x": X.to(DEVICE), "edge_index": EDGES.to(DEVICE), "edge_attr": WEIGHT.view(-1, 1)},
        ),
        (
            "batch",
            {
                "x": X.to(DEVICE),
                "edge_index": EDGES.to(DEVICE),
                "batch": torch.zeros(N, dtype=torch.int64),
            },
        ),
        (
            "edge_weight",
            {"x": X.to(DEVICE), "edge_index": EDGES.to(DEVICE), "edge_weight": WEIGHT},
        ),
    ],
)
def test_inputs_elsewhere_are_refused_at_the_door(
    model: type[GraphModel], name: str, inputs: dict[str, Any]
) -> None:
    built = model(3, 4, 2, edge_dim=1).to(DEVICE)
    with pytest.raises(ValueError, match=rf"^{name} is on cpu, but the model is on simulated:0"):
        built(**inputs)


def test_layers_refuse_edges_elsewhere() -> None:
    h, heads = X.to(DEVICE), (Confidence(MLP(3, 4, 2)), Temperature(MLP(3, 4, 1)))
    for layer in (SASConv(3), EarlyExit(SASConv(3), *heads, num_layers=2)):
        with pytest.raises(ValueError, match="edge_index is on cpu, but h is on simulated:0"):
            layer.to(DEVICE)(h, EDGES)
    with pytest.raises(ValueError, match="batch is on cpu, but edge_index is on simulated:0"):
        adjacency_of(EDGES.to(DEVICE), N, torch.zeros(N, dtype=torch.int64))


def test_an_edge_list_and_its_copy_elsewhere_have_graphs_of_their_own() -> None:
    there = EDGES.to(DEVICE)
    assert adjacency_of(EDGES, N).device.type == "cpu"
    assert adjacency_of(there, N).device == DEVICE
    assert adjacency_of(there, N) is adjacency_of(there, N)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"after_exit": "freeze"},
        {"step_size": "mean"},
        {"confidence": "sas", "head_layers": 2},
        {"recompute": True},
        {"continue_bias": None},
    ],
)
def test_exits_are_those_of_the_cpu(kind: str, options: dict[str, Any], training: bool) -> None:
    found = []
    for model in twins(EEGNN, **options):
        device = model.encoder.bias.device
        torch.manual_seed(1)
        with without_float64() if kind == "as MPS" else recorded():
            model.train(training)
            out, exits = model(X.to(device), EDGES.to(device), return_exits=True)
            (out.square().sum() + exits.cost).backward()
            predicted, left = model.predict(X.to(device), EDGES.to(device))
        tensors = (out, exits.layer, exits.time, exits.tau, exits.cost, predicted, left.layer)
        assert {tensor.device for tensor in tensors} == {device}
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        found.append([tensor.detach().cpu() for tensor in (*tensors, *gradients)])
    torch.testing.assert_close(found[1], found[0])


def test_a_model_built_on_the_default_device_works() -> None:
    torch.set_default_device(DEVICE)
    try:
        x, edge_index = torch.ones(N, 3), EDGES.to(DEVICE)
        model = EEGNN(3, 8, 2, num_layers=3, level="graph", dropout=0.5)
        out = model(x, edge_index)
        out.sum().backward()
        assert out.device == model.predict(x, edge_index)[1].layer.device == DEVICE
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize("name", ENTRIES)
def test_the_default_device_does_not_matter_to_a_model_elsewhere(name: str) -> None:
    entry, batch = ENTRIES[name], batch_of(0)
    model = MODELS[entry.kind](3, 8, 2, num_layers=2, level="graph", dropout=0.5, **entry.options)
    blocks = partition(EDGES, N, 3)
    torch.set_default_device("meta")
    try:
        model(batch.x, batch.edge_index, batch=batch.batch).sum().backward()
        out, exits = model.predict(batch.x, batch.edge_index, batch=batch.batch)
        assert {out.device.type, exits.layer.device.type} == {"cpu"}
        with torch.device("cpu"):
            small = SASGNN(3, 4, 2, num_layers=2)
        assert infer(small, X, blocks)[0].device.type == "cpu"
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("assign", [True, False])
def test_a_model_built_on_the_meta_device_is_filled(name: str, assign: bool) -> None:
    entry = ENTRIES[name]
    torch.manual_seed(0)
    model = MODELS[entry.kind](3, 8, 2, num_layers=2, **entry.options)
    with torch.device("meta"):
        built = MODELS[entry.kind](3, 8, 2, num_layers=2, **entry.options)
    if not assign:
        built.to_empty(device="cpu")
    built.load_state_dict(model.state_dict(), assign=assign)
    found = []
    for each in (model, built):
        torch.manual_seed(1)
        found.append(each.predict(X, EDGES)[0])
    assert torch.equal(*found)


@pytest.mark.parametrize("storage", ["free", "paper"])
def test_weights_drawn_after_the_meta_device_have_their_structure(storage: Any) -> None:
    with torch.device("meta"):
        conv = SASConv(5, storage=storage)
    conv.to_empty(device="cpu").reset_parameters()
    assert torch.equal(conv.omega, -conv.omega.T)
    assert torch.equal(conv.weight, conv.weight.T)
    assert conv.omega.abs().sum() > 0


def test_a_model_is_saved_from_a_device_and_loaded_onto_it(tmp_path: Any) -> None:
    model = twins(EEGNN)[1]
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors", map_location=DEVICE)
    assert {tensor.device for tensor in again.state_dict().values()} == {DEVICE}
    expected = model.predict(X.to(DEVICE), EDGES.to(DEVICE))[0].cpu()
    assert torch.equal(load(tmp_path / "model.safetensors").predict(X, EDGES)[0], expected)


@pytest.mark.parametrize("metric", METRICS)
def test_a_score_does_not_depend_on_the_device(metric: str) -> None:
    out = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    of_classes = metric in ("roc_auc", "accuracy", "f1", "hits@20", "mrr")
    y = (torch.arange(20) % 2) if of_classes else (out > 0.3).float()
    assert score_of(out.to(DEVICE), y.to(DEVICE), metric) == score_of(out, y, metric)


def test_analyses_are_those_of_the_cpu(kind: str) -> None:
    found: list[list[Tensor]] = []
    y = torch.arange(N) % 2
    with without_float64() if kind == "as MPS" else recorded():
        for model in twins(EEGNN):
            device = model.encoder.bias.device
            x, edges = X.to(device), EDGES.to(device)
            adj = Adjacency.from_edge_index(edges, N)
            outputs = outputs_by_layer(model, x, adj)
            conv: Any = model.get_submodule("loop.step")
            best = oracle(outputs, y.to(device), "accuracy")
            tensors = [
                layer_sensitivity(model, x, edges, copies=5),
                dirichlet_energy(x, adj),
                spectrum(conv.omega).abs(),
                outputs.out,
                best.layer,
            ]
            found.append([tensor.detach().cpu() for tensor in tensors])
            assert outputs.cpu().out.device.type == "cpu"
    for there, here in zip(*found, strict=True):
        torch.testing.assert_close(there, here, check_dtype=False, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("name", ENTRIES)
def test_deterministic_algorithms_are_enough(name: str, level: Level) -> None:
    """They also fill new memory with NaN: nothing is read before it is written."""
    entry, data = ENTRIES[name], batch_of(0).to(DEVICE)
    batch = data.batch if level == "graph" else None
    torch.manual_seed(0)
    model = MODELS[entry.kind](3, 8, 2, num_layers=2, level=level, **entry.options).to(DEVICE)
    torch.use_deterministic_algorithms(True)
    try:
        out = model(data.x, data.edge_index, batch=batch)
        out.sum().backward()
        predicted, exits = model.predict(data.x, data.edge_index, batch=batch)
    finally:
        torch.use_deterministic_algorithms(False)
    for tensor in (out, predicted, exits.time, exits.cost):
        assert tensor.cpu().isfinite().all()


def counted(call: Callable[[], Tensor]) -> Counter[str]:
    with recorded() as waits:
        call().sum().backward()
    return waits


@pytest.mark.parametrize(("kind_of_model", "exits"), [(SASGNN, 0), (EEGNN, 1)])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_known_graph_is_waited_for_once_at_most(
    kind_of_model: type[GraphModel], exits: int, level: str
) -> None:
    """And a new one five times, with the check of its features; it was 15 times."""
    model = twins(kind_of_model, level=level)[1]
    data = batch_of(0).to(DEVICE)
    inputs = (data.x, data.edge_index, None, data.batch)
    first = counted(lambda: model(*inputs))
    assert sum(first.values()) <= 4 + exits, first
    again = counted(lambda: model(*inputs))
    assert sum(again.values()) == exits, again
    data.x.mul_(2)  # the features have changed, and are looked at again
    assert sum(counted(lambda: model(*inputs)).values()) == exits + 1


def test_features_that_become_infinite_in_place_are_found() -> None:
    for device in ("cpu", DEVICE):
        model, x = SASGNN(3, 4, 2).to(device), X.clone().to(device)
        model(x, EDGES.to(device))
        x[3, 1] = float("inf")
        with pytest.raises(ValueError, match="x holds NaN or infinite values, first in row 3"):
            model(x, EDGES.to(device))


def test_features_in_inference_mode_are_checked_each_time() -> None:
    model = SASGNN(3, 4, 2)
    with torch.inference_mode():
        x = X.clone()
        model(x, EDGES)
        x[0, 0] = float("nan")
        with pytest.raises(ValueError, match="x holds NaN"):
            model(x, EDGES)
