from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eegnn.cli import app
from eegnn.experiments import registry
from eegnn.studies.runner import train_command
from eegnn.train.run import RunFolder
from eegnn.train.start import configure
from tests.studies import tiny


@pytest.fixture(autouse=True)
def only_tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "EXPERIMENTS", {"tiny": "tests.studies.tiny"})


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_an_experiment_ends_with_its_files(tmp_path: Path) -> None:
    said = run("reproduce", "tiny", "--splits", "0", "--json")
    found = json.loads(said.splitlines()[-1])
    assert (found["name"], found["runs"], found["left"]) == ("tiny", 2, 0)
    assert [(cell["row"], cell["n"]) for cell in found["cells"]] == [("GCN", 1), ("ADGN", 1)]
    # One of two splits: nothing is decided yet.
    assert found["findings"] == [{"text": "something was run", "holds": None, "so_far": True}]
    names = {path.name for path in (tmp_path / "results").iterdir()}
    assert names == {"tiny.jsonl", "tiny.md", "tiny.csv", "tiny.png"}
    before = (tmp_path / "results" / "tiny.jsonl").read_bytes()
    run("reproduce", "tiny", "--splits", "0")
    assert (tmp_path / "results" / "tiny.jsonl").read_bytes() == before


def test_all_runs_everything_and_the_list_knows_it(tmp_path: Path) -> None:
    run("reproduce", "all", "--quick", "--out", "found")
    assert (tmp_path / "found" / "tiny-quick.md").exists()
    for quick, done in ((["--quick"], 2), ([], 0)):
        listed = json.loads(run("reproduce", "--list", "--out", "found", "--json", *quick))
        (row,) = listed["experiments"]
        assert (row["name"], row["done"], row["missing"]) == ("tiny", done, [])
    assert "A tiny study" in run("reproduce", "--list")


def test_the_command_of_a_run_gives_that_run(tmp_path: Path) -> None:
    settings = {"lr": 0.5, "loss": "l1", "patience": 3, "options": {"gamma": 0.3, "phi": "sum"}}
    wanted = configure(tiny.DATASET, "adgn", None, {"epochs": 1, "seed": 2, **settings})
    run(*shlex.split(train_command(wanted))[1:], "--out", "again")
    assert RunFolder(tmp_path / "again").config() == wanted


def test_some_runs_can_be_chosen_by_name(tmp_path: Path) -> None:
    found = json.loads(run("reproduce", "tiny", "--only", "adgn", "--json").splitlines()[-1])
    assert found["runs"] == 2
    assert [(cell["row"], cell["n"]) for cell in found["cells"]] == [("GCN", 0), ("ADGN", 2)]


def test_a_storage_brings_the_results_of_others(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs eegnn[tune]")
    for machine in ("a", "b"):
        places = ["--out", f"{machine}/results", "--runs", f"{machine}/runs"]
        run("reproduce", "tiny", "--splits", "0", "--storage", "shared.db", *places)
    here, there = (tmp_path / name / "results" / "tiny.jsonl" for name in "ab")
    assert len(here.read_text().splitlines()) == 2
    assert sorted(here.read_text().splitlines()) == sorted(there.read_text().splitlines())


def test_one_page_has_the_results_of_all(tmp_path: Path) -> None:
    run("reproduce", "tiny", "--only", "gcn")
    for name in ("tiny.csv", "tiny.png"):
        (tmp_path / "results" / name).unlink()
    run("reproduce", "--write-results", "docs/page.md")
    page = (tmp_path / "docs" / "page.md").read_text()
    assert "| [tiny](#tiny) | A tiny study | 1 | 0 | 1 |" in page
    assert "(../results/tiny.png)" in page
    assert (tmp_path / "results" / "tiny.csv").exists()
    assert (tmp_path / "results" / "tiny.png").exists()


def test_the_runs_behind_a_number_are_listed(tmp_path: Path) -> None:
    run("reproduce", "tiny", "--only", "gcn")
    lines = (tmp_path / "results" / "tiny.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    # A line of other settings is superseded, and listed too.
    old = {**records[0], "config": {**records[0]["config"], "lr": 0.5}}
    del old["sha256"]
    (tmp_path / "results" / "tiny.jsonl").write_text("\n".join([*lines, json.dumps(old)]) + "\n")
    said = run("reproduce", "tiny", "--show", "gcn, 3", "--json")
    now, before = json.loads(said.splitlines()[-1])["cells"]
    assert [each["source"] for each in now["runs"]] == ["tiny.jsonl:1", "tiny.jsonl:2"]
    assert [each["command"] for each in now["runs"]] == [r["command"] for r in records]
    assert now["mean"] == pytest.approx(sum(math.log10(r["test"]) for r in records) / 2)
    assert (before["superseded"], len(before["runs"])) == ("lr 0.5 (now 0.01)", 1)
    assert f"tiny.jsonl:2: {records[1]['command']}" in run("reproduce", "tiny", "--show", "GCN, 3")
    wrong = CliRunner().invoke(app, ["reproduce", "tiny", "--show", "gnc"])
    assert isinstance(wrong.exception, ValueError)
    assert "did you mean 'line, GCN, 3'" in str(wrong.exception)


def test_data_that_cannot_be_had_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "missing_data", lambda configs, root: [tiny.DATASET])

    def unreachable(*given: object) -> None:
        raise OSError("there is no network")

    monkeypatch.setattr("eegnn.cli.experiments.open_problem", unreachable)
    done = CliRunner().invoke(app, ["reproduce", "tiny"])
    assert done.exit_code == 1
    assert "there is no network" in done.stdout
    assert "left out" in done.stdout
    assert "left out" in run("reproduce", "all")
    assert f"Elsewhere, with {tiny.DATASET}: eegnn reproduce tiny" in run("reproduce", "--list")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "NAME"),
        (["tiny", "--list"], "NAME"),
        (["--list", "--write-results", "page.md"], "NAME"),
        (["--list", "--show", "GCN"], "--show"),
        (["all", "--show", "GCN"], "--show"),
        (["tiny", "--only", "nobody"], "--only"),
        (["tiny", "--splits", "a"], "--splits"),
        (["tiny", "--splits", "3-1"], "--splits"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["reproduce", *arguments])
    assert done.exit_code == 2
    assert said in done.stderr


def test_an_unknown_experiment_is_named() -> None:
    done = CliRunner().invoke(app, ["reproduce", "tinny"])
    assert isinstance(done.exception, ValueError)
    assert "did you mean tiny" in str(done.exception)
