"""A mirror with a tiny data set of each kind that the tests open."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import torch

NODES = 40
GRAPHS = 40


def tiny_mirror(mirror: Path) -> Path:
    """Write Minesweeper, Photo, IMDB-BINARY and Peptides-func, all tiny, and write-protect them."""
    _minesweeper(mirror / "HeterophilousGraphDataset/minesweeper/raw")
    _photo(mirror / "Amazon/Photo/raw")
    _imdb(mirror / "TUDataset/IMDB-BINARY/raw")
    _peptides(mirror / "LRGBDataset")
    for path in sorted(mirror.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return mirror


def digest(folder: Path) -> str:
    """One number for all names and contents below a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        total.update(str(path.relative_to(folder)).encode())
        total.update(path.read_bytes() if path.is_file() else b"")
    return total.hexdigest()


def publish_folds(mirror: Path) -> list[dict[str, list[int]]]:
    """Write folds for IMDB-BINARY: fold k tests 4k … 4k + 3 and validates on the next four."""
    folds = []
    for k in range(10):
        test, val = range(4 * k, 4 * k + 4), [(4 * k + 4 + i) % GRAPHS for i in range(4)]
        train = sorted(set(range(GRAPHS)) - {*test, *val})
        folds.append({"train": train, "val": val, "test": list(test)})
    path = mirror / "splits/TU_folds/IMDB-BINARY_splits.json"
    path.parent.mkdir(parents=True)
    path.write_text(
        json.dumps(
            [
                {
                    "test": fold["test"],
                    "model_selection": [{"train": fold["train"], "validation": fold["val"]}],
                }
                for fold in folds
            ]
        )
    )
    return folds


def _minesweeper(raw: Path) -> None:
    raw.mkdir(parents=True)
    masks = np.zeros((3, 10, NODES), dtype=bool)
    for split in range(10):
        for part in range(3):
            masks[part, split, (np.arange(NODES) + split) % 4 == part + (part == 0)] = True
    masks[0] = ~(masks[1] | masks[2])
    np.savez(
        raw / "minesweeper.npz",
        node_features=np.eye(NODES, 7, dtype=np.float32),
        node_labels=np.arange(NODES) % 2,
        edges=np.stack([np.arange(NODES - 1), np.arange(1, NODES)], axis=1),
        train_masks=masks[0],
        val_masks=masks[1],
        test_masks=masks[2],
    )


def _photo(raw: Path) -> None:
    raw.mkdir(parents=True)
    pointer = np.minimum(np.arange(NODES + 1), NODES - 1)
    np.savez(
        raw / "amazon_electronics_photo.npz",
        attr_data=np.ones(NODES, dtype=np.float32),
        attr_indices=np.arange(NODES) % 5,
        attr_indptr=np.arange(NODES + 1),
        attr_shape=(NODES, 5),
        adj_data=np.ones(NODES - 1, dtype=np.float32),
        adj_indices=np.arange(1, NODES),
        adj_indptr=pointer,
        adj_shape=(NODES, NODES),
        labels=np.arange(NODES) % 4,
    )


def _imdb(raw: Path) -> None:
    """Graph g is a star with 2 + g % 3 leaves."""
    raw.mkdir(parents=True)
    edges, indicator, first = [], [], 1
    for graph in range(GRAPHS):
        leaves = 2 + graph % 3
        for leaf in range(first + 1, first + 1 + leaves):
            edges += [f"{first}, {leaf}", f"{leaf}, {first}"]
        indicator += [str(graph + 1)] * (leaves + 1)
        first += leaves + 1
    (raw / "IMDB-BINARY_A.txt").write_text("\n".join(edges) + "\n")
    (raw / "IMDB-BINARY_graph_indicator.txt").write_text("\n".join(indicator) + "\n")
    labels = "\n".join(str(graph % 2) for graph in range(GRAPHS))
    (raw / "IMDB-BINARY_graph_labels.txt").write_text(labels + "\n")


def _peptides(folder: Path) -> None:
    folder.mkdir(parents=True)
    graph = (
        torch.zeros(3, 9, dtype=torch.int64),
        torch.zeros(4, 3, dtype=torch.int64),
        torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        torch.zeros(1, 10),
    )
    with zipfile.ZipFile(folder / "peptidesfunc.zip", "w") as packed:
        for part, graphs in (("train", 4), ("val", 2), ("test", 3)):
            with packed.open(f"peptidesfunc/{part}.pt", "w") as file:
                torch.save([graph] * graphs, file)
