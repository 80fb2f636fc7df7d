import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    return subprocess.run(
        [sys.executable, "-m", "eegnn", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
    )


def test_help_names_the_commands() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "bench" in done.stdout


def test_demo_prints_results_and_leaves_the_picture(tmp_path: Path) -> None:
    done = run("demo", "--size", "12", "--epochs", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "test ROC AUC" in done.stdout
    assert "time without" in done.stdout
    assert (tmp_path / "eegnn-demo.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_the_only_thing_on_standard_output(tmp_path: Path) -> None:
    picture = tmp_path / "board.svg"
    done = run("demo", "--size", "12", "--epochs", "2", "--json", "--out", str(picture))
    assert done.returncode == 0, done.stderr
    fields = json.loads(done.stdout)
    assert fields["metric"] == "roc_auc"
    assert fields["epochs"] == 2
    assert sum(fields["exits"]["histogram"]) == 144
    assert fields["picture"] == str(picture)
    assert "test ROC AUC" in done.stderr
    assert picture.exists()


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
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_failure_is_one_sentence_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("demo", "--out", str(tmp_path / "file" / "board.png"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("eegnn: ")
    assert len(done.stderr.splitlines()) == 1
