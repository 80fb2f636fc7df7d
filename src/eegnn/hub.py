"""Models on the Hugging Face Hub; needs ``eegnn[hub]``.

A repository holds the two files of :func:`eegnn.save`, so that :func:`eegnn.load` reads them too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from eegnn.io import MODELS, load, save
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.model import GraphModel
from eegnn.report.card import model_card, run_card

try:
    from huggingface_hub import ModelCard, PyTorchModelHubMixin, snapshot_download
except ImportError as error:
    raise ImportError(
        "the Hugging Face Hub needs huggingface_hub: pip install 'eegnn[hub]'"
    ) from error

WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"


class HubMixin(PyTorchModelHubMixin, library_name="eegnn"):
    """Gives a model ``save_pretrained``, ``push_to_hub`` and ``from_pretrained``.

    It stands after a model of this library, as in ``class HubGCN(GCN, HubMixin)``. The folder of a
    run is one that ``from_pretrained`` takes, and ``model_card_kwargs={"run": folder}`` of the
    other two writes the card of that run.
    """

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> str | None:
        """Write weights, description, card and ``config.json`` of the Hub into a folder."""
        if (Path(save_directory) / "metrics.jsonl").exists():
            raise ValueError(
                f"save_directory must not be a run, whose config.json would be lost, got "
                f"{str(save_directory)!r}"
            )
        return super().save_pretrained(save_directory, **options)

    def generate_model_card(self, run: str | Path | None = None, licence: str = "mit") -> ModelCard:
        """Return the card of the model, or of the run that it comes from."""
        text = model_card(_plain(self), licence) if run is None else run_card(Path(run), licence)
        return ModelCard(text)

    def _save_pretrained(self, save_directory: Path) -> None:
        save(_plain(self), save_directory / WEIGHTS)

    @classmethod
    def _from_pretrained(cls, *, model_id: str, map_location: str = "cpu", **options: Any) -> Self:
        folder = Path(model_id)
        if not folder.is_dir():
            asked = ("revision", "cache_dir", "force_download", "local_files_only", "token")
            where = {name: options[name] for name in asked}
            files = [WEIGHTS, DESCRIPTION]
            folder = Path(snapshot_download(model_id, allow_patterns=files, **where))
        model = load(folder / WEIGHTS, map_location=map_location)
        if not issubclass(cls, type(model)):
            raise ValueError(
                f"{model_id} holds a model of class {type(model).__name__}, which "
                f"{cls.__name__} is not derived from"
            )
        return _as_class(cls, model)


class HubEEGNN(EEGNN, HubMixin):
    """:class:`~eegnn.EEGNN` with ``save_pretrained``, ``push_to_hub`` and ``from_pretrained``."""


def _plain(model: Any) -> GraphModel:
    """Return the same model as one of this library, which can be loaded without the Hub."""
    known = (base for base in type(model).__mro__ if MODELS.get(base.__name__) is base)
    return _as_class(next(known), model)


def _as_class(cls: Any, model: GraphModel) -> Any:
    """Return the same model as an object of another class; they share their weights."""
    other = cls(**model.config)
    other.load_state_dict(model.state_dict(), assign=True)
    return other.train(model.training)
