"""Ranks, alone and as two processes that `torchrun` starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from eegnn import distributed
from eegnn.distributed import ALONE, Ranks, join
from tests.processes import run_ranks

PROGRAM = """
import torch
from eegnn import SASGNN
from eegnn.distributed import Ranks, join
from eegnn.engine.blocked import infer, partition
from tests.engine.blocked.examples import GRAPHS
from tests.engine.blocked.test_inference import assert_same
from tests.nn.exit_examples import features, make

heads = {"head_layers": 2, "confidence": "sas"}
ranks = join()
assert ranks.size == Ranks.current().size == 2
assert ranks.gather_shards(ranks.shard("abcde")) == list("abcde")
assert ranks.on_main(lambda: ranks.rank) == 0
assert ranks.local_main_first(lambda: ranks.rank) == ranks.rank
for name in GRAPHS:
    graph = GRAPHS[name](5)
    x, edge_index = features(77, graph.num_nodes), graph.edge_index()
    blocks = partition(edge_index, graph.num_nodes, 5)
    for options in ({}, {"after_exit": "freeze"}, heads):
        model = make(43, **options)
        truth = model.predict(x, edge_index)
        assert_same(infer(model, x, blocks), truth, 1e-10)
    torch.manual_seed(0)
    model = SASGNN(3, 4, 2, num_layers=4).double()
    assert_same(infer(model, x, blocks), model.predict(x, edge_index), 1e-10)
print("equal")
"""


def test_a_process_on_its_own_communicates_with_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert join() is ALONE
    assert Ranks.current() is ALONE
    values = torch.ones(2)
    assert ALONE.all_reduce_(values) is values
    assert ALONE.gather_shards([1, 2]) == [1, 2]
    assert ALONE.on_main(lambda: 5) == ALONE.local_main_first(lambda: 5) == 5


def test_a_failure_is_reported_where_the_store_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "1")
    monkeypatch.setattr("signal.signal", lambda *given: None)

    def unreachable(*given: Any, **named: Any) -> None:
        raise RuntimeError("connection refused")

    monkeypatch.setattr(torch.distributed, "TCPStore", unreachable)
    assert distributed.is_first_failure()


@pytest.mark.parametrize(
    ("device", "backend"), [("cpu", "gloo"), ("mps", "gloo"), ("cuda", "cpu:gloo,cuda:nccl")]
)
def test_tensors_of_cuda_devices_go_by_nccl(
    monkeypatch: pytest.MonkeyPatch, device: str, backend: str
) -> None:
    asked: list[str] = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr("signal.signal", lambda *given: None)
    monkeypatch.setattr("atexit.register", lambda *given: None)
    dist = torch.distributed
    monkeypatch.setattr(dist, "init_process_group", lambda name, timeout: asked.append(name))
    monkeypatch.setattr(dist, "new_group", lambda backend, timeout: asked.append(backend))
    monkeypatch.setattr(dist, "get_rank", lambda: 1)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    assert (join(device).rank, asked) == (1, [backend, backend])


@pytest.mark.slow
def test_two_processes_infer_by_blocks_what_one_predicts(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run_ranks(program)
    assert done.stdout.count("equal") == 2
