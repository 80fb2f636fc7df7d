"""Features in a file of their own, mapped into memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from eegnn.data.files import read_graphs, read_problem
from eegnn.data.npz import write_npz
from eegnn.data.powerlaw import powerlaw


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph without features, which are beside it."""
    data = powerlaw(1000)
    path = tmp_path / "graph.npz"
    np.savez(path, edge_index=data.edge_index.numpy(), y=data.y.numpy())
    np.save(tmp_path / "graph.x.npy", data.x.numpy())
    return path


def is_mapped(x: torch.Tensor, file: Path) -> bool:
    """Whether the memory of a tensor is that of a file, by the kernel's list."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = (int(end, 16) for end in line.split()[0].split("-"))
        if low <= x.data_ptr() < high:
            return line.endswith(str(file))
    return False


def test_the_problem_is_the_same_and_the_features_stay_in_the_file(graph: Path) -> None:
    mapped = read_problem(graph)
    whole = graph.with_name("whole.npz")
    write_npz(whole, powerlaw(1000))
    read = read_problem(whole)
    assert torch.equal(mapped.graphs[0].x, read.graphs[0].x)
    assert torch.equal(mapped.graphs[0].y, read.graphs[0].y)
    assert mapped.in_channels == read.in_channels == 16
    assert is_mapped(mapped.graphs[0].x, graph.with_suffix(".x.npy"))
    assert not is_mapped(read.graphs[0].x, whole)
    assert is_mapped(read_graphs(graph)[0].x, graph.with_suffix(".x.npy"))


def test_what_is_written_to_features_does_not_reach_the_file(graph: Path) -> None:
    before = graph.with_suffix(".x.npy").read_bytes()
    read_problem(graph).graphs[0].x.zero_()
    assert graph.with_suffix(".x.npy").read_bytes() == before


def test_features_in_both_files_are_refused(graph: Path) -> None:
    write_npz(graph, powerlaw(1000))
    with pytest.raises(ValueError, match=r"x is in this file and in .*graph\.x\.npy"):
        read_problem(graph)


def test_mapped_features_are_checked(graph: Path) -> None:
    file = graph.with_suffix(".x.npy")
    x = np.load(file)
    np.save(file, x.astype(np.float64))
    with pytest.raises(TypeError, match="must be float32, got float64"):
        read_problem(graph)
    x[777, 3] = np.inf
    np.save(file, x)
    with pytest.raises(ValueError, match="first in row 777"):
        read_problem(graph)
    np.save(file, x[:10])
    with pytest.raises(ValueError, match="edge_index must lie in"):
        read_problem(graph)


def test_a_damaged_file_gets_one_sentence(graph: Path) -> None:
    file = graph.with_suffix(".x.npy")
    for content in (b"", b"no array", file.read_bytes()[:-100]):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"graph\.x\.npy is damaged"):
            read_problem(graph)
    np.save(file, np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"graph\.x\.npy is damaged"):
        read_problem(graph)
