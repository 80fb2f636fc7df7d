"""How all benchmarks measure: interleaved passes in one process, and their median."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

#: Seconds after which a pass counts as slow; there are a tenth of the passes then.
SLOW = 2.0
Key = TypeVar("Key", bound=Hashable)


def medians(ways: Mapping[Key, Callable[[], Any]], passes: int) -> dict[Key, float]:
    """Return the median of the seconds that each way takes.

    Every way runs once to warm up. Then all ways take turns, so that whatever else the machine
    does meets all of them alike.

    Args:
        ways: name → what to call.
        passes: timed calls of each; a tenth of them (at least one) of a slow one.
    """
    slow = {name for name, call in ways.items() if seconds(call) > SLOW}
    found: dict[Key, list[float]] = {name: [] for name in ways}
    for number in range(passes):
        for name, call in ways.items():
            if name not in slow or number % 10 == 0:
                found[name].append(seconds(call))
    return {name: statistics.median(values) for name, values in found.items()}


def seconds(call: Callable[[], Any]) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Let PyTorch use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
