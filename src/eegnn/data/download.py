"""Where the files of data sets come from: the data folder, a mirror, or a download by PyG.

Files are kept in the data folder. Those that are not there yet are copied from the mirror, if there
is one; the rest are downloaded by the data set classes of PyG and OGB. The mirror is a folder for
machines without internet. It is only ever read, and its layout is that of PyG's roots:
``WebKB/texas/raw/…``.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch_geometric import datasets
from torch_geometric.data.data import Data, DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from eegnn.io import write_atomically

DATA = "EEGNN_DATA"
MIRROR = "EEGNN_MIRROR"

SAVED_BY_OGB = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]


class Archive(NamedTuple):
    """A zip file that the mirror may hold in place of raw files, and the folder in it."""

    path: str
    folder: str


def data_root(root: Path | None = None) -> Path:
    """Return the data folder: ``root``, else ``EEGNN_DATA``, else a user cache folder."""
    if root is not None:
        return Path(root).expanduser()
    if named := os.environ.get(DATA):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "eegnn"


def mirror_root() -> Path | None:
    """Return the folder that ``EEGNN_MIRROR`` names, or ``None`` where it is not set."""
    named = os.environ.get(MIRROR)
    if not named:
        return None
    mirror = Path(named).expanduser()
    if not mirror.is_dir():
        raise ValueError(f"{MIRROR} must name a folder with raw files, got {named!r}")
    return mirror


def in_mirror(path: str) -> bool:
    """Whether the mirror has this file, or a file in this folder."""
    mirror = mirror_root()
    return mirror is not None and any(_files(mirror / path))


def copy_from_mirror(*paths: str, root: Path) -> None:
    """Copy files and folders from the mirror, if there is one; see :func:`copy_missing`."""
    mirror = mirror_root()
    if mirror is not None:
        copy_missing(*paths, source=mirror, root=root)


def copy_missing(*paths: str, source: Path, root: Path) -> None:
    """Copy files and folders from one root to another, except files that are there already.

    Paths are relative to both. Those that the source does not have are skipped. A file that cannot
    be copied completely does not appear.
    """
    for path in paths:
        for file in _files(source / path):
            target = root / file.relative_to(source)
            if not target.exists():
                # Contents only: the files of the mirror may be write-protected.
                write_atomically(target, file.read_bytes(), durable=False)


def unpack_from_mirror(archive: Archive, target: Path) -> None:
    """Unpack the folder of an archive as ``target``, unless that exists or there is no archive."""
    mirror = mirror_root()
    if mirror is None or target.exists() or not (mirror / archive.path).is_file():
        return
    with zipfile.ZipFile(mirror / archive.path) as packed:
        packed.extractall(target.parent)
    os.rename(target.parent / archive.folder, target)


def load_pyg(collection: str, name: str, root: Path, **options: Any) -> Sequence[Any]:
    """Open ``torch_geometric.datasets.<collection>(root / collection, name, **options)``."""
    return [getattr(datasets, collection)(str(root / collection), name, **options)]


def load_lrgb(name: str, root: Path) -> Sequence[Any]:
    """Open the training, validation and test graphs of a Long Range Graph Benchmark data set."""
    folder = str(root / "LRGBDataset")
    return [datasets.LRGBDataset(folder, name, split=part) for part in ("train", "val", "test")]


def load_ogb(name: str, root: Path) -> Sequence[Any]:
    """Open a data set of the Open Graph Benchmark by the optional package ``ogb``."""
    kind = "Node" if name.startswith("ogbn") else "Graph"
    try:
        module = import_module(f"ogb.{kind.lower()}proppred")
    except ImportError as error:
        raise ImportError(
            f"{name} needs the package ogb: pip install 'eegnn[ogb]' ({error})"
        ) from error
    dataset_class = getattr(module, f"Pyg{kind}PropPredDataset")
    # ogb calls torch.load as it was before torch 2.6 refused unknown classes. Naming PyG's
    # is safer than TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD, which would let a file run code.
    with torch.serialization.safe_globals(SAVED_BY_OGB):
        return [dataset_class(name, root=str(root / "ogb"))]


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.is_file())
