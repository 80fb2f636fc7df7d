from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eegnn.engine.blocked.ranks import Ranks, is_first, joined

ROOT = Path(__file__).parents[2]
PROGRAM = """
import torch
import torch.distributed as dist
from eegnn import SASGNN
from eegnn.engine.blocked import infer, partition
from eegnn.engine.blocked.ranks import Ranks, joined
from tests.engine.blocked.examples import GRAPHS
from tests.engine.blocked.test_inference import assert_same
from tests.nn.exit_examples import features, make

heads = {"head_layers": 2, "confidence": "sas"}
with joined():
    assert dist.get_world_size() == 2
    for name in GRAPHS:
        graph = GRAPHS[name](5)
        x, edge_index = features(77, graph.num_nodes), graph.edge_index()
        blocks = partition(edge_index, graph.num_nodes, 5)
        owners = [Ranks(5).owner(block) for block in range(5)]
        assert sorted(set(owners)) == [0, 1], owners
        for options in ({}, {"after_exit": "freeze"}, heads):
            model = make(43, **options)
            truth = model.predict(x, edge_index)
            assert_same(infer(model, x, blocks), truth, 1e-10)
        torch.manual_seed(0)
        model = SASGNN(3, 4, 2, num_layers=4).double()
        assert_same(infer(model, x, blocks), model.predict(x, edge_index), 1e-10)
    print("equal")
"""


def test_alone_everything_is_ours() -> None:
    ranks = Ranks(3)
    assert [ranks.owns(block) for block in range(3)] == [True] * 3
    with joined():
        assert is_first()


@pytest.mark.slow
def test_two_processes_find_what_one_finds(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(program)]
    done = subprocess.run(
        [sys.executable, "-m", *launcher],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("equal") == 2
