"""Requests that wait at the same time are answered by one pass of the model."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

#: An answer: a row for each requested node.
Rows = list[dict[str, Any]]


class BusyError(Exception):
    """Too many requests wait already."""


class _Request(NamedTuple):
    nodes: Sequence[int]
    alone: Callable[[], Rows] | None  #: what to call instead of a pass for nodes
    answer: asyncio.Future[Rows]


class Batcher:
    """Collects requests while the model is busy, and then asks it once for all of them.

    The answer for a node does not depend on which others are asked for, so a request gets what it
    would get alone. No request waits for a batch to fill: a request that finds the model idle is
    answered at once.

    Args:
        predict: from different nodes to their rows; called in a thread, once at a time.
        max_nodes: so many nodes make a batch; a request is never divided.
        max_waiting: how many requests may wait.
    """

    def __init__(
        self,
        predict: Callable[[Sequence[int]], Rows],
        max_nodes: int = 1024,
        max_waiting: int = 1024,
    ) -> None:
        self.predict, self.max_nodes, self.max_waiting = predict, max_nodes, max_waiting
        self._waiting: deque[_Request] = deque()
        self._arrived = asyncio.Event()

    async def ask(self, nodes: Sequence[int]) -> Rows:
        """Return the rows of nodes, in their order.

        Raises:
            BusyError: too many requests wait.
        """
        return await self._wait(nodes, None)

    async def ask_alone(self, function: Callable[[], Rows]) -> Rows:
        """Call a function when its turn comes, in the thread of the model.

        Raises:
            BusyError: too many requests wait.
        """
        return await self._wait((), function)

    async def _wait(self, nodes: Sequence[int], alone: Callable[[], Rows] | None) -> Rows:
        if len(self._waiting) >= self.max_waiting:
            raise BusyError
        answer: asyncio.Future[Rows] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Request(nodes, alone, answer))
        self._arrived.set()
        return await answer

    async def run(self) -> None:
        """Answer requests until this task is cancelled."""
        while True:
            await self._arrived.wait()
            while batch := self._next_batch():
                await self._answer(batch)
            self._arrived.clear()

    def _next_batch(self) -> list[_Request]:
        """Take the first request, and those behind it that can be answered with it."""
        batch: list[_Request] = []
        count = 0
        while self._waiting and count < self.max_nodes:
            if batch and self._waiting[0].alone is not None:
                break
            request = self._waiting.popleft()
            if request.answer.done():  # its client has gone
                continue
            batch.append(request)
            count += len(request.nodes)
            if request.alone is not None:
                break
        return batch

    async def _answer(self, batch: Sequence[_Request]) -> None:
        nodes = list(dict.fromkeys(node for request in batch for node in request.nodes))
        alone = batch[0].alone
        try:
            if alone is not None:
                rows = [await asyncio.to_thread(alone)]
            else:
                found = await asyncio.to_thread(self.predict, nodes)
                at = dict(zip(nodes, found, strict=True))
                rows = [[at[node] for node in request.nodes] for request in batch]
        except Exception as error:
            for request in batch:
                with suppress(asyncio.InvalidStateError):  # its client has gone meanwhile
                    request.answer.set_exception(error)
            return
        for request, answer in zip(batch, rows, strict=True):
            with suppress(asyncio.InvalidStateError):
                request.answer.set_result(answer)
