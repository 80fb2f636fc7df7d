import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch_geometric
import typer.main
from typer.testing import CliRunner

from eegnn import __version__
from eegnn.bench import training
from eegnn.cli import app
from eegnn.cli.app import print_json
from eegnn.cli.options import MODEL
from eegnn.cli.train import Trackers
from eegnn.train.models import NAMES
from eegnn.train.track import TRACKERS


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "eegnn", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


HELPS: list[list[str]] = [
    [],
    ["demo"],
    ["train"],
    ["tune"],
    ["eval"],
    ["predict"],
    ["serve"],
    ["calibrate"],
    ["export"],
    ["report"],
    ["card"],
    ["reproduce"],
    ["datasets"],
    ["bench"],
    ["bench", "training"],
]


def helped(*arguments: str, width: int = 100) -> str:
    done = CliRunner().invoke(app, [*arguments, "--help"], env={"COLUMNS": str(width)})
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.parametrize("arguments", HELPS, ids=" ".join)
@pytest.mark.parametrize("width", [80, 120])
def test_help_fits_and_is_whole(arguments: list[str], width: int) -> None:
    text = helped(*arguments, width=width)
    assert "Usage" in text
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())


def test_every_command_has_its_help_looked_at() -> None:
    group = typer.main.get_command(app)
    assert {names[0] for names in HELPS if names} == set(group.commands)  # type: ignore[attr-defined]


def test_help_says_what_happens_by_default() -> None:
    text = " ".join(helped("train").replace("│", " ").split())
    assert "runs/DATASET-MODEL-splitN-seedN" in text
    assert "EEGNN_DATA, or a cache folder" in text
    assert all(name in text for name in Trackers)


def test_the_trackers_that_train_takes_exist() -> None:
    assert set(Trackers) == set(TRACKERS)


def test_flags_do_not_ask_for_a_value() -> None:
    words = helped("train").replace("<", " <").split()
    for flag in ("--resume", "--json"):
        assert not words[words.index(flag) + 1].startswith("<")


def test_the_models_that_help_names_exist() -> None:
    named = re.findall("`([a-z]+)`", MODEL)
    assert len(named) >= 2
    assert set(named) <= set(NAMES)


@pytest.mark.parametrize("arguments", HELPS, ids=" ".join)
def test_h_is_short_for_help(arguments: list[str]) -> None:
    short = CliRunner().invoke(app, [*arguments, "-h"], env={"COLUMNS": "100"})
    assert short.exit_code == 0
    assert short.stdout == helped(*arguments)


def test_version_names_the_versions_a_bug_report_needs() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0
    versions = dict(part.split() for part in done.stdout.strip().split(", "))
    versions["torch"] = versions["torch"].partition("+")[0]  # packages do not all name their build
    assert versions == {
        "eegnn": __version__,
        "Python": ".".join(map(str, sys.version_info[:3])),
        "torch": torch.__version__.partition("+")[0],
        "torch_geometric": torch_geometric.__version__,
    }


def completed(words: str) -> list[str]:
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    code = "import sys; sys.argv[0] = 'eegnn'; from eegnn.cli import main; main()"
    environment = os.environ | variables | {"_EEGNN_COMPLETE": "complete_bash"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done.stdout.split()


def test_the_shell_completes_commands_and_options() -> None:
    assert completed("eegnn re") == ["report", "reproduce"]
    assert completed("eegnn bench tr") == ["training"]
    assert completed("eegnn train --epo") == ["--epochs"]


def test_completion_is_installed_for_the_shell_in_use(tmp_path: Path) -> None:
    code = (
        "import sys; from eegnn.cli import main; "
        "sys.argv = ['eegnn', '--install-completion', 'bash']; main()"
    )
    variables = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | variables)
    assert done.returncode == 0
    (script,) = (tmp_path / ".bash_completions").iterdir()
    assert str(script) in (tmp_path / ".bashrc").read_text()


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys, eegnn.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_demo_prints_results_and_leaves_the_picture(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", "--size", "12", "--epochs", "2"])
    assert done.exit_code == 0, done.output
    assert "test ROC AUC" in done.stdout
    assert "time without" in done.stdout
    assert (tmp_path / "eegnn-demo.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_the_only_thing_on_standard_output(tmp_path: Path) -> None:
    picture = tmp_path / "new" / "board.svg"
    done = run("demo", "--size", "12", "--epochs", "2", "--json", "--out", str(picture))
    assert done.returncode == 0, done.stderr
    fields = json.loads(done.stdout)
    assert fields["metric"] == "roc_auc"
    assert fields["epochs"] == 2
    assert sum(fields["exits"]["histogram"]) == 144
    assert fields["picture"] == str(picture)
    assert "test ROC AUC" in done.stderr
    assert picture.exists()


def test_bench_training_reports_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = torch.stack([torch.arange(9), (torch.arange(9) + 1) % 9])
    edge_index = torch.cat([ring, ring.flip(0)], dim=1)
    monkeypatch.setattr(training, "graphs", lambda: {"ring": (9, edge_index)})
    done = CliRunner().invoke(app, ["bench", "training", "--passes", "1", "--json"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["rows"]
    assert row["edges"] == 18
    assert row["ratio"] == row["scatter"] / row["ours"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["demo", "--size", "3"], "--size"),
        (["demo", "--epochs", "0"], "--epochs"),
        (["demo", "--out", "board.txt"], "--out"),
        (["nothing"], "nothing"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_failure_is_one_sentence_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("demo", "--out", str(tmp_path / "file" / "board.png"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("eegnn: ")
    assert len(done.stderr.splitlines()) == 1


def test_names_of_ten_thousand_letters_are_cut(tmp_path: Path) -> None:
    done = run("train", "x" * 10_000)
    assert done.returncode == 2
    assert len(done.stderr) < 1000
    (tmp_path / "nodes.csv").write_text("y" * 9_000 + ",y\n" + "z" * 9_000 + ",1\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,0\n")
    done = run("train", "--input", str(tmp_path))
    assert done.returncode == 1
    assert "nodes.csv" in done.stderr
    assert len(done.stderr) < 2000


def test_json_never_holds_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(score=float("nan"), exits={"mean": float("inf")})
    assert capsys.readouterr().out == '{"score": null, "exits": {"mean": null}}\n'
