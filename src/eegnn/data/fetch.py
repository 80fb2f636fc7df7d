"""Data sets through PyG's own classes: they know where to download and how to read.

Each function here returns a function that opens a data set below a data folder. The class's
name is the name of its folder there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch_geometric import datasets
from torch_geometric.data.data import Data, DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

Fetch = Callable[[Path], Sequence[Any]]

SAVED_BY_OGB = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]


def pyg(kind: str, name: str, **options: Any) -> Fetch:
    """Open ``torch_geometric.datasets.<kind>(root / kind, name, **options)``."""

    def fetch(root: Path) -> Sequence[Any]:
        return [getattr(datasets, kind)(str(root / kind), name, **options)]

    return fetch


def lrgb(name: str) -> Fetch:
    """Open the three parts of a data set of the Long Range Graph Benchmark."""

    def fetch(root: Path) -> Sequence[Any]:
        place = str(root / "LRGBDataset")
        return [datasets.LRGBDataset(place, name, split=part) for part in ("train", "val", "test")]

    return fetch


def ogb(name: str) -> Fetch:
    """Open a data set of the Open Graph Benchmark, through the package ``ogb``, an extra."""

    def fetch(root: Path) -> Sequence[Any]:
        kind = "Node" if name.startswith("ogbn") else "Graph"
        try:
            module = import_module(f"ogb.{kind.lower()}proppred")
        except ImportError as error:
            raise ImportError(
                f"{name} needs the package ogb: pip install 'eegnn[ogb]' ({error})"
            ) from error
        open_ogb = getattr(module, f"Pyg{kind}PropPredDataset")
        # ogb calls torch.load as it was before torch 2.6 refused unknown classes. Naming PyG's
        # is safer than TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD, which would let a file run code.
        with torch.serialization.safe_globals(SAVED_BY_OGB):
            return [open_ogb(name, root=str(root / "ogb"))]

    return fetch
