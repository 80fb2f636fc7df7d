from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from eegnn.data import echo as module
from eegnn.data.echo import EchoTask, echo
from eegnn.data.problem import Problem

SMALL = 1 / 70  # one graph for each topology and diameter


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def problems(folder: Path) -> dict[str, Problem]:
    tasks: tuple[EchoTask, ...] = ("sssp", "ecc", "diam")
    return {task: echo(task, SMALL, seed=7, root=folder) for task in tasks}


def hops(graph: Data, start: int) -> list[int]:
    """Breadth-first search."""
    neighbours: list[list[int]] = [[] for _ in range(int(graph.num_nodes or 0))]
    for a, b in graph.edge_index.t().tolist():
        neighbours[a].append(b)
    found, queue = {start: 0}, deque([start])
    while queue:
        node = queue.popleft()
        for other in neighbours[node]:
            if other not in found:
                found[other] = found[node] + 1
                queue.append(other)
    return [found[node] for node in range(len(neighbours))]


def same(a: Problem, b: Problem) -> bool:
    pairs = zip(a.graphs, b.graphs, strict=True)
    return all(torch.equal(p[key], q[key]) for p, q in pairs for key in ("x", "edge_index", "y"))


def test_targets_are_exact(problems: dict[str, Problem]) -> None:
    for index in range(5, 144, 29):
        sssp, ecc, diam = (problems[task].graphs[index] for task in ("sssp", "ecc", "diam"))
        source = int(sssp.x[:, 1].argmax())
        assert (sssp.y * 40).round().view(-1).tolist() == hops(sssp, source)
        farthest = [max(hops(ecc, node)) for node in range(ecc.num_nodes)]
        assert (ecc.y * 40).round().view(-1).tolist() == farthest
        assert float(diam.y) * 40 == pytest.approx(max(farthest))


def test_diameters_are_spread_evenly_over_topologies(problems: dict[str, Problem]) -> None:
    diameters = [round(float(graph.y) * 40) for graph in problems["diam"].graphs]
    assert diameters == list(range(17, 41)) * 6


def test_shapes_and_features(problems: dict[str, Problem]) -> None:
    for task, problem in problems.items():
        assert (problem.scale, problem.metric, problem.inductive) == (40, "mae", True)
        assert problem.level == ("graph" if task == "diam" else "node")
        for graph in problem.graphs:
            assert graph.x.shape == (graph.num_nodes, 2)
            assert graph.y.shape == ((1 if task == "diam" else graph.num_nodes), 1)
            assert 0 < float(graph.y.max()) <= 1
            assert sorted(graph.x[:, 1].tolist())[-2:] == [0, 1]  # one source
            assert bool(((graph.x[:, 0] >= 0) & (graph.x[:, 0] < 1)).all())
            assert graph.is_undirected()


def test_parts_cover_all_graphs_and_have_their_share(problems: dict[str, Problem]) -> None:
    problem = problems["sssp"]
    parts = [problem.train, problem.val, problem.test]
    assert torch.cat(parts).sort().values.tolist() == list(range(144))
    assert [len(part) for part in parts[1:]] == pytest.approx([14.4, 14.4], abs=1)


def test_a_full_pair_of_topology_and_diameter_is_divided_56_7_7() -> None:
    train, val, test = module._split(10_080, seed=3)
    for part, share in ((train, 56), (val, 7), (test, 7)):
        assert (part // 70).bincount(minlength=144).tolist() == [share] * 144


def test_seed_decides_and_small_sizes_are_parts_of_large_ones(
    problems: dict[str, Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DIAMETERS", range(17, 20))
    one, again, other = (echo("ecc", SMALL, seed=seed) for seed in (7, 7, 8))
    assert same(one, again)
    assert not same(one, other)
    two = echo("ecc", 2 * SMALL, seed=7)
    assert all(torch.equal(one.graphs[i].x, two.graphs[2 * i].x) for i in range(18))
    assert torch.equal(one.graphs[2].x, problems["ecc"].graphs[2].x)


def test_tasks_share_graphs_and_one_cached_file(problems: dict[str, Problem], folder: Path) -> None:
    assert len(list(folder.rglob("*.npz"))) == 1
    assert torch.equal(problems["sssp"].graphs[9].x, problems["diam"].graphs[9].x)


def test_a_cached_file_gives_the_same_bits_without_generating(
    problems: dict[str, Problem], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_generate", lambda *_: pytest.fail("generated again"))
    assert same(echo("sssp", SMALL, seed=7, root=folder), problems["sssp"])


def test_a_damaged_file_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DIAMETERS", range(17, 20))
    truth = echo("sssp", SMALL, root=tmp_path)
    (file,) = tmp_path.rglob("*.npz")
    file.write_bytes(file.read_bytes()[:-100])
    assert same(echo("sssp", SMALL, root=tmp_path), truth)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "mst"}, "task must be one of 'sssp', 'ecc', 'diam', got 'mst'"),
        ({"task": "ecc", "size": 2.0}, r"size must be in \[0, 1\], got 2.0"),
        ({"task": "ecc", "seed": -1}, "seed must be at least 0, got -1"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        echo(**arguments)  # type: ignore[arg-type]
