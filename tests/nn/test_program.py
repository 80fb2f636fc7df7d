from __future__ import annotations

from typing import Any

import pytest
import torch

from eegnn import Adjacency
from eegnn.nn.program import Program

#: Two graphs, of two nodes and of one.
ADJ = Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 3, torch.tensor([0, 0, 1]))
H = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
TAU = torch.tensor([0.2, 0.4, 0.9])


def program(**options: Any) -> Program:
    given: dict[str, Any] = {
        "steps": [lambda h, adj: h],
        "confidence": lambda h, adj: h * torch.tensor([3.0, 1.0]),
        "temperature": lambda h, adj: h[:, 0],
        "readout": lambda z: z,
        "num_layers": 4,
        "max_layers": 4,
    }
    return Program(**given | options)


@pytest.mark.parametrize(
    ("level", "pool", "units"),
    [
        ("node", "mean", H.tolist()),
        ("graph", "mean", [[2.0, 3.0], [5.0, 6.0]]),
        ("graph", "add", [[4.0, 6.0], [5.0, 6.0]]),
        ("graph", "max", [[3.0, 4.0], [5.0, 6.0]]),
    ],
)
def test_heads_look_at_units(level: Any, pool: str, units: list[list[float]]) -> None:
    own = program(level=level, pool=pool)
    assert own.units(H, ADJ).tolist() == units
    delta, inv_temperature = own.look(H, own.units(H, ADJ), ADJ)
    assert delta.tolist() == [3 * a - b for a, b in units]
    assert inv_temperature.tolist() == [a for a, _ in units]


@pytest.mark.parametrize(
    ("step_size", "expected"),
    [("adaptive", [0.2, 0.4, 0.9]), ("mean", [0.3, 0.3, 0.9]), (0.5, [0.5, 0.5, 0.5])],
)
def test_step_sizes_are_those_of_the_heads_their_mean_or_a_number(
    step_size: Any, expected: list[float]
) -> None:
    torch.testing.assert_close(
        program(step_size=step_size).step_sizes(TAU, ADJ), torch.tensor(expected)
    )


def test_a_value_of_a_graph_goes_to_all_its_nodes() -> None:
    assert program().on_nodes(TAU, ADJ) is TAU
    of_graphs = program(level="graph").on_nodes(torch.tensor([7.0, 8.0]), ADJ)
    assert of_graphs.tolist() == [7.0, 7.0, 8.0]


@pytest.mark.parametrize(
    ("level", "after_exit", "freezes"),
    [
        ("node", "evolve", False),
        ("node", "freeze", True),
        ("graph", "evolve", True),
        ("graph", "freeze", True),
    ],
)
def test_graphs_that_left_are_never_updated(level: Any, after_exit: Any, freezes: bool) -> None:
    assert program(level=level, after_exit=after_exit).freezes is freezes


def test_one_step_serves_all_layers_and_several_serve_one_each() -> None:
    first, second = (lambda h, adj: h), (lambda h, adj: -h)
    assert [program(steps=[first]).step(layer) for layer in range(3)] == [first] * 3
    assert [program(steps=[first, second]).step(layer) for layer in range(2)] == [first, second]
