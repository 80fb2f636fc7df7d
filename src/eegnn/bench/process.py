"""Measurements of memory: the resident size of a process, and new processes to measure it in."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch

T = TypeVar("T")


def resident_bytes(field: Literal["VmRSS", "VmHWM", "RssAnon"]) -> int:
    """Return the memory that this process has (``VmRSS``, without files ``RssAnon``) or had at most
    (``VmHWM``).

    Only Linux reports it; the result is 0 on other systems.
    """
    status = Path("/proc/self/status")
    if not status.is_file():
        return 0
    (line,) = (line for line in status.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def in_new_process(function: Callable[..., T], *args: Any) -> T:
    """Call a function in a new process, with as many threads as PyTorch uses here.

    The largest resident size of a process never falls, so every peak needs its own process.
    """
    with ProcessPoolExecutor(
        max_workers=1,
        mp_context=get_context("spawn"),
        initializer=torch.set_num_threads,
        initargs=(torch.get_num_threads(),),
    ) as pool:
        return pool.submit(function, *args).result()
