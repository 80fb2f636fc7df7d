"""A training process killed at random moments ends with the bits of one that was left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.train.problems import outcome

ROOT = Path(__file__).parents[2]
KILLS = 20

# Imports cost seconds, so each life of the training is a fork of a process that has made them.
# That process itself computes nothing, since threads would not survive the fork.
DRIVER = """
import json, os, random, signal, sys, time
from pathlib import Path
import torch
from tests.train import problems

torch.set_num_threads(1)
where, kind, kills = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
moments = random.Random(kind)


def live(path):
    problem = problems.node_problem(300) if kind == "node" else problems.graph_problem(40)
    if (path / "config.json").exists():
        trainer = problems.resumed_run(path, problem)
    else:
        trainer = problems.new_run(path, problem, epochs=60, batch_size=7, **problems.NOISY)
    trainer.fit()


def fork(path):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            live(path)
            code = 0
        finally:
            os._exit(code)
    return pid


def finish(path):
    status = os.waitpid(fork(path), 0)[1]
    assert os.waitstatus_to_exitcode(status) == 0, path


start = time.perf_counter()
finish(where / "unbroken")
duration = time.perf_counter() - start
runs, epochs = [where / "run-0"], []
while len(epochs) < kills:
    pid = fork(runs[-1])
    time.sleep(moments.uniform(0, duration / 2))
    os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == -signal.SIGKILL:
        metrics = runs[-1] / "metrics.jsonl"
        epochs.append(metrics.read_bytes().count(b"\\n") if metrics.exists() else 0)
    else:  # it was done before the kill
        assert code == 0, code
        runs.append(where / f"run-{len(runs)}")
finish(runs[-1])
print(json.dumps({"runs": [run.name for run in runs], "epochs": epochs}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", ["node", "graph"])
def test_killed_at_random_moments(kind: str, tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), kind, str(KILLS)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert len(report["epochs"]) == KILLS
    assert len(set(report["epochs"])) >= KILLS // 4, "kills are meant to hit different epochs"
    expected = outcome(tmp_path / "unbroken")
    assert len(expected["metrics"]) == 60
    for run in report["runs"]:
        assert outcome(tmp_path / run) == expected
