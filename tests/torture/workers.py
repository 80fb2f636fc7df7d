"""Commands that share runs or trials over one storage, of which some are killed.

A case is three workers, forks that call `eegnn reproduce` or `eegnn tune`, over a SQLite database
or a journal. One or two are killed at random moments, and others may come. The rest does all the
work, with the bits of runs that nobody killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from eegnn.cli import app
from eegnn.experiments import registry
from eegnn.studies import runner
from eegnn.studies.experiment import Cell, Scope
from eegnn.train import storage, tune
from eegnn.train.config import Config, make_config
from eegnn.train.results import read_results
from eegnn.train.run import RunFolder
from eegnn.train.start import train
from tests.studies import tiny
from tests.torture.harness import Report, Wrong, run_cases
from tests.torture.processes import computed, fork, make_data, wait, watch
from tests.train.problems import timeless

#: Runs, or trials, of a case.
COUNT = 8
EPOCHS = 25  # fewer than those before which `tune` stops no trial
#: Within so many seconds of its death the work of a worker is to be taken over (docs/scale.md).
PROMISED = 120.0
#: Most cases wait less for a sign of life than the library does, one of five as long.
TIMEOUTS = [8.0] * 4 + [storage.HEARTBEAT_TIMEOUT]

CONFIGS = [tiny.config(split=split, epochs=8 * EPOCHS) for split in range(COUNT)]
#: This module is the experiment that is reproduced.
ABOUT, findings = tiny.ABOUT, tiny.findings


def cells(scope: Scope) -> list[Cell]:
    return [replace(tiny.cells(scope)[0], configs=tuple(CONFIGS))]


def arguments(command: str, home: Path, place: str, kind: str) -> list[str]:
    """What is typed; workers in the same place share their folders."""
    where = ["--storage", str(home / f"study.{kind}"), "--out", str(home / place / "out")]
    if command == "reproduce":
        return [command, "tiny", *where, "--runs", str(home / place / "runs")]
    data = str(home.parent / "node.npz")
    sizes = ["--trials", str(COUNT), "--epochs", str(EPOCHS)]
    return [command, "--input", data, "--model", "sasgnn", *sizes, *where]


def work(home: Path, typed: list[str], timeout: float) -> None:
    """Be a worker, and write down when each training begins and ends."""
    torch.set_num_threads(1)
    storage.HEARTBEAT_TIMEOUT = timeout
    registry.EXPERIMENTS = {"tiny": __name__}

    def write(config: Config, event: str) -> None:
        line = [os.getpid(), config.model_dump_json(), event, time.monotonic()]
        with (home / "log").open("a") as log:
            log.write(json.dumps(line) + "\n")

    def logged(config: Config, *others: Any, **named: Any) -> dict[str, Any]:
        write(config, "begin")
        summary = train(config, *others, **named)
        write(config, "end")
        return summary

    runner.train = tune.train = logged  # type: ignore[attr-defined]
    with redirect_stdout(sys.stderr):
        app(typed, standalone_mode=False)


def bits(folder: Path) -> tuple[Any, ...]:
    """What a finished run left, in a form that compares bit for bit."""
    run = RunFolder(folder)
    return run.model_path.read_bytes(), [timeless(line) for line in run.metrics()], scores(run)


def scores(run: RunFolder) -> dict[str, Any]:
    summary = run.summary()
    assert summary is not None, f"{run} is not finished"
    return timeless(summary)


def unbroken(where: Path, config: Config) -> Path:
    """Train alone what nobody has trained alone yet."""
    folder = where / f"unbroken-{config.dataset}-{config.split}".replace("/", "_")
    if not (folder / "summary.json").exists():
        train(config, folder)
    return folder


def check_reproduced(home: Path, places: set[str], kind: str) -> None:
    for place in places:
        lines = read_results(home / place / "out" / "tiny.jsonl")
        assert sorted(line["config"]["split"] for line in lines) == list(range(COUNT))
        for line in lines:
            alone = unbroken(home.parent, make_config(line["config"]))
            expected = scores(RunFolder(alone))
            assert {name: line[name] for name in expected} == expected, "other scores"
    finished = list(home.glob("*/runs/*/summary.json"))
    assert len(finished) >= COUNT
    for path in finished:
        alone = unbroken(home.parent, RunFolder(path.parent).config())
        assert bits(path.parent) == bits(alone), f"{path.parent} has other bits"


def check_tuned(home: Path, places: set[str], kind: str) -> None:
    optuna = storage.import_optuna()
    study = optuna.load_study(
        study_name=f"{home.parent / 'node.npz'}-sasgnn",
        storage=storage.open_storage(str(home / f"study.{kind}")),
    )
    trials = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
    assert len({str(trial.params) for trial in trials}) == len(trials) == COUNT
    for trial in trials:
        (folder,) = home.glob(f"*/out/trial-{trial.number}")
        assert trial.value == scores(RunFolder(folder))["val"]
        alone = home / f"alone-{trial.number}"
        train(make_config(trial.user_attrs["config"]), alone)
        assert bits(folder) == bits(alone), f"{folder} has other bits"
    for place in places:
        best = json.loads((home / place / "out" / "best.json").read_text())
        assert best["config"]["lr"] == study.best_trial.params["lr"]


CHECKS: dict[str, Callable[[Path, set[str], str], None]] = {
    "reproduce": check_reproduced,
    "tune": check_tuned,
}


def begun(home: Path) -> int:
    """How many trainings have begun."""
    log = home / "log"
    return log.read_text().count("begin") if log.exists() else 0


def takeovers(home: Path, deaths: dict[int, float]) -> list[float]:
    """Seconds from each death to the moment at which another began what was lost."""
    last: dict[int, str] = {}
    found = []
    for line in (home / "log").read_text().splitlines():
        pid, config, event, moment = json.loads(line)
        for dead, death in deaths.items():
            if event == "begin" and moment > death and last.get(dead) == config:
                found.append(moment - death)
                del last[dead]
        last[pid] = config
    return found


def case(where: Path, rng: random.Random, report: Report) -> str:
    command, kind = rng.choice(list(CHECKS)), rng.choice(["db", "journal"])
    home, timeout = where / f"case-{rng.getrandbits(48):x}", rng.choice(TIMEOUTS)
    home.mkdir()
    workers: dict[int, str] = {}

    def start() -> None:
        place = rng.choice("ab")
        typed = arguments(command, home, place, kind)
        workers[fork(work, home, typed, timeout)] = place

    for _ in range(3):
        start()
    deaths = {}
    for _ in range(rng.randint(1, 2)):
        soon = rng.randrange(COUNT - 1)
        while begun(home) < soon:
            time.sleep(0.02)
            if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                raise Wrong(f"{command}: a worker ended before it was killed, in {home}")
        dead = rng.choice(list(workers))
        watch(dead, computed(dead) + rng.uniform(0, 0.5))
        os.kill(dead, signal.SIGKILL)
        if wait(dead) == -signal.SIGKILL:
            deaths[dead] = time.monotonic()
        del workers[dead]
        if rng.random() < 0.5:
            start()
    codes = [wait(pid) for pid in workers]
    label = f"{command} over {'SQLite' if kind == 'db' else 'a journal'}"
    if any(codes):
        raise Wrong(f"{label}: workers ended with {codes} in {home}")
    if wait(fork(CHECKS[command], home, set(workers.values()), kind)):
        raise Wrong(f"{label}: not each run once, or other bits, in {home}")
    found = takeovers(home, deaths)
    report.measured.setdefault(f"takeover, timeout {timeout:.0f} s", []).extend(found)
    if max(found, default=0.0) > PROMISED:
        raise Wrong(f"{label}: taken over after {max(found):.1f} s in {home}")
    return f"{label}: {len(deaths)} killed, {len(found)} taken over"


def run(seed: int, numbers: range) -> Report:
    # Imports take seconds: here, before the forks. Nothing is opened.
    storage.import_optuna()
    for name in ("cli.experiments", "train.prepare"):
        import_module(f"eegnn.{name}")
    for name in ("matplotlib.pyplot", "optuna.visualization.matplotlib", "sqlalchemy"):
        import_module(name)
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(temporary)
        make_data(where / "node.npz", "node")
        return run_cases("workers", seed, numbers, partial(case, where), seconds=600)
