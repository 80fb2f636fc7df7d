"""On a real CUDA device: what `tests/test_devices.py` and `tests/train/test_devices.py` simulate.

No such device was at hand when these were written. They are skipped where there is none.
"""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data

from eegnn import EEGNN, SASGNN, Adjacency
from eegnn.compute import CPU, Compute
from eegnn.graph import Norm
from eegnn.io import MODELS
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches
from eegnn.train.loop import Trainer
from eegnn.train.run import RunFolder
from eegnn.typing import Level
from eegnn.zoo.registry import ENTRIES
from tests.graphs import NORMS
from tests.train.problems import (
    Killed,
    graph_problem,
    killed_after,
    node_problem,
    ring,
    small_config,
)
from tests.train.test_batches import seeded

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
N = 40
EDGES = ring(N, chords=30)


@pytest.fixture
def cuda() -> Compute:
    return Compute.choose("cuda")


@pytest.mark.parametrize("norm", NORMS)
def test_propagation_is_that_of_the_cpu(cuda: Compute, norm: Norm) -> None:
    x = torch.randn(N, 16)
    here = Adjacency.from_edge_index(EDGES, N)
    for there in (here.to(cuda.device), Adjacency.from_edge_index(EDGES.to(cuda.device), N)):
        far, own = x.to(cuda.device).requires_grad_(), x.clone().requires_grad_()
        torch.testing.assert_close(there.propagate(far, norm).cpu(), here.propagate(own, norm))
        there.propagate(far, norm).square().sum().backward()
        here.propagate(own, norm).square().sum().backward()
        assert far.grad is not None
        torch.testing.assert_close(far.grad.cpu(), own.grad)


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("name", ENTRIES)
def test_every_model_computes_as_on_the_cpu(cuda: Compute, name: str, level: Level) -> None:
    """In evaluation mode, since noise is drawn by the device."""
    entry = ENTRIES[name]
    torch.manual_seed(0)
    graphs = [Data(x=torch.randn(n, 3), edge_index=ring(n)) for n in (5, 9, 7)]
    data = Batch.from_data_list(graphs)
    model = MODELS[entry.kind](3, 8, 2, num_layers=3, level=level, **entry.options).eval()
    found = []
    for device in (torch.device("cpu"), cuda.device):
        own, here = copy.deepcopy(model).to(device), data.clone().to(device)
        batch = here.batch if level == "graph" else None
        sample = False if name == "cognn" else None
        out, exits = own.predict(here.x, here.edge_index, batch=batch, sample=sample)
        gradients = []
        if name != "cognn":  # which draws in evaluation too
            own(here.x, here.edge_index, batch=batch).square().sum().backward()
            gradients = [p.grad.cpu() for p in own.parameters() if p.grad is not None]
        found.append((out.cpu(), exits.layer.cpu(), gradients))
    assert torch.equal(found[1][1], found[0][1])
    torch.testing.assert_close(found[1][0], found[0][0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found[1][2], found[0][2], rtol=1e-3, atol=1e-4)


def begin(path: Path, problem: Any, compute: Compute, **settings: Any) -> Trainer:
    config = small_config(**settings)
    trainer = Trainer(config, problem, RunFolder(path), compute=compute)
    trainer.folder.start(config, problem.task, problem.scale, compute)
    return trainer


@pytest.mark.parametrize("precision", ["32", "bf16-mixed", "16-mixed"])
@pytest.mark.parametrize("problem", [node_problem(), graph_problem()], ids=["node", "graph"])
def test_a_run_learns_is_resumed_and_moves_to_the_cpu(
    precision: str, problem: Any, tmp_path: Path
) -> None:
    compute = Compute.choose("cuda", precision)
    settings = {"epochs": 9, "batch_size": 5, "options": {"dropout": 0.1}}
    with pytest.raises(Killed):
        begin(tmp_path, problem, compute, **settings).fit(killed_after(3))
    for where in (compute, CPU):
        trainer = Trainer(RunFolder(tmp_path).config(), problem, RunFolder(tmp_path), compute=where)
        trainer.resume()
        stop = killed_after(6) if where is compute else None
        with pytest.raises(Killed) if stop else warnings.catch_warnings():
            trainer.fit(stop)
    lines = RunFolder(tmp_path).metrics()
    assert [line["epoch"] for line in lines] == list(range(1, 10))
    assert lines[-1]["loss"] < lines[0]["loss"]


def waits(call: Any) -> int:
    """How often a call waits for the device."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(warning.message) for warning in found)


@pytest.mark.parametrize(("model", "exits"), [("sasgnn", 0), ("eegnn", 1)])
def test_a_step_on_a_known_graph_waits_once_at_most(
    cuda: Compute, model: str, exits: int, tmp_path: Path
) -> None:
    trainer = begin(tmp_path, node_problem(), cuda, model=model)
    (batch,) = trainer.batches.training(trainer.order)
    trainer._step(batch)
    assert waits(lambda: trainer._step(batch)) <= exits


@pytest.mark.parametrize("kind", [SASGNN, EEGNN])
def test_a_new_graph_is_waited_for_five_times_at_most(
    cuda: Compute, kind: type[GraphModel]
) -> None:
    model = kind(3, 8, 2, num_layers=3).to(cuda.device)
    x, edges = torch.randn(N, 3).to(cuda.device), EDGES.to(cuda.device)
    model(x.clone(), edges.clone())
    assert waits(lambda: model(x, edges)) <= 5


def test_batches_come_from_pinned_memory(cuda: Compute) -> None:
    batches = Batches(graph_problem(), 5, compute=cuda)
    pinned = batches._share(torch.arange(5))
    assert pinned.adj.col.is_pinned()
    expected = list(Batches(graph_problem(), 5).training(seeded()))
    for batch, own in zip(batches.training(seeded()), expected, strict=True):
        assert batch.raw_x is not None
        assert own.raw_x is not None
        assert batch.raw_x.device == cuda.device
        assert torch.equal(batch.raw_x.cpu(), own.raw_x)
