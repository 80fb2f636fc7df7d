"""Saving and loading models: safetensors for the weights, JSON for the rest, nothing executable."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors
from torch import Tensor

from eegnn.nn.model import GraphModel
from eegnn.zoo.registry import Classes

#: The models that can be saved and loaded, by the name of their class.
MODELS: Mapping[str, type[GraphModel]] = Classes()
FORMAT = "eegnn-model"
VERSION = 2


def save(model: GraphModel, path: str | os.PathLike[str]) -> None:
    """Write a model as ``path`` (weights) and the same name with ``.json`` (what to build).

    Each file is written whole or not at all.

    Args:
        model: a model of this library, such as :class:`~eegnn.EEGNN`, or of a class derived from
            one, which :func:`load` has to be given.
        path: a file name ending in ``.safetensors``.
    """
    weights, description = _paths(path)
    name = type(model).__name__
    if not isinstance(model, GraphModel):
        raise TypeError(
            f"model must be one of {', '.join(MODELS)}, or derived from one, got {name}"
        )
    if MODELS.get(name, type(model)) is not type(model):
        raise TypeError(f"model is of a class named as eegnn's {name}: give it another name")
    tensors = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}
    about = {"format": FORMAT, "version": VERSION, "model": name, "config": model.config}
    sums = {"weights": _checksum(tensors), "description": _description_checksum(about)}
    # A single entry: safetensors writes several in random order, and equal models should be equal
    # files.
    metadata = {FORMAT: json.dumps(sums)}
    write_atomically(description, (json.dumps(about, indent=2) + "\n").encode())
    write_atomically(weights, to_safetensors(tensors, metadata))


def load(
    path: str | os.PathLike[str],
    *,
    map_location: str | torch.device = "cpu",
    cls: type[GraphModel] | None = None,
) -> GraphModel:
    """Read a model that :func:`save` wrote. It comes back in evaluation mode.

    Args:
        path: a file name ending in ``.safetensors``.
        map_location: the device that it is put on.
        cls: the class of the model, where it is not one of this library. The file has its name, and
            a name from a file is never imported.

    Raises:
        FileNotFoundError: one of the two files is missing.
        ValueError: a file is damaged, is of another kind, or the two do not belong together.
    """
    weights, description = _paths(path)
    for file in (weights, description):
        if not file.is_file():
            raise FileNotFoundError(
                f"{file} does not exist; a model is two files, {weights.name} "
                f"and {description.name}"
            )
    known = MODELS if cls is None else {cls.__name__: cls}
    about = _read_description(description, known)
    tensors, sums = _read_tensors(weights)
    if sums.get("description") != _description_checksum(about):
        raise ValueError(
            f"{weights.name} and {description} do not belong together: one of them was changed or "
            f"replaced"
        )
    try:
        model = known[about["model"]](**about["config"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{description} does not fit {about['model']}: {error}") from error
    model.to(next(t.dtype for t in tensors.values() if t.is_floating_point()))  # not of a counter
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise ValueError(f"{weights} was written by another version of eegnn: {error}") from error
    return model.to(map_location).eval()


def write_atomically(path: Path, content: bytes, durable: bool = True) -> None:
    """Write a file so that after a crash the old or the new content is there, never a part.

    Args:
        path: the file.
        content: all of it.
        durable: wait until it is on the disk. Without, a power cut may lose the newest version,
            but a killed process does not.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _paths(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    weights = Path(path)
    if weights.suffix != ".safetensors":
        raise ValueError(f"path must end in .safetensors, got {str(path)!r}")
    return weights, weights.with_suffix(".json")


def _read_description(path: Path, known: Mapping[str, type[GraphModel]]) -> dict[str, Any]:
    try:
        about: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: it is not JSON ({error})") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"{path} does not describe an EEGNN model")
    version = about.get("version")
    if type(version) is int and version == 1:
        raise ValueError(
            f"{path} was written by eegnn 0.1, which read exits another way: train the model "
            f"again, or read it with eegnn 0.1"
        )
    if type(version) is not int or version != VERSION:
        raise ValueError(f"{path} has version {version!r}; this eegnn reads version {VERSION}")
    name = about.get("model")
    if not isinstance(name, str) or not isinstance(about.get("config"), dict):
        raise ValueError(f"{path} is damaged: it has no name and arguments of a model")
    if name not in known:
        raise ValueError(
            f"{path} names the model {name!r}, known are {', '.join(known)}; a class of your own "
            f"is given as load(path, cls=MyModel)"
        )
    return about


def _read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is damaged: it is not a safetensors file ({error})") from error
    if FORMAT not in metadata:
        raise ValueError(f"{path} does not hold the weights of an EEGNN model")
    try:
        sums = json.loads(metadata[FORMAT])
    except ValueError as error:
        raise ValueError(f"{path} is damaged: its checksums cannot be read") from error
    if not isinstance(sums, dict) or sums.get("weights") != _checksum(tensors):
        raise ValueError(f"{path} is damaged: its weights do not match their checksum")
    return tensors, sums


def _checksum(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _description_checksum(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
