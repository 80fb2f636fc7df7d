from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from eegnn import EEGNN, load
from eegnn.report.card import model_card, run_card, write_card
from eegnn.train.run import RunFolder
from tests.analysis.runs import trained
from tests.train.problems import graph_problem, node_problem


def parts(card: str) -> tuple[dict[str, Any], str]:
    """The head and the text of a card."""
    yaml = pytest.importorskip("yaml", reason="needs a parser of YAML")
    _, head, text = card.split("---\n", 2)
    return yaml.safe_load(head), text


def rows(text: str) -> dict[str, str]:
    return dict(re.findall(r"^\| (.+?) \| (.+) \|$", text, re.MULTILINE))


def test_the_card_of_a_run_has_what_its_files_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    head, text = parts(run_card(run, "cc-by-4.0"))
    assert head["library_name"] == "eegnn"
    assert head["license"] == "cc-by-4.0"
    (entry,) = head["model-index"]
    (result,) = entry["results"]
    assert entry["name"] == "run"
    assert result["dataset"]["name"] == summary["dataset"]
    assert result["metrics"][0]["value"] == summary["test"]
    found = rows(text)
    assert found["data set"] == f"{summary['dataset']}, split {summary['split']}"
    assert found[f"test {summary['metric']}"] == f"{summary['test']:.4f}"
    assert found[f"validation {summary['metric']}"] == f"{summary['val']:.4f}"
    exits = summary["exits"]
    assert found["exits"] == (
        f"{exits['mean']:.1f} layers on average, from {exits['min']} to {exits['max']}"
    )
    assert found["parameters"] == f"{summary['params']:,}"
    assert "The weights: cc-by-4.0." in text


def test_data_of_the_list_have_their_source_and_paths_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch)
    path = run / "config.json"
    content = RunFolder(run).about()
    for dataset, name, source in (
        (
            "tolokers",
            "tolokers",
            "https://github.com/yandex-research/heterophilous-graphs, licence MIT",
        ),
        ("/home/someone/graph.npz", "graph.npz", "not known"),
    ):
        content["config"]["dataset"] = dataset
        path.write_text(json.dumps(content), encoding="utf-8")
        card = run_card(run)
        assert rows(card)["data set"].startswith(f"{name}, split")
        assert rows(card)["its source"] == source
        assert "/home" not in card


def test_a_model_is_loaded_as_its_card_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", graph_problem(), monkeypatch)
    path = write_card(run)
    assert path == run / "README.md"
    (code,) = re.findall(r"```python\n(.+?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(run)
    model = RunFolder(run).model()
    names: dict[str, Any] = {
        "x": torch.randn(3, model.in_channels),
        "edge_index": torch.tensor([[0, 1], [1, 0]]),
        "batch": torch.tensor([0, 0, 1]),
    }
    exec(code, names)
    assert torch.equal(names["out"], model.predict(**{k: names[k] for k in list(names)[:3]})[0])


def test_the_card_of_a_model_without_a_run_claims_no_scores() -> None:
    head, text = parts(model_card(EEGNN(4, 8, 3, num_layers=5, edge_dim=2)))
    assert "model-index" not in head
    assert rows(text) == {
        "model": "`EEGNN(4, 8, 3, num_layers=5, level='node')`",
        "parameters": f"{sum(p.numel() for p in EEGNN(4, 8, 3, edge_dim=2).parameters()):,}",
    }
    assert "model.predict(x, edge_index, edge_attr=edge_attr)" in text


def test_a_run_that_is_not_finished_has_no_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch)
    (run / "summary.json").unlink()
    with pytest.raises(ValueError, match=r"is not finished"):
        write_card(run)
    assert not (run / "README.md").exists()
    assert load(run / "model.safetensors") is not None
