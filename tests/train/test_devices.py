"""The whole pipeline on a device that is not the CPU: simulated, see `tests/accelerator.py`.

Random numbers of the simulated device are those of the CPU, so all figures have to agree. Dropout
is drawn another way on the CPU, and is left out.
"""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.amp.grad_scaler import GradScaler
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves
from typer.testing import CliRunner

from eegnn._edge_values import WITHOUT_FLOAT64
from eegnn.cli import app
from eegnn.compute import CPU, Compute
from eegnn.data.minesweeper import minesweeper
from eegnn.data.npz import write_npz
from eegnn.data.problem import Problem
from eegnn.report.page_run import run_content
from eegnn.train import batches as batches_module
from eegnn.train.batches import Batches
from eegnn.train.evaluate import evaluate
from eegnn.train.loop import Trainer, TrainingError
from eegnn.train.run import RunFolder
from eegnn.zoo.registry import ENTRIES
from tests.accelerator import DEVICE, recorded, without_float64
from tests.analysis.runs import trained
from tests.train.problems import (
    Killed,
    graph_problem,
    killed_after,
    molecule_problem,
    node_problem,
    outcome,
    regression_problem,
    small_config,
    timeless,
    undecided,
)
from tests.train.test_batches import seeded

SIMULATED = Compute(DEVICE)


def begin(path: Path, problem: Problem, compute: Compute, **settings: Any) -> Trainer:
    config = small_config(**{"num_layers": 2, **settings})
    trainer = Trainer(config, problem, RunFolder(path), compute=compute)
    trainer.folder.start(config, problem.task, problem.scale, compute)
    return trainer


def resume(path: Path, problem: Problem, compute: Compute) -> Trainer:
    folder = RunFolder(path)
    trainer = Trainer(folder.config(), problem, folder, compute=compute)
    trainer.resume()
    return trainer


@pytest.mark.parametrize("problem", [node_problem(), graph_problem()], ids=["node", "graph"])
@pytest.mark.parametrize("name", ENTRIES)
def test_every_model_trains_evaluates_and_predicts_as_on_the_cpu(
    name: str, problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a device with neither float64 nor CSR products, as MPS."""
    monkeypatch.setattr("eegnn._edge_values.WITHOUT_FLOAT64", WITHOUT_FLOAT64 | {"simulated"})
    options = {"propagation_dropout": 0.0} if name == "apgcn" else {}
    settings: dict[str, Any] = {"model": name, "epochs": 1, "options": options}
    found: list[Any] = []
    for compute in (CPU, SIMULATED):
        # The CPU has a kernel of its own for attention, and rounds another way than its formula.
        with without_float64(), sdpa_kernel(SDPBackend.MATH):
            trainer = begin(tmp_path / str(compute.device), problem, compute, **settings)
            summary = trainer.fit()
            assert {t.device for t in trainer.model.state_dict().values()} == {compute.device}
            model = trainer.folder.model(compute.device)
            scored = evaluate(model, trainer.batches, ("val", "test"))
            batch = trainer.batches.part("test")[0]
            out, exits = model.predict(batch.x, batch.adj, batch.edge_attr)
        assert out.device == exits.layer.device == compute.device
        found.append((trainer.folder.metrics()[0], summary, scored, out.cpu(), exits.cpu()))
    here, there = found
    for key in ("loss", "val", "test", "exit_mean", "exit_quantiles"):
        assert there[0][key] == pytest.approx(here[0][key], abs=1e-5), key
    assert there[1]["exits"] == here[1]["exits"]
    assert there[1]["test"] == pytest.approx(here[1]["test"], abs=1e-5)
    for part in ("val", "test"):
        torch.testing.assert_close(there[2][part].out, here[2][part].out, rtol=0, atol=1e-5)
        assert torch.equal(there[2][part].layer, here[2][part].layer)
    torch.testing.assert_close(there[3], here[3], rtol=0, atol=1e-5)
    assert torch.equal(there[4].layer, here[4].layer)


def test_units_that_leave_one_by_one_leave_as_on_the_cpu(tmp_path: Path) -> None:
    for problem in (node_problem(), graph_problem(), regression_problem()):
        found = []
        for compute in (CPU, SIMULATED):
            config = small_config()
            trainer = Trainer(config, problem, RunFolder(tmp_path), compute=compute)
            undecided(trainer.model, problem)
            found.append(evaluate(trainer.model, trainer.batches, ("test",))["test"])
        assert torch.equal(found[1].layer, found[0].layer)
        assert len(found[0].layer.unique()) > 1
        torch.testing.assert_close(found[1].out, found[0].out)


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (molecule_problem, {"batch_size": 5, "clip_norm": 0.1, "cost_weight": 0.1}),
        (node_problem, {"optimizer": "adamw", "schedule": "cosine", "encoding": "lappe:2"}),
        (regression_problem, {"batch_size": 4, "loss": "log10_mse"}),
    ],
)
def test_settings_of_training_do_as_on_the_cpu(
    make: Callable[[], Problem], settings: dict[str, Any], tmp_path: Path
) -> None:
    problem = make()
    lines = []
    for compute in (CPU, SIMULATED):
        trainer = begin(tmp_path / str(compute.device), problem, compute, epochs=2, **settings)
        trainer.fit()
        lines.append([timeless(line) for line in trainer.folder.metrics()])
    for there, here in zip(*lines, strict=True):
        assert there["loss"] == pytest.approx(here["loss"], abs=1e-5)
        assert there["grad"] == pytest.approx(here["grad"], abs=1e-5)


@pytest.mark.parametrize(("model", "exits"), [("sasgnn", 0), ("eegnn", 1)])
def test_a_step_on_a_known_graph_waits_once_at_most(model: str, exits: int, tmp_path: Path) -> None:
    trainer = begin(tmp_path, node_problem(), SIMULATED, model=model, clip_norm=1.0)
    (batch,) = trainer.batches.training(trainer.order)
    for _ in range(2):  # the first makes the values of the matrix and the states of the optimiser
        with recorded() as waits:
            trainer._step(batch)
        assert sum(waits.values()) == exits, waits


@pytest.mark.parametrize(("model", "exits"), [("sasgnn", 0), ("eegnn", 1)])
def test_a_step_on_a_new_batch_waits_no_more(model: str, exits: int, tmp_path: Path) -> None:
    """Graphs are built, and features checked, on the CPU; they are sent, and nothing is asked."""
    problem = molecule_problem()
    trainer = begin(tmp_path, problem, SIMULATED, model=model, batch_size=5)
    trainer._train_epoch()
    for batch in trainer.batches.training(trainer.order):
        with recorded() as waits:
            trainer._step(batch)
        assert sum(waits.values()) == exits, waits


def test_an_epoch_of_many_steps_asks_for_losses_once(tmp_path: Path) -> None:
    trainer = begin(tmp_path, graph_problem(), SIMULATED, model="sasgnn", batch_size=2)
    with recorded() as waits:
        trainer._train_epoch()
    assert waits["to the CPU"] == 1, waits
    assert set(waits) == {"to the CPU", "from the CPU"}


def test_a_loss_that_is_no_number_ends_the_run_before_anything_is_written(tmp_path: Path) -> None:
    trainer = begin(tmp_path, node_problem(), SIMULATED)
    with torch.no_grad():
        trainer.model.encoder.bias.fill_(float("nan"))
    with pytest.raises(TrainingError, match="the loss is nan at epoch 1; try a smaller lr"):
        trainer.fit()
    assert RunFolder(tmp_path).state() is None
    assert RunFolder(tmp_path).metrics() == []


def test_batches_are_made_by_another_thread_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[int] = []
    collate = batches_module.collate

    def noted(*args: Any) -> Any:
        threads.append(threading.get_ident())
        return collate(*args)

    monkeypatch.setattr(batches_module, "collate", noted)
    expected = [batch.raw_x for batch in Batches(graph_problem(), 5).training(seeded())]
    assert set(threads) == {threading.get_ident()}
    threads.clear()
    made = list(Batches(graph_problem(), 5, compute=SIMULATED).training(seeded()))
    assert threading.get_ident() not in threads
    for batch, x in zip(made, expected, strict=True):
        assert batch.raw_x is not None
        assert x is not None
        assert batch.adj.device == batch.raw_x.device == DEVICE
        assert torch.equal(batch.raw_x.cpu(), x)


def test_a_run_stopped_and_resumed_on_its_device_ends_with_the_same_bits(tmp_path: Path) -> None:
    problem, module = graph_problem(), torch.get_device_module(DEVICE)
    settings = {"epochs": 4, "batch_size": 5, "options": {"dropout": 0.3}}
    begin(tmp_path / "unbroken", problem, SIMULATED, **settings).fit()
    broken = begin(tmp_path / "broken", problem, SIMULATED, **settings)
    module.set_rng_state(torch.tensor([5], dtype=torch.uint8))
    with pytest.raises(Killed):
        broken.fit(killed_after(2))
    torch.manual_seed(99)
    module.set_rng_state(torch.tensor([6], dtype=torch.uint8))
    trainer = resume(tmp_path / "broken", problem, SIMULATED)
    assert module.get_rng_state().tolist() == [5]
    trainer.fit()
    outcomes = [outcome(tmp_path / name) for name in ("unbroken", "broken")]
    for found in outcomes:
        del found["state"]["device_random"]  # it was changed here by hand
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("order", [(CPU, SIMULATED), (SIMULATED, CPU)])
def test_a_run_goes_on_on_another_device(order: tuple[Compute, Compute], tmp_path: Path) -> None:
    problem = node_problem()
    with pytest.raises(Killed):
        begin(tmp_path, problem, order[0], epochs=4).fit(killed_after(2))
    state = torch.load(tmp_path / "state.pt", weights_only=True)  # on any machine
    assert state["state"].device.type == "cpu"
    before = RunFolder(tmp_path).metrics()
    trainer = resume(tmp_path, problem, order[1])
    assert {p.device for p in trainer.model.parameters()} == {order[1].device}
    momenta = [s["exp_avg"] for s in trainer.optimizer.state_dict()["state"].values()]
    assert {momentum.device for momentum in momenta} == {order[1].device}
    summary = trainer.fit()
    lines = RunFolder(tmp_path).metrics()
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
    assert lines[:2] == before
    assert summary["device"] == str(order[1].device)
    about = json.loads((tmp_path / "config.json").read_text())
    assert about["versions"]["device"] == str(order[0].device)


@pytest.mark.parametrize("device", [torch.device("cpu"), DEVICE], ids=str)
@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed"])
def test_mixed_precision_learns_and_is_resumed(
    precision: Any, device: torch.device, tmp_path: Path
) -> None:
    problem, compute = node_problem(), Compute(device, precision)
    unbroken = begin(tmp_path / "unbroken", problem, compute, epochs=6)
    summary = unbroken.fit()
    assert summary["precision"] == precision
    assert {p.dtype for p in unbroken.model.parameters()} == {torch.float32}
    exact = begin(tmp_path / "exact", problem, CPU, epochs=6)
    exact.fit()
    lines = [RunFolder(tmp_path / name).metrics() for name in ("unbroken", "exact")]
    assert lines[0][0]["loss"] != lines[1][0]["loss"]
    assert lines[0][0]["loss"] == pytest.approx(lines[1][0]["loss"], rel=0.02)
    assert lines[0][-1]["loss"] < lines[0][0]["loss"]
    with pytest.raises(Killed):
        begin(tmp_path / "broken", problem, compute, epochs=6).fit(killed_after(3))
    resume(tmp_path / "broken", problem, compute).fit()
    assert outcome(tmp_path / "unbroken") == outcome(tmp_path / "broken")


def test_float16_waits_once_more(tmp_path: Path) -> None:
    """To know whether a gradient is infinite, and the step has to be left out."""
    trainer = begin(tmp_path, node_problem(), Compute(DEVICE, "16-mixed"))
    (batch,) = trainer.batches.training(trainer.order)
    trainer._step(batch)
    with recorded() as waits:
        trainer._step(batch)
    assert sum(waits.values()) == 2, waits


def test_the_scale_of_losses_is_saved(tmp_path: Path) -> None:
    compute = Compute(precision="16-mixed")
    trainer = begin(tmp_path, node_problem(), compute, epochs=2)
    trainer.scaler = GradScaler("cpu", init_scale=2.0**8)
    trainer.fit()
    assert resume(tmp_path, node_problem(), compute).scaler.get_scale() == 2.0**8
    assert not resume(tmp_path, node_problem(), CPU).scaler.is_enabled()


def test_gradients_do_not_depend_on_the_scale_of_the_loss(tmp_path: Path) -> None:
    """Norms that are recorded, and clipping, are those of the loss itself."""
    norms = []
    for scale in (2.0, 1024.0):
        compute = Compute(precision="16-mixed")
        trainer = begin(tmp_path / f"{scale}", node_problem(), compute, epochs=1)
        trainer.scaler = GradScaler("cpu", init_scale=scale)
        trainer.fit()
        norms.append(trainer.folder.metrics()[0]["grad"])
    assert norms[0] == pytest.approx(norms[1], rel=0.05)


def test_blocks_are_for_the_cpu() -> None:
    for compute in (SIMULATED, Compute(precision="bf16-mixed")):
        with pytest.raises(ValueError, match="blocks are computed on the CPU in precision 32"):
            Batches(node_problem(), 1, blocks=2, compute=compute)


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.stdout


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_npz(tmp_path / "board.npz", minesweeper(10))
    return tmp_path


def csv_rows(path: Path) -> list[list[str]]:
    return list(csv.reader(path.open()))[1:]


def test_the_command_line_does_on_a_device_what_it_does_on_the_cpu(board: Path) -> None:
    settings = ["--set", "num_layers=4", "--set", "options.continue_bias=1", "--epochs", "3"]
    found: dict[str, Any] = {}
    for name, where in (("here", []), ("there", ["--device", "simulated"])):
        summary = json.loads(run("train", "board.npz", *settings, "--out", name, *where, "--json"))
        assert summary["device"] == ("simulated:0" if where else "cpu")
        assert summary["precision"] == "32"
        scored = json.loads(run("eval", name, *where, "--json"))
        assert scored["test"] == summary["test"]
        calibrated = json.loads(run("calibrate", name, "--cost", "0.5", *where, "--json"))
        run("predict", name, "--target-cost", "0.5", "--out", f"{name}.csv", *where)
        run("report", name, "--out", f"{name}.html", *where)
        del calibrated["weights"], calibrated["run"], calibrated["file"]
        table = [[float(x) for x in row] for row in csv_rows(board / f"{name}.csv")]
        found[name] = [summary["test"], summary["exits"], scored["exits"], calibrated, table]
        assert (board / f"{name}.html").stat().st_size > 50_000
    here, there = (tree_leaves(found[name]) for name in ("here", "there"))
    assert there == pytest.approx(here, abs=1e-5)


def test_a_run_of_one_device_is_used_on_another(board: Path) -> None:
    run("train", "board.npz", "--epochs", "2", "--out", "run", "--device", "simulated")
    scores = [
        json.loads(run("eval", "run", "--device", device, "--json"))["test"]
        for device in ("cpu", "simulated", "auto")
    ]
    assert scores[0] == scores[1]
    for precision in ("bf16-mixed", "16-mixed"):
        run("calibrate", "run", "--precision", precision)
        run("predict", "run", "--precision", precision, "--out", "low.csv")
        run("report", "run", "--precision", precision)
    with np.load(board / "run" / "exits.npz") as exits:
        assert len(exits["test_layer"]) == 25


def test_a_result_on_another_device_is_not_trained_again(board: Path) -> None:
    command = ["train", "board.npz", "--epochs", "1", "--results", "results.jsonl"]
    run(*command, "--out", "first", "--device", "simulated")
    line = json.loads((board / "results.jsonl").read_text())
    assert (line["device"], line["precision"]) == ("simulated:0", "32")
    assert "device" not in line["config"]
    assert "already" in run(*command, "--out", "second", "--precision", "bf16-mixed")


def test_tune_and_reproduce_take_a_device(board: Path) -> None:
    where = ["--device", "simulated"]
    run("tune", "board.npz", "--model", "gcn", "--trials", "1", "--epochs", "1", *where)
    summary = RunFolder(board / "study" / "trial-0").summary()
    assert summary is not None
    assert summary["device"] == "simulated:0"
    run("reproduce", "parameters", *where)


@pytest.mark.parametrize("problem", [node_problem(), graph_problem()], ids=["node", "graph"])
def test_the_page_of_a_run_does_not_depend_on_the_device(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = trained(tmp_path / "run", problem, monkeypatch)
    assert run_content(path, compute=SIMULATED) == run_content(path)


@pytest.mark.parametrize(
    "command",
    [
        ["train", "board.npz"],
        ["tune", "board.npz"],
        ["eval", "run"],
        ["predict", "run", "--out", "x.csv"],
        ["calibrate", "run"],
        ["report", "run"],
        ["reproduce", "parameters"],
        *(["bench", kind] for kind in ("inference", "training", "memory")),
    ],
    ids=lambda command: command[-1] if command[0] == "bench" else command[0],
)
def test_a_device_that_is_not_here_is_wrong_usage(board: Path, command: list[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    done = CliRunner().invoke(app, [*command, "--device", "cuda"])
    assert done.exit_code == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert "device must be one that this machine has, got 'cuda': PyTorch" in said
    assert "finds no CUDA device" in said
    assert [path.name for path in board.iterdir()] == ["board.npz"]
    assert CliRunner().invoke(app, [*command, "--precision", "8"]).exit_code == 2
