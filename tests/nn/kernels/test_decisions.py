"""Decisions, against the same in NumPy in double precision, and a search from node to node."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
import torch

from eegnn import Adjacency
from tests.nn.kernels.examples import array, books, structure

kernels: Any = pytest.importorskip("eegnn.nn.kernels")


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


SHARES: dict[str, Any] = {
    "VALUES": lambda x: x,
    "LABELS": lambda x: np.concatenate([sigmoid(x), sigmoid(-x)], axis=1),
    "CLASSES": lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
}


@pytest.mark.parametrize("rule", ["THRESHOLD", "ODDS", "STATED", "EVERYONE"])
@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(("freeze", "whole"), [(False, True), (False, False), (True, True)])
def test_decisions(
    freeze: bool, whole: bool, sampled: bool, kind: str, rule: str, graph: Adjacency, threads: int
) -> None:
    leak, nu0, bias, limit, layer = 0.2, 0.4, 0.3, -1.5, 3
    log_stay, exit_bias = -array(60, positive=True), array(2)
    known = books(array(60, 5), 4 if kind == "LABELS" else 2, log_stay)
    known.answers[:] = array(*known.answers.shape)
    known.left[[4, 9]] = True
    units, stated = np.setdiff1d(np.arange(60), [0, 30]), np.arange(60) % 7
    start = kernels.Books(*(a.copy() for a in known))
    noted = np.full(60, 7, np.float32)
    one, keep = np.float32(-1), np.float32(np.log(1 - leak))
    manner = kernels.Manner(
        np.float32(bias), np.float32(nu0), True, sampled, keep, one, freeze, True
    )
    number = kernels.decide(
        1, units, layer, getattr(kernels, rule), np.float32(limit), stated, manner,
        structure(graph, np.empty((0, 1), np.float32)), exit_bias, getattr(kernels, kind), known,
        noted, whole,
    )  # fmt: skip

    own, others, cold = start.facts[:, :3].T.astype(np.float64)
    mean = graph.propagate(torch.from_numpy(others).unsqueeze(-1), "mean").squeeze(-1).numpy()
    delta = own + mean + bias
    scaled = delta * (np.logaddexp(0, cold) + nu0)
    score = delta if sampled else scaled
    going = start.log_stay + np.log(1 - leak) - np.logaddexp(0, -score)
    leaves = {
        "THRESHOLD": going <= limit,
        "ODDS": score < 0,
        "STATED": stated <= layer,
        "EVERYONE": np.ones(60, np.bool_),
    }[rule]
    asked = np.isin(np.arange(60), units)
    goes = leaves & asked & ~start.left
    stays = ~leaves & asked & ~start.left
    assert number == goes.sum()
    assert rule == "EVERYONE" or 0 < number < units.size - 2
    np.testing.assert_array_equal(known.left, start.left | goes)
    np.testing.assert_array_equal(known.layer, np.where(goes, layer, 99))
    np.testing.assert_allclose(known.log_stay[stays], going[stays], atol=1e-5)
    here = np.exp(start.log_stay)
    weight = np.where(goes, here, np.where(stays, here - np.exp(going), 0))[:, None]
    said = SHARES[kind](start.facts[:, 3:].astype(np.float64) + exit_bias)
    np.testing.assert_allclose(known.answers, start.answers + weight * said, atol=1e-5)
    tau = sigmoid(scaled)
    size = np.where(known.left & freeze, 0, tau)
    noting = asked if whole else stays
    np.testing.assert_allclose(noted, np.where(noting, size, 7), atol=1e-5)
    np.testing.assert_allclose(known.tau, np.where(asked, size, start.tau), atol=1e-5)


@pytest.mark.parametrize("mixes", [False, True])
@pytest.mark.parametrize("kind", ["LABELS", "CLASSES"])
def test_doubt_is_that_of_the_answer(kind: str, mixes: bool, graph: Adjacency) -> None:
    facts, shares = array(60, 5), 4 if kind == "LABELS" else 2
    known = books(facts, shares if mixes else 7, -array(60, positive=True))
    known.answers[:] = 0.1 if mixes else 9.0
    start = kernels.Books(*(a.copy() for a in known))
    zero, limit = np.float32(0), 0.12
    manner = kernels.Manner(zero, zero, False, False, zero, np.float32(-1), False, mixes)
    rule = getattr(kernels, f"UNSURE_{kind}")
    number = kernels.decide(
        1, np.arange(60), 0, rule, np.float32(limit), np.empty(0, np.int64), manner,
        structure(graph, np.empty((0, 1), np.float32)), np.zeros(2, np.float32),
        getattr(kernels, kind), known, np.zeros(60, np.float32), True,
    )  # fmt: skip

    own, _, cold = facts[:, :3].T.astype(np.float64)
    going = np.exp(start.log_stay - np.logaddexp(0, -own * np.logaddexp(0, cold)))
    said = SHARES[kind](facts[:, 3:].astype(np.float64))
    if mixes:
        said = 0.1 + np.exp(start.log_stay)[:, None] * said
    doubt = 2 * (1 - said.max(axis=1))
    if kind == "LABELS":
        doubt = 2 * np.minimum(said[:, :2], said[:, 2:]).max(axis=1)
    leaves = going * doubt <= limit
    assert 0 < number < 60
    np.testing.assert_array_equal(known.left, leaves)
    if not mixes:  # states are kept elsewhere
        np.testing.assert_array_equal(known.answers, start.answers)


def test_a_step_size_that_is_given_replaces_the_own(graph: Adjacency) -> None:
    known, noted = books(array(60, 3), 0), np.zeros(60, np.float32)
    zero = np.float32(0)
    manner = kernels.Manner(zero, zero, False, False, zero, np.float32(0.25), False, False)
    given = (np.arange(60), 0, kernels.THRESHOLD, np.float32(-np.inf), np.empty(0, np.int64))
    kernels.decide(
        1, *given, manner, structure(graph, np.empty((0, 1), np.float32)),
        np.empty(0, np.float32), kernels.VALUES, known, noted, True,
    )  # fmt: skip
    assert (noted == 0.25).all()
    assert (known.tau == 0.25).all()


def test_who_has_left_is_read_as_it_is() -> None:
    rows, left = np.array([0, 2, 3, 5]), np.array([1, 0, 0, 1, 1, 0], np.bool_)
    read, write = array(6, 16), array(6, 16)
    before = write.copy()
    assert kernels.drop(rows, left, read, write) == 2
    assert rows[:2].tolist() == [2, 5]
    np.testing.assert_array_equal(write[[0, 3]], read[[0, 3]])
    np.testing.assert_array_equal(write[[1, 2, 4, 5]], before[[1, 2, 4, 5]])


def distances(adj: Adjacency, start: list[int]) -> list[int]:
    """Breadth-first search."""
    entries = np.split(adj.col.numpy(), adj.rowptr.numpy()[1:-1])
    found = dict.fromkeys(start, 0)
    queue = deque(start)
    while queue:
        node = queue.popleft()
        for other in entries[node].tolist():
            if other not in found:
                found[other] = found[node] + 1
                queue.append(other)
    return [found.get(node, 1000) for node in range(adj.num_nodes)]


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_what_is_within_reach(graph: Adjacency, steps: int) -> None:
    inside = np.zeros(60, np.bool_)
    inside[[7, 30]] = True
    kernels.reach(graph.rowptr.numpy(), graph.col.numpy(), np.arange(60), inside, steps)
    assert inside.tolist() == [d <= steps for d in distances(graph, [7, 30])]
