"""The exit loop for pairs of nodes, transcribed line by line, as :mod:`tests.transcription`."""

from __future__ import annotations

import numpy as np

from tests.transcription import Array, Edge, Graph, Outcome, Weights, _affine, _mlp, derivative


def run_pairs(
    w: Weights,
    graph: Graph,
    x: Array,
    pairs: list[Edge],
    *,
    num_layers: int,
    pool: str,
    step_size: float = 1.0,
    training: bool = False,
    noise: Array | None = None,
    max_layers: int | None = None,
    exit_threshold: float | None = None,
) -> Outcome:
    """Every pair by itself; ``noise[l][p]`` is g(0) - g(1) of pair p at layer l."""
    limit = min(max_layers or num_layers, num_layers)
    states = [np.array([np.maximum(_affine(row, w.encoder), 0.0) for row in x])]
    changes = []
    for _ in range(limit):
        changes.append(step_size * derivative(states[-1], graph, w.omega, w.weight))
        states.append(states[-1] + changes[-1])
    outputs, layers, times, taus, expected = [], [], [], [], 0.0
    for p, (i, j) in enumerate(pairs):
        a, b = states[0][i], states[0][j]
        left, stays, tau, answer = 0, 1.0, [0.0] * limit, np.zeros(1)
        for layer in range(limit):
            seen = np.concatenate([a + b, a * b, np.abs(a - b)])
            logits = w.confidence(seen[None], graph)[0]
            inverse = np.logaddexp(0.0, _mlp(seen, w.temperature)[0]) + w.nu0
            drawn = logits[0] - logits[1] + (0.0 if noise is None else noise[layer][p])
            expected += stays
            stays /= 1.0 + np.exp(logits[1] - logits[0])
            leaves = drawn < 0
            if exit_threshold is not None:
                leaves = 1.0 - stays >= exit_threshold
            if left:
                continue
            tau[layer] = 1.0 / (1.0 + np.exp(-drawn * inverse))
            a = a + tau[layer] * changes[layer][i]
            b = b + tau[layer] * changes[layer][j]
            if leaves or layer == limit - 1:
                left = layer + 1
                decoded = {"dot": np.array([a @ b]), "hadamard": a * b}
                decoded["concat"] = np.concatenate([a + b, a * b, np.abs(a - b)])
                answer = _mlp(decoded[pool], w.decoder)
        outputs.append(answer)
        layers.append(left)
        taus.append(tau)
        times.append(sum(tau))
    steps_run = limit if training else max(layers)
    return Outcome(
        output=np.array(outputs),
        layer=layers,
        time=np.array(times),
        tau=np.array(taus).T[:steps_run],
        cost=(expected if training else sum(layers)) / len(pairs) / num_layers,
        states=states,
    )
