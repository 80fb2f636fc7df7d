from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.nn.exit_examples import batch_of_graphs, features, make

TRAIN_AND_HASH = """
import hashlib, torch
from eegnn import EEGNN
torch.set_num_threads(1)
digest = hashlib.sha256()
for recompute in (False, True):
    torch.manual_seed(7)
    n = 40
    u, v = torch.randint(n, (2, 120))
    edge_index = torch.cat([torch.stack([u, v]), torch.stack([v, u])], dim=1)
    x, y = torch.randn(n, 4), torch.randint(3, (n,))
    model = EEGNN(4, 16, 3, num_layers=6, recompute=recompute, dropout=0.2)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x, edge_index), y).backward()
        optimiser.step()
    out, exits = model.predict(x, edge_index)
    for tensor in (out, exits.layer, exits.time, *model.state_dict().values()):
        digest.update(tensor.detach().contiguous().numpy().tobytes())
digest = digest.hexdigest()
"""


def train_and_hash() -> str:
    scope: dict[str, Any] = {}
    threads = torch.get_num_threads()
    try:
        exec(TRAIN_AND_HASH, scope)
    finally:
        torch.set_num_threads(threads)
    return str(scope["digest"])


def test_same_seed_gives_the_same_bits_within_a_process() -> None:
    assert train_and_hash() == train_and_hash()


def test_same_seed_gives_the_same_bits_in_another_process() -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TRAIN_AND_HASH + "print(digest)"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        for hash_seed in ("1", "2")
    ]
    digests = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert len(digests[0]) == 64
    assert digests[0] == digests[1]


@pytest.mark.parametrize("level", ["node", "graph"])
def test_noise_is_drawn_in_training_alone(level: str) -> None:
    graph, model = batch_of_graphs(43), make(43, level=level)
    x = features(43, graph.num_nodes)

    def run(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return model(x, graph.edge_index(), batch=graph.batch()).detach()

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))
    model.eval()
    assert torch.equal(run(1), run(2))
