"""Graphs that are cut into blocks."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.transcription import Graph


def ring(seed: int = 0, n: int = 60) -> Graph:
    return Graph([(i, (i + 1) % n) for i in range(n)], n)


def sparse(seed: int) -> Graph:
    """Disconnected, with isolated nodes."""
    rng = random.Random(seed)
    pairs = {(min(p), max(p)) for p in (rng.sample(range(70), 2) for _ in range(65))}
    return Graph(sorted(pairs), 70)


def dense(seed: int) -> Graph:
    """Where the halo of a block is nearly everything."""
    rng = random.Random(seed)
    return Graph([(u, v) for u in range(30) for v in range(u + 1, 30) if rng.random() < 0.3], 30)


def hub(seed: int) -> Graph:
    """A star with a tail."""
    return Graph([(0, i) for i in range(1, 40)] + [(i, i + 1) for i in range(39, 55)], 56)


GRAPHS: dict[str, Callable[[int], Graph]] = {
    "ring": ring,
    "sparse": sparse,
    "dense": dense,
    "hub": hub,
}
