from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from eegnn.cli import app
from tests.analysis.runs import trained
from tests.train.problems import graph_problem


def test_runs_become_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(tmp_path / "run", graph_problem(), monkeypatch)
    out = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", str(run), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--out", str(out)])
    assert isinstance(done.exception, FileNotFoundError)
    assert str(tmp_path) in str(done.exception)
    assert not out.exists()


def test_a_run_is_needed() -> None:
    assert CliRunner().invoke(app, ["report"]).exit_code == 2


def test_a_run_gets_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(tmp_path / "run", graph_problem(), monkeypatch)
    done = CliRunner().invoke(app, ["card", str(run), "--license", "cc0-1.0"])
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert 'license: "cc0-1.0"' in (run / "README.md").read_text(encoding="utf-8")


def test_a_folder_without_a_run_gets_no_card(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["card", str(tmp_path)])
    assert isinstance(done.exception, FileNotFoundError)
    assert not list(tmp_path.iterdir())
