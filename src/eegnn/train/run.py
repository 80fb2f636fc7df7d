"""A run on disk: what it was told, what it did, and how to go on."""

from __future__ import annotations

import io
import json
import pickle
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from eegnn import _check
from eegnn.io import load, write_atomically
from eegnn.nn.model import GraphModel
from eegnn.train.config import Config, make_config


class RunFolder:
    """The files of a run.

    ``config.json`` everything needed to repeat it; ``metrics.jsonl`` a line an epoch;
    ``model.safetensors`` and ``model.json`` the weights of the best validation epoch; ``state.pt``
    to resume; ``exits.npz`` and ``summary.json`` at the end.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def model_path(self) -> Path:
        """The weights of the best epoch."""
        return self.path / "model.safetensors"

    def start(self, config: Config) -> None:
        """Make the folder and write ``config.json``.

        Raises:
            FileExistsError: there is a run already.
        """
        if (self.path / "config.json").exists():
            raise FileExistsError(
                f"{self.path} holds a run already: go on with --resume, or choose another --out"
            )
        about = {"config": config.model_dump(), "versions": versions(), "commit": commit()}
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path / "config.json", _json(about))

    def config(self) -> Config:
        """Read ``config.json``."""
        path = self.path / "config.json"
        if not path.is_file():
            raise FileNotFoundError(f"{self.path} holds no run: config.json is missing")
        try:
            return make_config(json.loads(path.read_bytes())["config"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error

    def model(self) -> GraphModel:
        """Load the weights of the best epoch."""
        return load(self.model_path)

    def write_state(self, state: dict[str, Any]) -> None:
        """Write ``state.pt``."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_atomically(self.path / "state.pt", buffer.getvalue(), durable=False)

    def state(self) -> dict[str, Any] | None:
        """Read ``state.pt``; ``None`` where no epoch was finished.

        Raises:
            ValueError: the file is damaged.
        """
        path = self.path / "state.pt"
        if not path.exists():
            return None
        try:
            state = torch.load(path, weights_only=True)
        except (RuntimeError, ValueError, EOFError, KeyError, pickle.UnpicklingError) as error:
            raise ValueError(
                f"{path} is damaged and cannot be resumed from; train again with another --out"
            ) from error
        _check.choice("state", type(state), (dict,))
        return state

    def append_metrics(self, line: dict[str, Any]) -> None:
        """Add a line to ``metrics.jsonl``."""
        with (self.path / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def truncate_metrics(self, epochs: int) -> None:
        """Forget epochs that were written but not finished."""
        path = self.path / "metrics.jsonl"
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        if len(lines) < epochs or any(not line.endswith(b"\n") for line in lines[:epochs]):
            raise ValueError(f"{path} is damaged: {epochs} epochs were finished, it holds fewer")
        write_atomically(path, b"".join(lines[:epochs]))

    def metrics(self) -> list[dict[str, Any]]:
        """Read ``metrics.jsonl``."""
        path = self.path / "metrics.jsonl"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write ``summary.json``."""
        write_atomically(self.path / "summary.json", _json(summary))

    def summary(self) -> dict[str, Any] | None:
        """Read ``summary.json``; ``None`` for a run that is not finished."""
        path = self.path / "summary.json"
        return json.loads(path.read_bytes()) if path.exists() else None

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"


def versions() -> dict[str, str]:
    """Return the versions, and the number of threads, that the bits of a result depend on."""
    import numpy
    import torch_geometric

    return {
        "eegnn": version("eegnn"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numpy": numpy.__version__,
        "threads": str(torch.get_num_threads()),
    }


def commit() -> str | None:
    """Return the git commit of a checkout, with ``+`` if files were changed; else ``None``."""
    git = ["git", "-C", str(Path(__file__).parents[1])]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no", "--", "."],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changed else "")


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
