from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eegnn.cli import app
from eegnn.data.minesweeper import minesweeper
from eegnn.data.npz import write_npz


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def table(path: Path) -> list[dict[str, float]]:
    return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(path.open())]


def test_training_by_blocks_and_results_with_and_without_them_fit_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_npz(tmp_path / "board.npz", minesweeper(10))
    settings = ["--set", "num_layers=3", "--set", "blocks=4", "--set", "options.continue_bias=1"]
    printed = run(
        "train", "--input", "board.npz", "--epochs", "3", *settings, "--out", "r", "--json"
    )
    summary = json.loads(printed)
    found = [json.loads(run("eval", "r", *b, "--json")) for b in ((), ("--blocks", "0"))]
    for one in found:
        assert one["test"] == pytest.approx(summary["test"])
        assert one["exits"] == summary["exits"]
    tables = []
    for blocks in ("0", "1", "7"):
        run("predict", "r", "--input", "board.npz", "--out", "p.csv", "--blocks", blocks)
        tables.append(table(tmp_path / "p.csv"))
    assert len(tables[0]) == 100
    for other in tables[1:]:
        for a, b in zip(tables[0], other, strict=True):
            assert a == pytest.approx(b, abs=1e-5)


def test_a_few_nodes_are_predicted_as_all_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_npz(tmp_path / "board.npz", minesweeper(10))
    settings = ["--set", "num_layers=3", "--set", "options.continue_bias=1", "--out", "r"]
    run("train", "--input", "board.npz", "--epochs", "3", *settings)
    run("predict", "r", "--out", "all.csv")
    (tmp_path / "ids.txt").write_text("42\n3\n")
    run("predict", "r", "--nodes", "ids.txt", "--max-nodes", "100", "--out", "some.csv")
    every, some = table(tmp_path / "all.csv"), table(tmp_path / "some.csv")
    for row, node in zip(some, (42, 3), strict=True):
        assert row == pytest.approx({**every[node], "truncated": 0.0}, abs=1e-5)
    for wrong in (["--nodes", "ids.txt", "--blocks", "2"], ["--max-nodes", "7"]):
        done = CliRunner().invoke(app, ["predict", "r", "--out", "no.csv", *wrong])
        assert done.exit_code == 2


def test_graphs_of_a_file_with_many_are_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_npz(tmp_path / "board.npz", minesweeper(10))
    write_npz(tmp_path / "two.npz", [minesweeper(10), minesweeper(10)])
    settings = ["--set", "num_layers=2", "--set", "blocks=4", "--epochs", "1", "--out", "r"]
    run("train", "--input", "board.npz", *settings)
    run("predict", "r", "--input", "two.npz", "--out", "p.csv")
    assert len(table(tmp_path / "p.csv")) == 200
    arguments = ["predict", "r", "--input", "two.npz", "--out", "q.csv", "--blocks", "2"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code != 0
    assert "blocks cut one graph, but there are 2" in str(done.exception)
    assert not (tmp_path / "q.csv").exists()
