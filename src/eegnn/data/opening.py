"""From an entry of the registry to a Problem, and nothing half-made on disk."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

from torch_geometric.data import Data

from eegnn.data.entry import DataSet
from eegnn.data.mirror import (
    MIRROR,
    copy_missing,
    data_root,
    from_mirror,
    in_mirror,
    unpack_from_mirror,
)
from eegnn.data.problem import Problem


def open_entry(entry: DataSet, split: int, root: Path | None) -> Problem:
    """Open a data set; see :func:`eegnn.data.registry.open_dataset`."""
    place = data_root(root)
    _prepare(entry, place)
    if entry.split_file:
        from_mirror(entry.split_file, root=place)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # ogb prints; our output may be JSON
            datasets = entry.fetch(place)
    except ImportError:
        raise
    except Exception as error:
        raise OSError(
            f"{entry.title}: {place / entry.home / 'processed'} cannot be read "
            f"({type(error).__name__}: {error}); remove that folder to have it made anew"
        ) from error
    train, val, test, note = entry.split(datasets, split, place)
    return Problem(
        name=entry.name,
        graphs=[_plain(data, entry) for dataset in datasets for data in dataset],
        level=entry.level,
        task=entry.task,
        metric=entry.metric,
        out_channels=entry.outputs,
        train=train,
        val=val,
        test=test,
        inductive=entry.inductive,
        notes={"split": note, "features": entry.features, "source": entry.url},
    )


def _plain(data: Data, entry: DataSet) -> Data:
    """Keep what a model needs, with labels of the shape that the task asks for."""
    if entry.shape is not None:
        data = entry.shape(data)
    y = data.y.flatten() if entry.task == "classification" else data.y.float()
    return Data(x=data.x, edge_index=data.edge_index, edge_attr=data.edge_attr, y=y)


def _prepare(entry: DataSet, root: Path) -> None:
    """Have PyG download and process in a folder apart, and move the result here when it is whole.

    So a lost connection, a kill or a second process at the same time leave either nothing or
    all of it.
    """
    if (root / entry.home / "processed").is_dir():
        return
    place = entry.place(root)
    root.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=root, prefix=".opening-") as apart:
            stage = Path(apart)
            _gather(entry, root, stage)
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    entry.fetch(stage)
            except ImportError:
                raise
            except Exception as error:
                raise _explained(entry, root, place, error) from error
            _publish(stage / entry.home, root / entry.home)
    except BaseException:
        with contextlib.suppress(OSError):
            root.rmdir()  # only if it is empty, that is, if we made it
        raise


def _gather(entry: DataSet, root: Path, stage: Path) -> None:
    """Bring together the raw files there are: those on disk, then those of the mirror."""
    needs = [f"{entry.home}/{path}" for path in entry.needs]
    copy_missing(*needs, source=root, root=stage)
    from_mirror(*needs, root=stage)
    if entry.archive is not None and in_mirror(entry.archive.path):
        unpack_from_mirror(*entry.archive, target=stage / entry.home / "raw")


def _publish(made: Path, home: Path) -> None:
    """Move files to their place, the processed folder last: where it is, everything is."""
    for file in sorted(made.rglob("*")):
        path = file.relative_to(made)
        if file.is_file() and path.parts[0] != "processed" and not (home / path).exists():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, home / path)
    try:
        os.rename(made / "processed", home / "processed")
    except OSError:
        if not (home / "processed").is_dir():  # else another process was first, with the same
            raise


def _explained(entry: DataSet, root: Path, place: str, error: Exception) -> OSError:
    cause = f"{type(error).__name__}: {error}"
    if place == "needs network":
        return ConnectionError(
            f"{entry.title} is neither in {root} nor in a mirror, and fetching it failed "
            f"({cause}); run once with network, or let {MIRROR} name a folder that holds "
            f"{entry.home}/raw"
        )
    return OSError(f"{entry.title}: its raw files ({place}) cannot be read ({cause})")
