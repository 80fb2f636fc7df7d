"""What is kept on disk."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from eegnn import Adjacency
from tests.nn.kernels.examples import array, structure

numba: Any = pytest.importorskip("numba")
kernels: Any = pytest.importorskip("eegnn.nn.kernels")
machine: Any = pytest.importorskip("eegnn.nn.kernels.machine")


@pytest.mark.parametrize("name", ["advance", "walk", "before", "go_back", "go_back_again"])
def test_both_ways_are_kept_apart_on_disk(name: str) -> None:
    kernel = getattr(kernels, name)
    one, other = (way.py_func.__qualname__ for way in (kernel.serial, kernel.parallel))
    assert one != other  # that is what Numba files them under


def test_it_is_kept_on_disk(graph: Adjacency, threads: int) -> None:
    kernel, h = kernels.advance, array(60, 16)
    weight, tau = kernels.panels_of(torch.eye(16)), array(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error", numba.NumbaWarning)
        given = structure(graph, np.empty((0, 16), np.float32))
        kernel(1, h, np.empty_like(h), given, weight, weight, tau)
    way = kernel.serial if threads == 1 else kernel.parallel
    name = way.py_func.__qualname__
    assert list(Path(way.stats.cache_path).glob(f"*.{name}-*.nbi"))


def test_a_change_in_any_file_gives_other_names(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    shutil.copytree(Path(machine.__file__).parent, folder, ignore=shutil.ignore_patterns("__py*"))

    def digest() -> str:
        code = "import runpy, sys; print(runpy.run_path(sys.argv[1])['_DIGEST'])"
        given = [sys.executable, "-c", code, str(folder / "machine.py")]
        return subprocess.run(given, capture_output=True, text=True, check=True).stdout.strip()

    before = digest()
    assert before == machine._DIGEST
    (folder / "maths.py").write_text((folder / "maths.py").read_text() + "# changed\n")
    assert digest() != before
