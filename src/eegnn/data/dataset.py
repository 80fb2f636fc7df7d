"""DataSet: what is known of a data set before it is opened, and how it becomes a Problem."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch_geometric.data import Data

from eegnn import _check
from eegnn.data.download import (
    MIRROR,
    Archive,
    copy_from_mirror,
    copy_missing,
    data_root,
    in_mirror,
    unpack_from_mirror,
)
from eegnn.data.links import link_problem
from eegnn.data.problem import Metric, Problem
from eegnn.data.splits import Splitter
from eegnn.typing import Level, Task

Place = Literal["on disk", "in mirror", "needs network"]


@dataclass(frozen=True)
class DataSet:
    """One entry of the registry.

    Attributes:
        name: what a user types.
        title: what its authors call it.
        family: the collection it belongs to.
        folder: its folder below the data folder; holds ``raw`` and ``processed``.
        load: opens it below a data folder by PyG's class, which downloads and processes it first
            if need be. Returns one data set, or one for each part of the split.
        split: picks a split; of links it is drawn, see :func:`~eegnn.data.links.link_problem`.
        citation, url: where it comes from.
        figures: published statistics, under the names of
            :func:`eegnn.data.statistics.statistics`.
        num_splits: how many splits there are.
        level, task, metric, node_categories, edge_categories: as in
            :class:`~eegnn.data.problem.Problem`.
        licence: of the data, as stated by its publishers.
        corrections: what the files have where a published figure is known to be wrong.
        transform: applied to every graph.
        features: a sentence on what the transform, or the publishers, did to node features.
        archive: a zip file that a mirror may hold instead of the raw files.
        raw_paths: what ``folder`` must hold to be processed without a download.
        remark: what a user should know, such as errors in published statistics.
    """

    name: str
    title: str
    family: str
    folder: str
    load: Callable[[Path], Sequence[Any]] = field(repr=False)
    split: Splitter = field(repr=False)
    citation: str
    url: str
    figures: Mapping[str, float] = field(repr=False)
    num_splits: int = 1
    level: Level = "node"
    task: Task = "classification"
    metric: Metric = "accuracy"
    node_categories: tuple[int, ...] = ()
    edge_categories: tuple[int, ...] = ()
    licence: str = "none stated"
    corrections: Mapping[str, float] = field(default_factory=dict, repr=False)
    transform: Callable[[Data], Data] | None = field(default=None, repr=False)
    features: str = "as published"
    archive: Archive | None = None
    raw_paths: tuple[str, ...] = ("raw",)
    remark: str = ""

    def place(self, root: Path | None = None) -> Place:
        """Tell whether it can be opened without a network, and from where."""
        folder = data_root(root) / self.folder
        if (folder / "processed").is_dir() or any(folder.glob("raw/*")):
            return "on disk"
        if in_mirror(f"{self.folder}/raw") or (self.archive and in_mirror(self.archive.path)):
            return "in mirror"
        return "needs network"

    def open(self, split: int = 0, root: Path | None = None) -> Problem:
        """Open a split, counted from 0: from the data folder, else from the mirror, else from the
        network.
        """
        if _check.integer("split", split, at_least=0) >= self.num_splits:
            valid = (
                f"0 … {self.num_splits - 1}" if self.num_splits > 1 else "0, for there is only one"
            )
            raise ValueError(f"split of {self.name} must be {valid}, got {split}")
        root = data_root(root)
        processed = root / self.folder / "processed"
        if not processed.is_dir():
            self._process(root)
        try:
            datasets = self._load(root)
        except ImportError:
            raise
        except Exception as error:
            raise OSError(
                f"{self.title}: {processed} cannot be read ({type(error).__name__}: {error}); "
                f"remove that folder to have it made anew"
            ) from error
        graphs = [self._graph(data) for dataset in datasets for data in dataset]
        if self.level == "edge":
            notes = {"features": self.features, "source": self.url}
            return link_problem(self.name, graphs[0], split, notes)
        parts = self.split(datasets, split, root)
        return Problem(
            name=self.name,
            graphs=graphs,
            level=self.level,
            task=self.task,
            metric=self.metric,
            out_channels=int(self.figures["classes"]),
            train=parts.train,
            val=parts.val,
            test=parts.test,
            inductive="graphs" in self.figures,
            node_categories=self.node_categories,
            edge_categories=self.edge_categories,
            notes={"split": parts.note, "features": self.features, "source": self.url},
        )

    def _load(self, root: Path) -> Sequence[Any]:
        with redirect_stdout(sys.stderr):  # PyG and ogb print, but our output may be JSON
            return self.load(root)

    def _graph(self, data: Data) -> Data:
        """Keep what a model needs, with labels of the shape that the task asks for."""
        if self.transform is not None:
            data = self.transform(data)
        y = data.y.flatten() if self.task == "classification" else data.y.float()
        return Data(x=data.x, edge_index=data.edge_index, edge_attr=data.edge_attr, y=y)

    def _process(self, root: Path) -> None:
        """Have PyG download and process in a temporary folder, then move the complete result.

        So a lost connection, a killed process, or a second process that does the same, leave either
        nothing or all of the files.
        """
        place = self.place(root)
        root.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(dir=root, prefix=".opening-") as temporary:
                stage = Path(temporary)
                paths = [f"{self.folder}/{path}" for path in self.raw_paths]
                copy_missing(*paths, source=root, root=stage)
                copy_from_mirror(*paths, root=stage)
                try:
                    if self.archive is not None:
                        unpack_from_mirror(self.archive, stage / self.folder / "raw")
                    self._load(stage)
                except ImportError:
                    raise
                except Exception as error:
                    raise self._unavailable(root, place, error) from error
                _move_files(stage / self.folder, root / self.folder)
        except BaseException:
            with suppress(OSError):
                root.rmdir()  # only if it is empty, that is, if it was made here
            raise

    def _unavailable(self, root: Path, place: Place, error: Exception) -> OSError:
        cause = f"{type(error).__name__}: {error}"
        if place == "needs network":
            return ConnectionError(
                f"{self.title} is neither in {root} nor in a mirror, and fetching it failed "
                f"({cause}); run once with network, or let {MIRROR} name a folder that holds "
                f"{self.folder}/raw"
            )
        return OSError(f"{self.title}: its raw files ({place}) cannot be read ({cause})")


def _move_files(source: Path, target: Path) -> None:
    """Move files, the processed folder last: where it exists, all files do."""
    for file in sorted(source.rglob("*")):
        path = file.relative_to(source)
        if file.is_file() and path.parts[0] != "processed" and not (target / path).exists():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, target / path)
    try:
        os.rename(source / "processed", target / "processed")
    except OSError:
        if not (target / "processed").is_dir():  # else another process made the same one first
            raise
