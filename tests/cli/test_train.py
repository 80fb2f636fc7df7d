import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eegnn import EEGNN, load, save
from eegnn.cli import app
from eegnn.data.minesweeper import minesweeper
from eegnn.data.npz import write_npz
from eegnn.train.run import RunFolder
from tests.train.problems import graph_problem


@pytest.fixture(autouse=True)
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_npz(tmp_path / "board.npz", minesweeper(10))
    return tmp_path / "board.npz"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_train_eval_and_predict_fit_together(tmp_path: Path) -> None:
    settings = ["--set", "num_layers=3", "--set", "options.continue_bias=1"]
    printed = run("train", "--input", "board.npz", "--epochs", "3", *settings, "--json")
    summary = json.loads(printed)
    folder = "runs/board-eegnn-split0-seed0"
    assert summary["epochs"] == 3
    assert (tmp_path / folder / "metrics.jsonl").read_text().count("\n") == 3
    assert (tmp_path / folder / "curves.png").read_bytes().startswith(b"\x89PNG")

    again = json.loads(run("eval", folder, "--json"))
    assert again["test"] == summary["test"]
    assert again["exits"] == summary["exits"]
    shallow = json.loads(run("eval", folder, "--max-layers", "1", "--json"))
    assert shallow["exits"]["max"] == 1

    run("predict", folder, "--out", "own.csv")
    run("predict", folder, "--input", "board.npz", "--out", "new.csv")
    assert (tmp_path / "own.csv").read_text() == (tmp_path / "new.csv").read_text()
    rows = list(csv.DictReader((tmp_path / "own.csv").open()))
    assert len(rows) == 100
    probabilities = ["probability", "probability_0", "probability_1"]
    assert list(rows[0]) == ["unit", "class", *probabilities, "exit_layer", "exit_time"]


def test_freezing_is_as_if_the_model_had_been_made_so(tmp_path: Path) -> None:
    # With this seed, heads as they are drawn let nodes leave at different layers.
    settings = ["--set", "num_layers=4", "--set", "options.continue_bias=null", "--seed", "3"]
    run("train", "--input", "board.npz", "--epochs", "2", *settings, "--out", "run")
    frozen = json.loads(run("eval", "run", "--freeze", "--json"))
    run("predict", "run", "--freeze", "--out", "frozen.csv")
    run("predict", "run", "--out", "evolved.csv")
    config = json.loads((tmp_path / "run" / "model.json").read_text())["config"]
    twin = EEGNN(**{**config, "after_exit": "freeze"})
    twin.load_state_dict(load("run/model.safetensors").state_dict())
    save(twin, "run/model.safetensors")
    made = json.loads(run("eval", "run", "--json"))
    run("predict", "run", "--out", "made.csv")
    assert (frozen.pop("freeze"), made.pop("freeze")) == (True, False)
    assert frozen == made
    tables = [(tmp_path / f"{name}.csv").read_text() for name in ("frozen", "made", "evolved")]
    assert tables[0] == tables[1] != tables[2]
    run("train", "--input", "board.npz", "--epochs", "1", "--model", "gcn", "--out", "gcn")
    done = CliRunner().invoke(app, ["eval", "gcn", "--freeze"])
    assert "freezing needs a model with exits" in str(done.exception)


def test_calibrated_rules_are_found_by_eval_and_predict(tmp_path: Path) -> None:
    settings = ["--set", "num_layers=3", "--set", "options.continue_bias=1"]
    run("train", "--input", "board.npz", "--epochs", "3", *settings, "--out", "run")
    uncalibrated = json.loads(run("eval", "run", "--target-cost", "0.5", "--json"))
    assert not (tmp_path / "run" / "calibration.json").exists()
    results = tmp_path / "rules.jsonl"
    command = ("calibrate", "run", "--cost", "0.5", "--results", str(results), "--json")
    found = json.loads(run(*command))
    line = json.loads(results.read_text())
    assert line["rules"] == found["suggestions"]
    assert line["config"]["num_layers"] == 3
    chosen = found["suggestions"]["cost"][0]
    assert chosen["val"]["cost"] <= 0.5
    assert (tmp_path / "run" / "calibration.json").exists()
    scored = json.loads(run("eval", "run", "--target-cost", "0.5", "--json"))
    assert scored == uncalibrated
    assert scored["exit_threshold"] == chosen["val"]["threshold"]
    assert scored["max_layers"] == chosen["val"]["max_layers"]
    assert scored["test"] == pytest.approx(chosen["test"]["score"])
    assert scored["cost"] == pytest.approx(chosen["test"]["cost"])
    run("predict", "run", "--target-cost", "0.34", "--out", "first.csv")
    rows = list(csv.DictReader((tmp_path / "first.csv").open()))
    assert {row["exit_layer"] for row in rows} == {"1"}


def test_new_graphs_are_standardized_as_the_runs_own(tmp_path: Path) -> None:
    settings = ["--set", "num_layers=2", "--set", "standardize=true", "--set", "encoding=rwse"]
    run("train", "--input", "board.npz", "--epochs", "1", *settings, "--data-dir", "data")
    for target, extra in (("own.csv", []), ("new.csv", ["--input", "board.npz"])):
        run(
            "predict",
            "runs/board-eegnn-split0-seed0",
            "--out",
            target,
            "--data-dir",
            "data",
            *extra,
        )
    assert (tmp_path / "own.csv").read_text() == (tmp_path / "new.csv").read_text()


def test_the_config_of_a_run_is_a_recipe(tmp_path: Path) -> None:
    run("train", "board.npz", "--model", "sasgnn", "--epochs", "2", "--out", "first")
    run("train", "--recipe", "first/config.json", "--out", "second")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("first", "second")]
    assert weights[0] == weights[1]


def test_a_tracker_changes_nothing_but_its_own_file(tmp_path: Path) -> None:
    for name, extra in (("plain", []), ("tracked", ["--track", "csv"])):
        run("train", "board.npz", "--epochs", "2", "--out", name, *extra)
    added = {path.name for path in (tmp_path / "tracked").iterdir()}
    assert added - {path.name for path in (tmp_path / "plain").iterdir()} == {"metrics.csv"}
    for file in ("config.json", "model.safetensors"):
        plain, tracked = ((tmp_path / name / file).read_bytes() for name in ("plain", "tracked"))
        assert plain == tracked
    assert "epoch" in run("train", "--resume", "--out", "plain", "--track", "csv")
    assert (tmp_path / "plain" / "metrics.csv").read_text().count("\n") == 3


def test_epochs_without_a_test_score_are_drawn_and_resumed(tmp_path: Path) -> None:
    write_npz(tmp_path / "rings.npz", graph_problem(60).graphs)
    command = ["train", "rings.npz", "--epochs", "3", "--set", "lr=1e-12", "--track", "csv"]
    run(*command, "--out", "run")
    tests = [line["test"] for line in RunFolder(tmp_path / "run").metrics()]
    assert tests[0] is not None
    assert tests[1:] == [None, None]
    assert (tmp_path / "run" / "curves.png").exists()
    (tmp_path / "run" / "summary.json").unlink()
    assert "epoch" in run("train", "--resume", "--out", "run", "--track", "csv")


def test_a_missing_tracker_is_found_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    done = CliRunner().invoke(app, ["train", "board.npz", "--track", "wandb"])
    assert isinstance(done.exception, ImportError)
    assert "pip install wandb" in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["board.npz"]


def test_what_fails_before_the_first_epoch_leaves_no_empty_progress_bar() -> None:
    done = CliRunner().invoke(app, ["train", "no-such-set"])
    assert "there is no data set called 'no-such-set'" in str(done.exception)
    assert done.stderr.splitlines() == [
        "eegnn on no-such-set, split 0: runs/no-such-set-eegnn-split0-seed0"
    ]
    assert "2/2" in CliRunner().invoke(app, ["train", "board.npz", "--epochs", "2"]).stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_stopped_command_says_how_to_go_on_and_leaves_a_run_that_does(
    name: str, tmp_path: Path
) -> None:
    # Python ignores SIGINT if its parent does, as shells make background jobs do.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "signal.signal(signal.SIGHUP, signal.SIG_DFL); "
        "from eegnn.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "train", "board.npz", "--epochs", "100000"]
    process = subprocess.Popen([*command, "--out", "run"], stderr=subprocess.PIPE, text=True)
    try:
        while not (tmp_path / "run" / "state.pt").exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.Signals[name])
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.Signals[name]
    assert said.splitlines()[-1] == "eegnn: interrupted; a training run goes on with --resume"
    assert "Traceback" not in said
    state = RunFolder(tmp_path / "run").state()
    assert state is not None
    assert state["progress"]["epoch"] >= 1


def test_results_are_added_once(tmp_path: Path) -> None:
    command = ["train", "board.npz", "--epochs", "1", "--results", "results.jsonl"]
    run(*command, "--out", "first")
    assert "already" in run(*command, "--out", "second")
    assert json.loads(run(*command, "--out", "second", "--json"))["dataset"] == "board.npz"
    assert (tmp_path / "results.jsonl").read_text().count("\n") == 1
    assert not (tmp_path / "second").exists()


def test_tune_writes_a_recipe_that_train_takes(tmp_path: Path) -> None:
    printed = run("tune", "board.npz", "--model", "gcn", "--trials", "2", "--epochs", "1", "--json")
    best = json.loads(printed)
    assert best["finished"] == 2
    assert (tmp_path / "study" / "history.png").exists()
    summary = json.loads(run("train", "--recipe", best["recipe"], "--out", "again", "--json"))
    assert summary["val"] == best["val"]


def test_a_folder_of_tables_is_trained_tuned_and_predicted(tmp_path: Path) -> None:
    (tmp_path / "cora").mkdir()  # a folder, though a data set has this name
    rows = "".join(f"{i},{i % 7},{i % 2}\n" for i in range(30))
    (tmp_path / "cora" / "nodes.csv").write_text("id,f,y\n" + rows)
    edges = "".join(f"{i},{i + 1}\n{i + 1},{i}\n" for i in range(29))
    (tmp_path / "cora" / "edges.csv").write_text("source,target\n" + edges)
    run("train", "--input", "cora", "--model", "gcn", "--epochs", "1")
    run("predict", "runs/cora-gcn-split0-seed0", "--input", "cora", "--out", "out.jsonl")
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first["probability_0"] + first["probability_1"] == pytest.approx(1)
    command = ["tune", "--input", "cora", "--model", "gcn", "--trials", "1", "--epochs", "1"]
    assert json.loads(run(*command, "--json"))["finished"] == 1


def test_resume_needs_only_the_folder(tmp_path: Path) -> None:
    run("train", "board.npz", "--epochs", "2", "--out", "run")
    (tmp_path / "run" / "summary.json").unlink()
    assert "epoch" in run("train", "--resume", "--out", "run")
    assert (tmp_path / "run" / "summary.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train"], "DATASET"),
        (["tune"], "DATASET"),
        (["train", "board.npz", "--split", "-1"], "--split"),
        (["train", "board.npz", "--track", "paper"], "'tensorboard', 'wandb', 'mlflow', 'csv'"),
        (["predict", "runs/none"], "--out"),
        (["eval", "run", "--exit-threshold", "2"], "--exit-threshold"),
        (["eval", "run", "--target-cost", "0.5", "--max-layers", "2"], "--target-cost"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "board.npz", "--model", "gnn"], "model must be one of"),
        (["train", "board.npz", "--set", "lr=fast"], "lr"),
        (["train", "board.npz", "--set", "speed=1"], "'speed' is no setting"),
        (["train", "board.npz", "--set", "options.speed=1"], "options.speed is no option"),
        (["train", "missing.npz"], "missing.npz"),
        (["train", "--input", "missing.xyz"], "missing.xyz does not exist"),
        (["predict", "runs/none", "--out", "table.xls"], "must end in .csv"),
        (["eval", "runs/none"], "holds no run"),
        (["calibrate", "runs/none"], "holds no run"),
    ],
)
def test_a_failure_is_one_sentence_and_leaves_nothing(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, ValueError | OSError)
    assert said in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["board.npz"]


def test_the_list_of_data_sets_names_them_all() -> None:
    names = [row["name"] for row in json.loads(run("datasets", "--json"))["datasets"]]
    assert {"minesweeper", "tolokers", "texas", "cora", "enzymes", "ogbn-arxiv"} <= set(names)
