"""How all benchmarks measure time: interleaved passes in one process, and their median."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from eegnn.compute import CPU, Compute

#: Seconds after which a call counts as slow.
SLOW = 2.0
Key = TypeVar("Key", bound=Hashable)


def medians(
    calls: Mapping[Key, Callable[[], Any]], passes: int, compute: Compute = CPU
) -> dict[Key, float]:
    """Return the median of the seconds that each call takes.

    Every call runs once to warm up. Then all take turns, so that other load on the machine affects
    all of them alike. A call that is slow is timed in a tenth of the passes, at least once.
    """
    slow = {name for name, call in calls.items() if seconds(call, compute) > SLOW}
    found: dict[Key, list[float]] = {name: [] for name in calls}
    for number in range(passes):
        for name, call in calls.items():
            if name not in slow or number % 10 == 0:
                found[name].append(seconds(call, compute))
    return {name: statistics.median(values) for name, values in found.items()}


def seconds(call: Callable[[], Any], compute: Compute = CPU) -> float:
    """Time one call, to the end of what it has a device do, in the precision of ``compute``."""
    start = time.perf_counter()
    with compute.autocast():
        call()
    compute.synchronize()
    return time.perf_counter() - start


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Let PyTorch use this number of threads inside the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
