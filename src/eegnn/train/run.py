"""A run on disk: its settings, its metrics, its best weights, and the state to resume from."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import torch

from eegnn.compute import CPU, Compute
from eegnn.distributed import launched_by_torchrun
from eegnn.io import load, write_atomically
from eegnn.nn.model import GraphModel
from eegnn.train.config import Config, make_config
from eegnn.train.models import all_options, check_options
from eegnn.typing import Task

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]


class RunFolder:
    """The files of a run.

    ``config.json`` everything needed to repeat it; ``metrics.jsonl`` a line an epoch;
    ``model.safetensors`` and ``model.json`` the weights of the best validation epoch; ``state.pt``
    to resume; ``exits.npz`` and ``summary.json`` at the end. The command line adds ``curves.png``
    and, if asked for, what a tracker keeps.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def model_path(self) -> Path:
        """The weights of the best epoch."""
        return self.path / "model.safetensors"

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Make the folder, and let no other process train in it while the context lasts.

        The folder itself is locked: the system releases it when the process ends, however it ends,
        and no file is left behind. Where the system has no such locks, nothing is locked.

        Raises:
            RuntimeError: another process trains in it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if fcntl is None:  # pragma: no cover - Windows
            yield
            return
        folder = os.open(self.path, os.O_RDONLY)
        try:
            with suppress(OSError):  # such as that of a network disk without locks
                try:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise RuntimeError(
                        f"another process is training in {self.path}: wait for it, or choose "
                        f"another --out"
                    ) from None
            yield
        finally:
            os.close(folder)

    def start(self, config: Config, task: Task, scale: float = 1.0, compute: Compute = CPU) -> None:
        """Make the folder and write ``config.json``.

        Args:
            config: everything that decides the run.
            task, scale: what predictions mean, see :class:`~eegnn.data.problem.Problem`.
            compute: on which the run begins.

        Raises:
            FileExistsError: there is a run already.
        """
        if (self.path / "config.json").exists():
            raise FileExistsError(
                f"{self.path} holds a run already: go on with --resume, or choose another --out"
            )
        content = {
            "config": config.model_dump(),
            "options": all_options(config.model, config.options),
            "labels": {"task": task, "scale": scale},
            "versions": {**versions(), **compute.as_dict()},
            "commit": commit(),
        }
        write_atomically(self.path / "config.json", _json(content))

    def config(self) -> Config:
        """Read ``config.json``."""
        path, content = self._config_file()
        try:
            config = make_config(content["config"])
            check_options(config)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        return config

    def labels(self) -> tuple[Task, float]:
        """Read from ``config.json`` the task, and the scale of predictions."""
        path, content = self._config_file()
        try:
            task, scale = content["labels"]["task"], float(content["labels"]["scale"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: labels must be there, {error!r}") from error
        if task not in get_args(Task):
            raise ValueError(f"{path} is damaged: the task is {task!r}")
        return task, scale

    def _config_file(self) -> tuple[Path, dict[str, Any]]:
        path = self.path / "config.json"
        if not path.is_file():
            raise FileNotFoundError(f"{self.path} holds no run: config.json is missing")
        return path, _read_json(path)

    def model(self, device: torch.device | str = "cpu") -> GraphModel:
        """Load the weights of the best epoch."""
        return load(self.model_path, map_location=device)

    def write_state(self, state: dict[str, Any]) -> None:
        """Write ``state.pt``."""
        content = _saved(state)
        # torch.load does not notice a changed bit; the checksum of what is wrapped here does.
        wrapped = {
            "state": torch.frombuffer(bytearray(content), dtype=torch.uint8),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        write_atomically(self.path / "state.pt", _saved(wrapped), durable=False)

    def state(self) -> dict[str, Any] | None:
        """Read ``state.pt``; ``None`` where no epoch was finished.

        Raises:
            ValueError: the file is damaged.
        """
        path = self.path / "state.pt"
        if not path.exists():
            return None
        try:
            wrapped = torch.load(path, weights_only=True)
            content = wrapped["state"].numpy().tobytes()
            if hashlib.sha256(content).hexdigest() != wrapped["sha256"]:
                raise ValueError("its checksum is wrong")
            return dict(torch.load(io.BytesIO(content), weights_only=True))
        except Exception as error:  # a damaged file can make torch.load raise anything
            raise ValueError(
                f"{path} is damaged and cannot be resumed from ({error}); train again with "
                f"another --out"
            ) from error

    def remove_temporary_files(self) -> None:
        """Remove the temporary files of writes that were killed."""
        for file in self.path.glob(".*.????????????????"):
            file.unlink(missing_ok=True)

    def append_metrics(self, line: dict[str, Any]) -> bytes:
        """Add a line to ``metrics.jsonl`` and return it as written."""
        written = (json.dumps(line) + "\n").encode()
        with (self.path / "metrics.jsonl").open("ab") as file:
            file.write(written)
        return written

    def truncate_metrics(self, epochs: int) -> bytes:
        """Remove the lines after the first ``epochs``, and return those that remain."""
        path = self.path / "metrics.jsonl"
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        if len(lines) < epochs or any(not line.endswith(b"\n") for line in lines[:epochs]):
            raise ValueError(f"{path} is damaged: {epochs} epochs were finished, it holds fewer")
        remains = b"".join(lines[:epochs])
        write_atomically(path, remains)
        return remains

    def metrics(self) -> list[dict[str, Any]]:
        """Read ``metrics.jsonl``."""
        path = self.path / "metrics.jsonl"
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            return [json.loads(line) for line in text.splitlines()]
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write ``summary.json``."""
        write_atomically(self.path / "summary.json", _json(summary))

    def summary(self) -> dict[str, Any] | None:
        """Read ``summary.json``; ``None`` for a run that is not finished."""
        path = self.path / "summary.json"
        return _read_json(path) if path.exists() else None

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"


def versions() -> dict[str, str]:
    """Return the versions, and the numbers of threads and processes, that bits depend on."""
    import numpy
    import torch_geometric

    found = {
        "eegnn": version("eegnn"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numpy": numpy.__version__,
        "threads": str(torch.get_num_threads()),
    }
    if launched_by_torchrun():
        found["processes"] = os.environ["WORLD_SIZE"]
    return found


def commit() -> str | None:
    """Return the git commit of a checkout, with ``+`` if files were changed; else ``None``."""
    folder = str(Path(__file__).parents[1])

    def git(*arguments: str) -> str:
        command = ["git", "-C", folder, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        head = git("rev-parse", "--short=12", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changed else "")


def _saved(content: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: it is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: it must hold a JSON object")
    return content


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
