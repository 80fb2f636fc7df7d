"""Saving and loading models: safetensors for the weights, JSON for the rest, nothing executable."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors
from torch import Tensor

from eegnn import _json
from eegnn._check import reason, shown
from eegnn.nn.model import GraphModel
from eegnn.zoo.registry import Classes

#: The models that can be saved and loaded, by the name of their class.
MODELS: Mapping[str, type[GraphModel]] = Classes()
FORMAT = "eegnn-model"
VERSION = 2
#: A file may become this large in memory, or this many times as large as it is on disk.
MAX_BYTES, MAX_RATIO = 2**30, 100


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
        num_built = num_weights(known[about["model"]], about["config"])
    except Exception as error:  # a constructor may raise anything for arguments of any type
        raise ValueError(f"{description} does not fit {about['model']}: {error}") from error
    num_stored = sum(tensor.numel() for tensor in tensors.values())
    other_version = f"{weights} was written by another version of eegnn: "
    if num_built != num_stored:
        raise ValueError(f"{other_version}the model has {num_built} weights, it {num_stored}")
    model = known[about["model"]](**about["config"])
    model.to(_float_type(weights, tensors))
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise ValueError(f"{other_version}{error}") from error
    return model.to(map_location).eval()


def num_weights(cls: type[GraphModel], config: dict[str, Any]) -> int:
    """Return how many numbers the state of a model has, without memory for any of them."""
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        return sum(tensor.numel() for tensor in cls(**config).state_dict().values())


def check_size(name: str, size: int, on_disk: int) -> None:
    """Refuse a file that needs more memory than :data:`MAX_BYTES`, and far more than it is large.

    A few bytes of a compressed file can stand for any number of them.
    """
    if size > max(MAX_BYTES, MAX_RATIO * on_disk):
        raise ValueError(
            f"{name} has {on_disk:,} bytes but would need {size:,} in memory, and more than "
            f"{MAX_RATIO} times its size is refused above {MAX_BYTES:,}: save it without "
            f"compression, as numpy.savez does"
        )


def is_archive(file: Path | io.BytesIO) -> bool:
    """Whether a file ends as zip files do, damaged ones too."""
    try:
        return zipfile.is_zipfile(file)
    except zipfile.BadZipFile:  # which some versions of Python raise for a damaged end
        return True


def check_archive(file: Path | io.BytesIO, name: str) -> None:
    """:func:`check_size` for what a zip file says of the sizes of its parts."""
    on_disk = file.stat().st_size if isinstance(file, Path) else file.getbuffer().nbytes
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except Exception as error:  # bytes from anywhere make it raise several kinds of exception
        raise ValueError(f"{name} is damaged: its table of contents cannot be read") from error
    check_size(name, size, on_disk)


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


def load_tensors(file: Path | io.BytesIO, name: str) -> Any:
    """Read tensors and plain values from a file by ``torch.save``; nothing else is unpickled.

    Args:
        file: a path, or the content.
        name: what messages call it.

    Raises:
        ValueError: the file is damaged, or holds something else. What PyTorch says then is not
            repeated: it advises to execute the file.
    """
    if is_archive(file):  # as all that torch.save has written for years
        check_archive(file, name)
    if not isinstance(file, Path):
        file.seek(0)  # the two above have moved in it
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # bytes from anywhere make it raise a dozen kinds of exception
        needed = re.search(r"GLOBAL ([\w.]{1,100})", str(error))
        if needed is None:
            raise ValueError(f"{name} is damaged, or was not written by torch.save") from error
        raise ValueError(
            f"{name} holds {needed[1]}, which is not loaded, for it could execute code: save "
            f"tensors alone, such as by torch.save(data.to_dict(), path)"
        ) from error


def _paths(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    weights = Path(path)
    if weights.suffix != ".safetensors":
        raise ValueError(f"path must end in .safetensors, got {str(path)!r}")
    return weights, weights.with_suffix(".json")


def _read_description(path: Path, known: Mapping[str, type[GraphModel]]) -> dict[str, Any]:
    about = _json.read(path, Any)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"{path} does not describe an EEGNN model")
    version = about.get("version")
    if type(version) is int and version == 1:
        raise ValueError(
            f"{path} was written by eegnn 0.1, which read exits another way: train the model "
            f"again, or read it with eegnn 0.1"
        )
    if type(version) is not int or version != VERSION:
        raise ValueError(f"{path} has version {shown(version)}; this eegnn reads version {VERSION}")
    name = about.get("model")
    if not isinstance(name, str) or not isinstance(about.get("config"), dict):
        raise ValueError(f"{path} is damaged: it has no name and arguments of a model")
    if name not in known:
        raise ValueError(
            f"{path} names the model {shown(name)}, known are {', '.join(known)}; a class of "
            f"your own is given as load(path, cls=MyModel)"
        )
    return about


def _read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged: it is not a safetensors file ({reason(error)})"
        ) from error
    if FORMAT not in metadata:
        raise ValueError(f"{path} does not hold the weights of an EEGNN model")
    try:
        sums = json.loads(metadata[FORMAT])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: its checksums cannot be read") from error
    if not isinstance(sums, dict) or sums.get("weights") != _checksum(tensors):
        raise ValueError(f"{path} is damaged: its weights do not match their checksum")
    return tensors, sums


def _float_type(path: Path, tensors: dict[str, Tensor]) -> torch.dtype:
    """Return the type of the weights, of which a warning says if they are no numbers."""
    floats = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    if not floats:
        raise ValueError(f"{path} is damaged: it holds no floating-point numbers")
    broken = [name for name, tensor in floats.items() if not bool(tensor.isfinite().all())]
    if broken:
        warnings.warn(
            f"{path} holds NaN or infinite weights in {', '.join(broken[:3])}: training went "
            f"wrong, and predictions will be no numbers",
            stacklevel=3,
        )
    return next(iter(floats.values())).dtype


def _checksum(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _description_checksum(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
