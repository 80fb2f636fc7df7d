"""``python -m tests.torture KIND… --seed S --count N``."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from importlib import import_module

KINDS = ("models", "calls", "data", "files", "pairs", "kills", "workers")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10, help="cases of each kind")
    parser.add_argument("--only", type=int, help="the number of a case to repeat")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end with a report
    numbers = range(options.count)
    if options.only is not None:
        numbers = range(options.only, options.only + 1)
    failed = 0
    for kind in KINDS if "all" in options.kinds else options.kinds:
        report = import_module(f"tests.torture.{kind}").run(options.seed, numbers)
        failed += len(report.failures)
        print(json.dumps(report.as_dict(), indent=2), flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
