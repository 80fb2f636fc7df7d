"""Cases that are counted, timed and watched."""

from __future__ import annotations

import random
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

#: A case may take this long.
SECONDS = 10
#: Failures that a report describes.
SHOWN = 20
#: What no file and no argument may cause, by the names of Python's audit events.
FORBIDDEN: tuple[str, ...] = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "subprocess.Popen",
    "socket.connect",
)
FORBIDDEN += ("pickle.find_class", "webbrowser.open")
_SEEN: list[str] = []
_WATCHING = False


class Wrong(AssertionError):
    """A case ended as it must not."""


@dataclass
class Report:
    """What became of the cases of a kind."""

    kind: str
    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    #: Durations in seconds, by what they are of.
    measured: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        return sum(self.outcomes.values())

    def as_dict(self) -> dict[str, Any]:
        numbers = {"cases": self.cases, "failed": len(self.failures), "seconds": self.seconds}
        outcomes = {"outcomes": dict(self.outcomes), "failures": self.failures[:SHOWN]}
        measured = {name: spread(times) for name, times in self.measured.items() if times}
        return {"kind": self.kind, "seed": self.seed, **numbers, **outcomes, **measured}


def spread(times: list[float]) -> dict[str, float]:
    """The number of some durations, the shortest, the middle one and the longest."""
    ends = {"min": min(times), "median": median(times), "max": max(times)}
    return {"number": len(times), **{name: round(time, 1) for name, time in ends.items()}}


def run_cases(
    kind: str,
    seed: int,
    numbers: range,
    case: Callable[[random.Random, Report], str],
    seconds: int = SECONDS,
) -> Report:
    """Run cases, each with a generator of its own; a case returns how it ended, or raises.

    A case that may take longer than the usual ``seconds`` starts processes, and may do so.
    """
    _install()
    report, start = Report(kind, seed), time.perf_counter()
    for number in numbers:
        rng = random.Random(f"{kind} {seed} {number}")
        try:
            with watched(seconds == SECONDS), time_limit(seconds), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                outcome = case(rng, report)
        except KeyboardInterrupt:  # report what was done
            break
        except Exception:
            outcome = "failed"
            report.failures.append(f"case {number}: {traceback.format_exc(limit=-4)}")
        report.outcomes[outcome] += 1
    report.seconds = round(time.perf_counter() - start, 1)
    return report


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Fail after so many seconds of computing, or ten times as many of a busy machine's clock."""

    def stop(number: int, frame: Any) -> None:
        raise Wrong(f"longer than {seconds} s")

    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, stop) for number in timers}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)
    try:
        yield
    finally:
        for number, timer in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


@contextmanager
def watched(watching: bool) -> Iterator[None]:
    """Fail if something is executed, sent or unpickled meanwhile."""
    global _WATCHING
    _SEEN.clear()
    _WATCHING = watching
    try:
        yield
    finally:
        _WATCHING = False
    if _SEEN:
        raise Wrong(f"executed: {_SEEN[:3]}")


def _install() -> None:
    if not getattr(_install, "done", False):  # an audit hook cannot be removed
        sys.addaudithook(_audit)
        _install.done = True  # type: ignore[attr-defined]


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _WATCHING and event in FORBIDDEN:
        _SEEN.append(f"{event} {str(arguments)[:80]}")


def check_sentence(error: BaseException, *names: str) -> None:
    """Fail unless an error is of an expected type, short, and names what it is about."""
    if not isinstance(error, ValueError | TypeError | OSError):
        raise error
    said = str(error)
    if not said or len(said) > 4000:
        raise Wrong(f"a message of {len(said)} characters") from error
    if "weights_only" in said:
        raise Wrong(f"repeats advice to execute a file: {said}") from error
    if names and not any(name in said for name in names):
        raise Wrong(f"{said!r} names none of {names}") from error
