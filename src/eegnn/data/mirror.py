"""Where data lives, and how raw files get there without a network."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

DATA = "EEGNN_DATA"
MIRROR = "EEGNN_MIRROR"


def data_root(root: Path | None = None) -> Path:
    """Return the data folder: ``root``, else ``EEGNN_DATA``, else a user cache folder."""
    if root is not None:
        return Path(root).expanduser()
    if named := os.environ.get(DATA):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "eegnn"


def mirror_root() -> Path | None:
    """Return the folder that ``EEGNN_MIRROR`` names, or ``None`` where it is not set.

    It is only ever read. Its layout is that of PyG's roots: ``WebKB/texas/raw/…``.
    """
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


def from_mirror(*paths: str, root: Path) -> None:
    """Copy files and folders from the mirror, if there is one; see :func:`copy_missing`."""
    mirror = mirror_root()
    if mirror is not None:
        copy_missing(*paths, source=mirror, root=root)


def copy_missing(*paths: str, source: Path, root: Path) -> None:
    """Copy files and folders from one root to another.

    What is there already is kept, what the source has not is passed over. Every file appears
    under its name only when it is complete.

    Args:
        paths: relative to both ``source`` and ``root``.
        source: the folder to read.
        root: the folder to write.
    """
    for path in paths:
        for file in _files(source / path):
            target = root / file.relative_to(source)
            if not target.exists():
                _copy(file, target)


def unpack_from_mirror(archive: str, folder: str, target: Path) -> None:
    """Unpack one folder of a zip file in the mirror.

    Args:
        archive: the zip file, relative to the mirror.
        folder: what it holds.
        target: what that folder is called here; made complete, or not at all.
    """
    mirror = mirror_root()
    if mirror is None or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unpacking-") as place:
        with zipfile.ZipFile(mirror / archive) as packed:
            packed.extractall(place)
        os.rename(Path(place) / folder, target)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.is_file())


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    os.close(handle)
    try:
        shutil.copyfile(file, partial)  # contents only: the mirror's files may be write-protected
        # mkstemp's files are private; a data folder may be shared, so follow the user's mask.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(partial, 0o666 & ~mask)
        os.replace(partial, target)
    except BaseException:
        os.unlink(partial)
        raise
