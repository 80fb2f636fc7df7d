"""Models on the Hugging Face Hub, without the network."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from eegnn import EEGNN, load
from eegnn.zoo.gcn import GCN
from tests.analysis.runs import trained
from tests.train.problems import node_problem

pytest.importorskip("huggingface_hub", reason="needs eegnn[hub]")
from huggingface_hub import HfApi, ModelCard

from eegnn import hub
from eegnn.hub import HubEEGNN, HubMixin

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def model() -> HubEEGNN:
    return HubEEGNN(4, 8, 3, num_layers=5, continue_bias=None).double().eval()


def same(a: EEGNN, b: EEGNN) -> bool:
    x = torch.randn(3, 4).double()
    return torch.equal(a(x, EDGES), b(x, EDGES))


def test_a_folder_holds_the_model_with_and_without_the_hub(tmp_path: Path) -> None:
    own = model()
    own.save_pretrained(tmp_path / "model")
    again = HubEEGNN.from_pretrained(tmp_path / "model")
    assert type(again) is HubEEGNN
    assert not again.training
    assert same(own, again)
    plain = load(tmp_path / "model" / "model.safetensors")
    assert type(plain) is EEGNN
    assert same(own, plain)
    card = ModelCard.load(tmp_path / "model" / "README.md")
    assert card.data.library_name == "eegnn"
    assert card.data.license == "mit"


def test_any_model_of_the_library_can_be_there(tmp_path: Path) -> None:
    class HubGCN(GCN, HubMixin):
        pass

    own = HubGCN(4, 8, 3, num_layers=2).eval()
    own.save_pretrained(tmp_path, model_card_kwargs={"licence": "apache-2.0"})
    x = torch.randn(3, 4)
    assert torch.equal(HubGCN.from_pretrained(tmp_path)(x, EDGES), own(x, EDGES))
    assert ModelCard.load(tmp_path / "README.md").data.license == "apache-2.0"
    with pytest.raises(ValueError, match=r"holds a model of class GCN, which HubEEGNN is not"):
        HubEEGNN.from_pretrained(tmp_path)


def test_a_model_is_uploaded_with_its_card_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    run = trained(tmp_path / "run", node_problem(), monkeypatch)

    def upload(api: Any, *, repo_id: str, folder_path: Path, **options: Any) -> str:
        shutil.copytree(folder_path, repository)
        return f"uploaded {repo_id}"

    def download(repo_id: str, allow_patterns: list[str], **options: Any) -> str:
        assert repo_id == "someone/model"
        assert options["revision"] == "main"
        assert sorted(allow_patterns) == ["model.json", "model.safetensors"]
        return str(repository)

    monkeypatch.setattr(
        HfApi, "create_repo", lambda *_, repo_id, **__: SimpleNamespace(repo_id=repo_id)
    )
    monkeypatch.setattr(HfApi, "upload_folder", upload)
    monkeypatch.setattr(hub, "snapshot_download", download)
    own = HubEEGNN.from_pretrained(run)
    told = own.push_to_hub("someone/model", model_card_kwargs={"run": run})
    assert told == "uploaded someone/model"
    files = {"README.md", "config.json", "model.json", "model.safetensors"}
    assert {path.name for path in repository.iterdir()} == files
    assert (repository / "model.safetensors").read_bytes() == (
        run / "model.safetensors"
    ).read_bytes()
    assert ModelCard.load(repository / "README.md").data.eval_results is not None
    monkeypatch.setattr(
        "huggingface_hub.hub_mixin.hf_hub_download", lambda **_: repository / "config.json"
    )
    again = HubEEGNN.from_pretrained("someone/model", revision="main")
    assert again.config == own.config
    assert all(torch.equal(a, b) for a, b in zip(own.parameters(), again.parameters(), strict=True))


def test_a_run_keeps_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch)
    before = (run / "config.json").read_bytes()
    with pytest.raises(ValueError, match=r"save_directory must not be a run"):
        HubEEGNN.from_pretrained(run).save_pretrained(run)
    assert (run / "config.json").read_bytes() == before
