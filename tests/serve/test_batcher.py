from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from eegnn.serve.batcher import Batcher, BusyError, Rows


class Model:
    """Answers with the double of each node, and can be held in the middle of a pass."""

    def __init__(self) -> None:
        self.passes: list[list[int]] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, nodes: Sequence[int]) -> Rows:
        self.passes.append(list(nodes))
        self.go_on.wait(10)
        if 13 in nodes:
            raise RuntimeError("13 cannot be computed")
        return [{"double": 2 * node} for node in nodes]


def doubles(nodes: Sequence[int]) -> Rows:
    return [{"double": 2 * node} for node in nodes]


async def started(model: Model, passes: int) -> None:
    while len(model.passes) < passes:
        await asyncio.sleep(0.001)


async def with_worker(batcher: Batcher, test: object) -> None:
    worker = asyncio.create_task(batcher.run())
    try:
        await test  # type: ignore[misc]
    finally:
        worker.cancel()


def test_requests_that_wait_together_are_one_pass_and_each_gets_its_own() -> None:
    model = Model()
    batcher = Batcher(model)

    async def test() -> None:
        model.go_on.clear()
        first = asyncio.create_task(batcher.ask([1]))
        await started(model, 1)
        others = [asyncio.create_task(batcher.ask(nodes)) for nodes in ([5, 3, 5], [3, 8], [])]
        await asyncio.sleep(0.01)
        model.go_on.set()
        assert await first == doubles([1])
        assert await asyncio.gather(*others) == [doubles([5, 3, 5]), doubles([3, 8]), []]
        assert model.passes == [[1], [5, 3, 8]]

    asyncio.run(with_worker(batcher, test()))


def test_a_batch_is_closed_once_it_is_large_enough() -> None:
    model = Model()
    batcher = Batcher(model, max_nodes=3)

    async def test() -> None:
        model.go_on.clear()
        first = asyncio.create_task(batcher.ask([0]))
        await started(model, 1)
        others = [asyncio.create_task(batcher.ask([k, k + 20])) for k in (1, 2, 3)]
        await asyncio.sleep(0.01)
        model.go_on.set()
        await asyncio.gather(first, *others)
        assert model.passes == [[0], [1, 21, 2, 22], [3, 23]]

    asyncio.run(with_worker(batcher, test()))


def test_an_error_reaches_those_who_asked_and_the_next_are_answered() -> None:
    model = Model()
    batcher = Batcher(model)

    async def test() -> None:
        with pytest.raises(RuntimeError, match="13"):
            await batcher.ask([13])
        assert await batcher.ask([4]) == doubles([4])

    asyncio.run(with_worker(batcher, test()))


def test_what_goes_alone_is_in_no_batch_and_keeps_its_turn() -> None:
    model = Model()
    batcher = Batcher(model)
    order: list[str] = []

    def alone() -> Rows:
        order.append(f"alone after {len(model.passes)} passes")
        return [{"alone": True}]

    async def test() -> None:
        model.go_on.clear()
        first = asyncio.create_task(batcher.ask([0]))
        await started(model, 1)
        second = asyncio.create_task(batcher.ask([1]))
        third = asyncio.create_task(batcher.ask_alone(alone))
        last = asyncio.create_task(batcher.ask([2]))
        await asyncio.sleep(0.01)
        model.go_on.set()
        assert await third == [{"alone": True}]
        answers = await asyncio.gather(first, second, last)
        assert list(answers) == [doubles([k]) for k in (0, 1, 2)]
        assert order == ["alone after 2 passes"]
        assert model.passes == [[0], [1], [2]]

    asyncio.run(with_worker(batcher, test()))


def test_who_has_given_up_costs_nothing() -> None:
    model = Model()
    batcher = Batcher(model)

    async def test() -> None:
        model.go_on.clear()
        first = asyncio.create_task(batcher.ask([0]))
        await started(model, 1)
        gone = asyncio.create_task(batcher.ask([1]))
        stays = asyncio.create_task(batcher.ask([2]))
        await asyncio.sleep(0.01)
        gone.cancel()
        first.cancel()  # in the middle of its pass
        await asyncio.sleep(0)
        model.go_on.set()
        assert await stays == doubles([2])
        assert model.passes == [[0], [2]]

    asyncio.run(with_worker(batcher, test()))


def test_no_more_than_so_many_wait() -> None:
    model = Model()
    batcher = Batcher(model, max_waiting=2)

    async def test() -> None:
        model.go_on.clear()
        tasks = [asyncio.create_task(batcher.ask([0]))]
        await started(model, 1)
        tasks += [asyncio.create_task(batcher.ask([k])) for k in (1, 2)]
        await asyncio.sleep(0.01)
        with pytest.raises(BusyError):
            await batcher.ask([3])
        model.go_on.set()
        assert len(await asyncio.gather(*tasks)) == 3

    asyncio.run(with_worker(batcher, test()))
