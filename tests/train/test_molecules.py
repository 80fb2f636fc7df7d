"""Training on atoms and bonds: the first graphs of each real data set."""

from __future__ import annotations

import gzip
import io
import math
import os
import zipfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
import torch

from eegnn.data.download import MIRROR
from eegnn.train.config import make_config
from eegnn.train.start import train
from tests.train.problems import molecule_problem, new_run

real = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get(MIRROR), reason=f"{MIRROR} names no folder"),
]


@pytest.mark.filterwarnings("ignore:no unit left")  # they are free to go on
def test_a_model_learns_from_categories(tmp_path: Path) -> None:
    problem = molecule_problem(48)
    summary = new_run(tmp_path, problem, epochs=40, lr=0.02, num_layers=2).fit()
    assert summary["val"] > 0.9  # a constant guess: half


@pytest.mark.parametrize("model", ["gcn", "sasgnn", "eegnn"])
def test_every_model_takes_categories(model: str, tmp_path: Path) -> None:
    assert new_run(tmp_path, molecule_problem(), epochs=1, model=model).fit()["epochs"] == 1


def peptides(source: Path, mirror: Path) -> None:
    (mirror / "LRGBDataset").mkdir(parents=True)
    with zipfile.ZipFile(source / "LRGBDataset/peptidesfunc.zip") as whole:
        graphs = torch.load(io.BytesIO(whole.read("peptidesfunc/val.pt")))
    with zipfile.ZipFile(mirror / "LRGBDataset/peptidesfunc.zip", "w") as packed:
        for number, part in enumerate(("train", "val", "test")):
            with packed.open(f"peptidesfunc/{part}.pt", "w") as file:
                torch.save(graphs[20 * number : 20 * (number + 1)], file)


def molhiv(source: Path, mirror: Path) -> None:
    home = Path("ogb/ogbg_molhiv")

    def lines(name: str, number: int) -> list[str]:
        with gzip.open(source / home / f"raw/{name}.csv.gz", "rt") as file:
            return [line.strip() for line in islice(file, number)]

    def write(file: str, content: list[str]) -> None:
        (mirror / home / file).parent.mkdir(parents=True, exist_ok=True)
        (mirror / home / file).write_bytes(gzip.compress("\n".join([*content, ""]).encode()))

    count = 300  # three in a hundred are active, and every part needs some
    nodes, edges = (lines(f"num-{kind}-list", count) for kind in ("node", "edge"))
    rows = {
        "num-node-list": count,
        "num-edge-list": count,
        "graph-label": count,
        "node-feat": sum(map(int, nodes)),
        "edge": sum(map(int, edges)),
        "edge-feat": sum(map(int, edges)),
    }
    for name, number in rows.items():
        write(f"raw/{name}.csv.gz", lines(name, number))
    for number, part in enumerate(("train", "valid", "test")):
        third = range(number, count, 3)
        write(f"split/scaffold/{part}.csv.gz", [str(graph) for graph in third])
    write("mapping/mol.csv.gz", ["smiles"])
    (mirror / home / "RELEASE_v1.txt").touch()


@pytest.mark.parametrize(
    ("dataset", "subset", "encoding"),
    [
        pytest.param("peptides-func", peptides, "lappe", marks=real),
        pytest.param("ogbg-molhiv", molhiv, "none", marks=real),
    ],
)
def test_real_molecules_are_trained_on(
    dataset: str,
    subset: Callable[[Path, Path], None],
    encoding: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if dataset.startswith("ogb"):
        pytest.importorskip("ogb")
    subset(Path(os.environ[MIRROR]), tmp_path / "mirror")
    monkeypatch.setenv(MIRROR, str(tmp_path / "mirror"))
    config = make_config(
        {
            "dataset": dataset,
            "hidden_channels": 16,
            "num_layers": 4,
            "epochs": 2,
            "encoding": encoding,
        }
    )
    summary = train(config, tmp_path / "run", root=tmp_path / "data")
    assert math.isfinite(summary["test"])
    assert summary["epochs"] == 2
