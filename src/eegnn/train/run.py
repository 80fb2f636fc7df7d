"""A run on disk: its settings, its metrics, its best weights, and the state to resume from."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from eegnn import _json
from eegnn.compute import CPU, Compute
from eegnn.distributed import launched_by_torchrun
from eegnn.io import load, load_tensors, write_atomically
from eegnn.nn.model import GraphModel
from eegnn.train.config import Config, make_config
from eegnn.train.models import all_options, check_options
from eegnn.train.schemas import About, Epoch, State, Summary
from eegnn.typing import Task

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

#: The state before the first epoch.
_NOTHING = {"progress": {"epoch": 0}, "metrics": hashlib.sha256().hexdigest()}


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
        write_atomically(self.path / "config.json", _json.to_file(content))

    def about(self) -> dict[str, Any]:
        """Read ``config.json``, all of it."""
        path = self.path / "config.json"
        if not path.is_file():
            raise FileNotFoundError(f"{self.path} holds no run: config.json is missing")
        return _json.read(path, About)

    def config(self) -> Config:
        """Read from ``config.json`` what decides the run."""
        about = self.about()
        try:
            config = make_config(about["config"])
            check_options(config)
        except ValueError as error:
            raise ValueError(f"{self.path / 'config.json'} is damaged: {error}") from error
        return config

    def labels(self) -> tuple[Task, float]:
        """Read from ``config.json`` the task, and the scale of predictions."""
        labels = self.about()["labels"]
        return labels["task"], labels["scale"]

    def model(self, device: torch.device | str = "cpu") -> GraphModel:
        """Load the weights of the best epoch."""
        return load(self.model_path, map_location=device)

    def write_state(self, state: dict[str, Any]) -> None:
        """Write ``state.pt``, from which training is resumed."""
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
            wrapped = load_tensors(path, path.name)
            content = wrapped["state"].numpy().tobytes()
            if hashlib.sha256(content).hexdigest() != wrapped["sha256"]:
                raise ValueError("its checksum is wrong")
            return _json.validate(State, load_tensors(io.BytesIO(content), path.name))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise damaged_state(path, error) from error

    def remove_temporary_files(self) -> None:
        """Remove the temporary files of writes that were killed."""
        for file in self.path.glob(".*.????????????????"):
            file.unlink(missing_ok=True)

    def append_metrics(self, line: dict[str, Any]) -> bytes:
        """Add a line to ``metrics.jsonl`` and return it as written."""
        written = (_json.to_json(line) + "\n").encode()
        with (self.path / "metrics.jsonl").open("ab") as file:
            file.write(written)
        return written

    def truncate_metrics(self, state: dict[str, Any] | None) -> bytes:
        """Remove the lines of epochs that the state does not count; return those that remain."""
        path, remains = self._read_metrics(state or _NOTHING)
        write_atomically(path, remains)
        return remains

    def metrics(self) -> list[dict[str, Any]]:
        """Read ``metrics.jsonl``: the epochs that ``state.pt`` counts, or all where it is gone."""
        path, content = self._read_metrics(self.state())
        return _json.read_lines(path, Epoch, content)

    def _read_metrics(self, state: dict[str, Any] | None) -> tuple[Path, bytes]:
        path = self.path / "metrics.jsonl"
        content = path.read_bytes() if path.exists() else b""
        if state is None:
            return path, content
        epochs = state["progress"]["epoch"]
        lines = content.splitlines(keepends=True)[:epochs]
        content = b"".join(lines)
        if len(lines) < epochs or not all(line.endswith(b"\n") for line in lines):
            raise ValueError(f"{path} is damaged: {epochs} epochs were finished, it holds fewer")
        if hashlib.sha256(content).hexdigest() != state["metrics"]:
            raise ValueError(f"{path} is damaged: it was changed")
        return path, content

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write ``summary.json``, which makes the run a finished one."""
        write_atomically(self.path / "summary.json", _json.to_file(summary))

    def summary(self) -> dict[str, Any] | None:
        """Read ``summary.json``; ``None`` for a run that is not finished."""
        path = self.path / "summary.json"
        return _json.read(path, Summary) if path.exists() else None

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


def damaged_state(path: Path, error: Exception) -> ValueError:
    """Return the error for a ``state.pt`` that is no state of this run."""
    return ValueError(
        f"{path} is damaged: {error}; the run cannot be resumed, without the file it begins again"
    )
