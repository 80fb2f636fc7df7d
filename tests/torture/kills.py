"""Trainings killed at random moments and resumed: the bits of one that was left alone.

A case is the life of a process, of one of four kinds: ``node`` and ``graph`` are forks,
``command`` is `eegnn train` from its first import, ``ranks`` are two that train together.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from eegnn.distributed import join
from tests.torture.harness import Report, Wrong, run_cases
from tests.torture.processes import fork, live, make_data, wait, watch
from tests.train.problems import outcome
from tests.train.torchrun import launch

EPOCHS = {"node": 40, "graph": 40, "command": 20, "ranks": 12}
#: Commands and ranks take seconds to begin.
WEIGHTS = {"node": 9, "graph": 9, "command": 1, "ranks": 1}
RANKS_DATA = "transfer-line-3@0.02"


def begin(kind: str, folder: Path, data: str) -> int:
    """Start a process that trains; return its id, which is that of its group too."""
    if kind == "ranks":
        return fork(train_together, folder)
    if kind == "command":
        settings = ["--set", "hidden_channels=8", "--set", "num_layers=4", "--resume", "--out"]
        command = [sys.executable, "-m", "eegnn", "train", "--input", data, "--epochs", "20"]
        return subprocess.Popen(
            [*command, *settings, str(folder)],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).pid
    return fork(live, folder, data, EPOCHS[kind])


def train_together(folder: Path) -> None:
    if launch(2, rank_life, folder) is None:
        raise RuntimeError("a rank has failed")


def rank_life(folder: Path) -> None:
    live(folder, RANKS_DATA, EPOCHS["ranks"], ranks=join())


class Chain:
    """Runs of one kind, one after the other, each killed until it gets to its end."""

    def __init__(self, kind: str, where: Path) -> None:
        self.kind, self.where, self.number = kind, where, 0
        self.data = str(where / f"{'graph' if kind == 'graph' else 'node'}.npz")
        pid = begin(kind, where / "unbroken", self.data)
        self.work = watch(pid)
        if wait(pid):
            raise Wrong(f"{kind}: an unbroken run has failed")
        self.expected: dict[str, Any] = outcome(where / "unbroken")

    @property
    def folder(self) -> Path:
        return self.where / f"run-{self.number}"

    def life(self, rng: random.Random) -> str:
        pid = begin(self.kind, self.folder, self.data)
        # Half of it, so that a run has several lives; a command does little in its first half.
        share = 1.0 if self.kind in ("command", "ranks") else 0.5
        watch(pid, rng.uniform(0, share * self.work))
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended, or has no group yet
            os.kill(pid, signal.SIGKILL)
        code = wait(pid)
        if code == 0:
            self.check()
            return f"{self.kind}: ended, the same bits"
        if code != -signal.SIGKILL:
            raise Wrong(f"{self.kind}: ended with {code} in {self.folder}")
        metrics = self.folder / "metrics.jsonl"
        begun = metrics.exists() and metrics.stat().st_size > 0
        return f"{self.kind}: killed {'after' if begun else 'before'} an epoch"

    def check(self) -> None:
        folder, self.number = self.folder, self.number + 1
        if outcome(folder) != self.expected:
            raise Wrong(f"{self.kind}: {folder} has other bits than the unbroken run")

    def finish(self) -> str:
        """Let the last run get to its end."""
        if not self.folder.exists():
            return f"{self.kind}: nothing is left"
        if code := wait(begin(self.kind, self.folder, self.data)):
            raise Wrong(f"{self.kind}: ended with {code} in {self.folder}")
        self.check()
        return f"{self.kind}: ended, the same bits"


def case(chains: dict[str, Chain], where: Path, rng: random.Random, report: Report) -> str:
    (kind,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
    if kind not in chains:
        (where / kind).mkdir()
        for data in ("node", "graph"):
            make_data(where / kind / f"{data}.npz", data)
        chains[kind] = Chain(kind, where / kind)
    return chains[kind].life(rng)


def run(seed: int, numbers: range) -> Report:
    chains: dict[str, Chain] = {}
    with tempfile.TemporaryDirectory() as temporary:
        lives = partial(case, chains, Path(temporary))
        report = run_cases("kills", seed, numbers, lives, seconds=600)
        last = iter(list(chains.values()))
        ends = run_cases(
            "last", seed, range(len(chains)), lambda rng, _: next(last).finish(), seconds=600
        )
    report.outcomes += ends.outcomes
    report.failures += ends.failures
    report.seconds += ends.seconds
    return report
