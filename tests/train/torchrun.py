"""What `test_distributed.py` runs: trainings by several processes, all within one program.

Imports cost seconds, so ranks are forks of a process that has made them. It computes nothing itself
before it forks, since threads would not survive that. The agent is that of `torchrun`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

import eegnn.cli
from eegnn.data.minesweeper import minesweeper
from eegnn.data.npz import write_npz
from eegnn.data.problem import Problem
from eegnn.distributed import ALONE, Ranks, join
from eegnn.train.evaluate import evaluate
from eegnn.train.loop import Trainer
from eegnn.train.models import build_model
from eegnn.train.run import RunFolder
from tests.train.problems import graph_problem, regression_problem, small_config

#: Settings without dropout, where any number of processes does the same if exits have no noise.
#: Twelve training graphs in batches of 5: of the last two graphs, a third rank gets none.
CASES: dict[str, tuple[Callable[[], Problem], dict[str, Any]]] = {
    "20 steps": (lambda: graph_problem(24), {"batch_size": 12, "epochs": 20}),
    "batches": (graph_problem, {"batch_size": 5, "epochs": 3, "clip_norm": 0.1}),
    "nodes": (
        regression_problem,
        {
            "batch_size": 4,
            "epochs": 3,
            "loss": "log10_mse",
            "cost_weight": 0.1,
        },
    ),
    # The unit that halts learns in every fifth epoch only: in the others it has no gradient.
    "ponder": (
        graph_problem,
        {
            "model": "apgcn",
            "batch_size": 5,
            "epochs": 6,
            "cost_weight": 0.1,
            "weight_decay": 0.01,
            "options": {"propagation_dropout": 0.0},
        },
    ),
    "running statistics": (
        graph_problem,
        {"model": "gin", "batch_size": 8, "epochs": 2, "options": {"conv_norm": "batch"}},
    ),
}
EPOCHS, KILLED_AFTER = 6, 3
TRAIN = ["train", "transfer-line-3@0.02", "--epochs", str(EPOCHS), "--set", "num_layers=3"]
TRAIN += ["--set", "options.dropout=0.3", "--set", "batch_size=7", "--json", "--out"]


def launch(size: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run the function in several processes; return what each returned, or `None` on failure."""
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=size,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        start_method="fork",
        monitor_interval=0.1,
        max_restarts=0,
    )
    try:
        return elastic_launch(config, function)(*arguments)
    except ChildFailedError:
        return None


def same_as_one(where: Path) -> dict[str, Any]:
    """Train all cases; return what must not depend on the number of processes."""
    return cases(where, join())


@patch("eegnn.nn.exit_loop.logistic_noise", torch.zeros_like)
def cases(where: Path, ranks: Ranks) -> dict[str, Any]:
    for name, (make, settings) in CASES.items():
        config, folder = small_config(**settings), RunFolder(where / name / str(ranks.size))
        problem = make()
        ranks.on_main(partial(folder.start, config, problem.task, problem.scale))
        Trainer(config, problem, folder, ranks).fit()
    problem = graph_problem(40, metric="roc_auc")
    config = small_config(batch_size=3)
    trainer = Trainer(config, problem, RunFolder(where), ranks)
    trainer.optimizer = torch.optim.SGD(trainer.model.parameters(), lr=0.0)
    trainer._step(next(iter(trainer.batches.training(trainer.order))))
    torch.manual_seed(1)
    found = evaluate(build_model(config, problem), trainer.batches, ("val", "test"))
    return {
        "gradients": [
            None if p.grad is None else p.grad.tolist() for p in trainer.model.parameters()
        ],
        "scores": {name: part.score for name, part in found.items()},
        "outputs": {name: part.out.tolist() for name, part in found.items()},
        "exits": {name: part.layer.tolist() for name, part in found.items()},
    }


def command(said: Path, arguments: Sequence[str], doomed: int | None = None) -> None:
    """Be `eegnn ARGUMENTS`, with what it says in files; one rank kills itself on the way."""
    for stream, suffix in ((1, ".out"), (2, ".err")):
        file = os.open(f"{said}{suffix}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, stream)
    if doomed is not None and int(os.environ["RANK"]) == doomed:
        threading.Thread(target=die, args=(Path(arguments[-1]), said), daemon=True).start()
    sys.argv = ["eegnn", *arguments]
    eegnn.cli.main()


def die(run: Path, said: Path) -> None:
    metrics = run / "metrics.jsonl"
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < KILLED_AFTER:
        time.sleep(0.01)
    said.with_suffix(".killed").write_text(str(time.time()))
    os.kill(os.getpid(), signal.SIGKILL)


def alone(function: Callable[..., None], *arguments: Any) -> None:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function(*arguments)
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def kill_and_resume(where: Path) -> dict[str, Any]:
    """Train with 2 processes, unbroken; train again, kill one; resume with 1, 2 and 3."""
    launch(2, command, where / "unbroken", [*TRAIN, str(where / "unbroken")])
    found: dict[str, Any] = {}
    for doomed in (0, 1):
        said = where / f"killed-{doomed}"
        assert launch(2, command, said, [*TRAIN, str(said)], doomed) is None
        ended = time.time()
        found[f"seconds {doomed}"] = ended - float(said.with_suffix(".killed").read_text())
        found[f"message {doomed}"] = said.with_suffix(".err").read_text()
    for size in (1, 2, 3):
        folder = where / f"resumed-{size}"
        shutil.copytree(where / "killed-1", folder)
        again = [*TRAIN, str(folder), "--resume"]
        if size == 1:
            alone(command, folder, again)
        else:
            launch(size, command, folder, again)
    return found


def write_alone(where: Path) -> None:
    (where / "alone.json").write_text(json.dumps(cases(where, ALONE)))


def main() -> None:
    torch.set_num_threads(1)
    where = Path(sys.argv[1])
    where.mkdir(parents=True)
    alone(write_alone, where)
    together = {size: launch(size, same_as_one, where) for size in (2, 3)}
    board = where / "board.npz"
    write_npz(board, minesweeper(10))
    launch(2, command, where / "one-graph", ["train", "--input", str(board), "--out", "nowhere"])
    report = {
        "alone": json.loads((where / "alone.json").read_text()),
        "together": together,
        "one graph": (where / "one-graph.err").read_text(),
        "kill": kill_and_resume(where),
    }
    (where / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
