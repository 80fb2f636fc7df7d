"""Who leaves, with what answer, and who has to be computed at all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from eegnn.nn.kernels.machine import BLOCK, Array, F, Kernel, U, inlined, kept, part
from eegnn.nn.kernels.maths import BITS, exp2, sigmoid, softplus
from eegnn.nn.kernels.steps import Books, Structure


class Manner(NamedTuple):
    """How heads decide: δ = own + share · Σ others + bias, 1/ν = softplus(cold) + ν₀.

    The log-odds of going on are δ where exits are sampled, else δ/ν; a unit leaves at once with a
    probability whose complement is exp ``log_keep``. ``step_size`` is used instead of τ unless it
    is negative. What a unit has passed counts in its answer if it ``mixes``.
    """

    bias: float
    nu0: float
    reads: bool
    sampled: bool
    log_keep: float
    step_size: float
    freeze: bool
    mixes: bool


#: Who leaves: whose log-probability of going on is at most a limit, who would rather, whose layer
#: it is, everyone; or whose probability of going on is, times the doubt between classes or labels.
THRESHOLD, ODDS, STATED, EVERYONE, UNSURE_CLASSES, UNSURE_LABELS = range(6)
#: What units say: values, labels, classes.
VALUES, LABELS, CLASSES = range(3)


@inlined
def over_neighbours(board: Any, col: Any, begin: Any, end: Any) -> Any:
    """Sum one number over neighbours."""
    t0, t1, t2, t3 = F(0), F(0), F(0), F(0)  # four sums that do not wait for each other
    e, end = U(begin), U(end)
    while e + U(4) <= end:
        t0 += board[U(col[e])]
        t1 += board[U(col[e + U(1)])]
        t2 += board[U(col[e + U(2)])]
        t3 += board[U(col[e + U(3)])]
        e += U(4)
    while e < end:
        t0 += board[U(col[e])]
        e += U(1)
    return (t0 + t1) + (t2 + t3)


@inlined
def _shares(said: Any, kind: int, count: int, most: Any, total: Any) -> None:
    """From what a block of units says, ``[C, *]`` (twice as many rows for labels), to what is
    mixed."""
    if kind == LABELS:
        half = said.shape[0] // 2
        for c in range(half):
            yes, no = said[c], said[half + c]
            for a in range(count):
                x = yes[a]
                yes[a], no[a] = sigmoid(x), sigmoid(-x)
    elif kind == CLASSES:
        for a in range(count):
            most[a], total[a] = said[0, a], F(0)
        for c in range(1, said.shape[0]):
            row = said[c]
            for a in range(count):
                most[a] = row[a] if row[a] > most[a] else most[a]
        for c in range(said.shape[0]):
            row = said[c]
            for a in range(count):
                row[a] = exp2((row[a] - most[a]) * BITS)
                total[a] += row[a]
        for c in range(said.shape[0]):
            row = said[c]
            for a in range(count):
                row[a] /= total[a]


@inlined
def _share(mixes: bool, answer: Any, here: Any, said: Any, c: int, a: int) -> Any:
    """The probability that a unit would answer."""
    return answer[c] + here * said[c, a] if mixes else said[c, a]


@inlined
def _doubt(rule: int, mixes: bool, answer: Any, here: Any, said: Any, a: int) -> Any:
    """How far what a unit would answer is from being sure, from 0 to 1."""
    count, found = said.shape[0], F(0)
    if rule == UNSURE_CLASSES:
        for c in range(count):
            share = _share(mixes, answer, here, said, c, a)
            found = share if share > found else found
        return (F(1) - found) * F(count) / F(max(count - 1, 1))
    half = count // 2
    for c in range(half):
        yes = _share(mixes, answer, here, said, c, a)
        no = _share(mixes, answer, here, said, half + c, a)
        least = yes if yes < no else no
        found = least if least > found else found
    return F(2) * found


@part
def _decide(
    p: int,
    parts: int,
    units: Any,
    layer: int,
    rule: int,
    limit: float,
    stated: Any,
    manner: Any,
    graph: Any,
    bias: Any,
    kind: int,
    books: Any,
    noted: Any,
    whole: bool,
    work: Any,
) -> int:
    own, said, number = work[p], work[p, 7:], 0
    score, tau, going = own[0], own[1], own[2]
    here, weight, most, total = own[3], own[4], own[5], own[6]
    for lo in range(p * BLOCK, units.shape[0], parts * BLOCK):
        block = units[lo : min(lo + BLOCK, units.shape[0])]
        count = block.shape[0]
        for a in range(count):
            i = U(block[a])
            facts = books.facts[i]
            score[a] = facts[0] + manner.bias
            if manner.reads:
                w = graph.scale[i]
                begin, end = graph.rowptr[i], graph.rowptr[i + U(1)]
                score[a] += w * w * over_neighbours(books.board, graph.col, begin, end)
            tau[a], going[a] = facts[2], books.log_stay[i]
            for c in range(bias.shape[0]):
                said[c, a] = facts[3 + c] + bias[c]
        for a in range(count):
            scaled = score[a] * (softplus(tau[a]) + manner.nu0)
            tau[a] = sigmoid(scaled)
            score[a] = score[a] if manner.sampled else scaled
            here[a] = exp2(going[a] * BITS)
            going[a] += manner.log_keep - softplus(-score[a])
            weight[a] = here[a] - exp2(going[a] * BITS)
        _shares(said, kind, count, most, total)
        for a in range(count):
            i = U(block[a])
            if not books.left[i]:
                if rule == THRESHOLD:
                    leaves = going[a] <= limit
                elif rule == ODDS:
                    leaves = score[a] < F(0)
                elif rule == STATED:
                    leaves = stated[i] <= layer
                elif rule == EVERYONE:
                    leaves = True
                else:
                    doubt = _doubt(rule, manner.mixes, books.answers[i], here[a], said, a)
                    leaves = exp2(going[a] * BITS) * doubt <= limit
                if leaves:
                    books.left[i], books.layer[i] = True, layer
                    number += 1
                else:
                    books.log_stay[i] = going[a]
                if manner.mixes:
                    share, answer = here[a] if leaves else weight[a], books.answers[i]
                    for c in range(said.shape[0]):
                        answer[c] += share * said[c, a]
            t = tau[a] if manner.step_size < F(0) else manner.step_size
            if manner.freeze and books.left[i]:
                t = F(0)
            if whole or not books.left[i]:
                noted[i] = t
            books.tau[i] = t
    return number


@Kernel
def decide(
    parts: int,
    units: Array,
    layer: int,
    rule: int,
    limit: float,
    stated: Array,
    manner: Manner,
    graph: Structure,
    bias: Array,
    kind: int,
    books: Books,
    noted: Array,
    whole: bool,
) -> int:
    """Let units decide, and some of them leave; ``bias`` is that of this exit, ``[C]``.

    Where units mix, who leaves adds what it says, times the probability of being here, to what it
    has passed; who goes on, times that of being here and not going on. Step sizes are noted; those
    of who has left only if the ``whole`` graph is computed, else they may be wrong.

    Returns:
        How many have left now.
    """
    number = 0
    shares = bias.shape[0] * (2 if kind == LABELS else 1)
    work = np.empty((parts, 7 + shares, BLOCK), np.float32)
    for p in prange(parts):
        number += _decide(
            p,
            parts,
            units,
            layer,
            rule,
            limit,
            stated,
            manner,
            graph,
            bias,
            kind,
            books,
            noted,
            whole,
            work,
        )
    return number


def _drop(rows: Array, left: Array, read: Array, write: Array) -> int:
    """Move the rows that have not left to the front; the others will be read as they are.

    Returns:
        How many have not left.
    """
    count = 0
    for a in range(rows.shape[0]):
        i = U(rows[a])
        if left[i]:
            old, new = read[i], write[i]
            for k in range(old.shape[0]):
                new[k] = old[k]
        else:
            rows[count] = i
            count += 1
    return count


def _reach(rowptr: Array, col: Array, rows: Array, inside: Array, steps: int) -> None:
    """Mark in ``inside`` ``[n]`` the rows from which a marked node is that many steps away."""
    fresh = np.empty(rows.shape[0], np.int64)
    for _ in range(steps):
        count = 0
        for a in range(rows.shape[0]):
            i = rows[a]
            if inside[i]:
                continue
            for e in range(rowptr[i], rowptr[i + 1]):
                if inside[col[e]]:
                    fresh[count] = i
                    count += 1
                    break
        if count == 0:
            break
        for k in range(count):
            inside[fresh[k]] = True


drop, reach = kept(_drop, "drop"), kept(_reach, "reach")
