"""Load on ``eegnn serve`` from this machine: ``python -m tests.serve.load RUN``.

Three phases, each bounded: requests a second and latencies with 1 and 16 clients; malformed
requests, of which none may get a status of 500 or more; and clients that retry while the server is
killed and started again, which must get every answer, the one of the run's whole graph.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from eegnn.serve.predictor import open_predictor

AS_JSON = {"Content-Type": "application/json"}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """A process that serves a run, on a port that stays the same when it is started again."""

    def __init__(self, run: Path) -> None:
        self.run, self.port = run, free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "eegnn", "serve", str(self.run), "--port", str(self.port)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def wait(self) -> None:
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/health", timeout=1).status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.2)
        raise RuntimeError("the server does not answer")

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


async def throughput(url: str, num_nodes: int, clients: int, seconds: float) -> dict[str, float]:
    """Each client asks for one random node after the other."""
    latencies: list[float] = []
    end = time.perf_counter() + seconds

    async def ask(client: httpx.AsyncClient, seed: int) -> None:
        draw = random.Random(seed)
        while time.perf_counter() < end:
            start = time.perf_counter()
            body = {"nodes": [draw.randrange(num_nodes)]}
            reply = await client.post(f"{url}/predict", json=body)
            assert reply.status_code == 200, reply.text
            latencies.append(time.perf_counter() - start)

    async with httpx.AsyncClient(timeout=60) as client:
        await asyncio.gather(*(ask(client, seed) for seed in range(clients)))
    p50, p99 = np.percentile(latencies, [50, 99])
    per_second = round(len(latencies) / seconds, 1)
    return {
        "clients": clients,
        "per_second": per_second,
        "p50": round(p50, 4),
        "p99": round(p99, 4),
    }


def malformed(draw: random.Random) -> bytes:
    """Bytes, cut or changed requests, and values of the wrong kind."""
    good = json.dumps({"nodes": [1, 2], "new_nodes": [{"x": [0.5], "neighbors": [1]}]}).encode()
    wrong: list[Any] = [-1, 10**30, 1e400, None, True, "x", [], {}, [[1]], "9" * 1000]
    kind = draw.randrange(4)
    if kind == 0:
        return draw.randbytes(draw.randrange(200))
    if kind == 1:
        return good[: draw.randrange(len(good))]
    if kind == 2:
        place = draw.randrange(len(good))
        return good[:place] + draw.randbytes(1) + good[place + 1 :]
    name = draw.choice(["nodes", "new_nodes", "x", "neighbors", "other"])
    return json.dumps({name: draw.choice([draw.choice(wrong), [draw.choice(wrong)]])}).encode()


async def send_malformed(url: str, count: int, seed: int) -> dict[int, int]:
    draw, found = random.Random(seed), dict[int, int]()
    async with httpx.AsyncClient(timeout=60) as client:
        for _ in range(count):
            reply = await client.post(f"{url}/predict", content=malformed(draw), headers=AS_JSON)
            found[reply.status_code] = found.get(reply.status_code, 0) + 1
            if reply.status_code != 200:
                assert set(reply.json()) == {"error"}, reply.text
    return dict(sorted(found.items()))


async def ask_under_kills(server: Server, num_nodes: int, kills: int) -> int:
    """Return how many answers clients got while the server was killed; all must be right."""
    expected = open_predictor(server.run)
    stop, answers = asyncio.Event(), list[tuple[int, Any]]()

    async def ask(client: httpx.AsyncClient, seed: int) -> None:
        draw = random.Random(seed)
        while not stop.is_set():
            node, reply = draw.randrange(num_nodes), None
            while reply is None:
                try:
                    reply = await client.post(f"{server.url}/predict", json={"nodes": [node]})
                except httpx.HTTPError:
                    await asyncio.sleep(0.1)
            answers.append((node, reply.json()["nodes"][0]))

    async with httpx.AsyncClient(timeout=60) as client:
        clients = [asyncio.create_task(ask(client, seed)) for seed in range(4)]
        for _ in range(kills):
            await asyncio.sleep(1)
            server.stop(signal.SIGKILL)
            server.start()
            await asyncio.to_thread(server.wait)
        await asyncio.sleep(1)
        stop.set()
        await asyncio.gather(*clients)
    for (node, row), right in zip(answers, expected.predict([n for n, _ in answers]), strict=True):
        assert row["unit"] == node
        assert row["exit_layer"] == right["exit_layer"]
    return len(answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--malformed", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    server = Server(given.run)
    server.start()
    try:
        server.wait()
        num_nodes = httpx.get(f"{server.url}/health").json()["num_nodes"]
        for clients in (1, 16):
            print(asyncio.run(throughput(server.url, num_nodes, clients, given.seconds)))
        print("malformed:", asyncio.run(send_malformed(server.url, given.malformed, given.seed)))
        count = asyncio.run(ask_under_kills(server, num_nodes, given.kills))
        print(f"{given.kills} kills: {count} answers, none lost or wrong")
    finally:
        print("exit code after SIGTERM:", server.stop())


if __name__ == "__main__":
    main()
