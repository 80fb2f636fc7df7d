"""A PostgreSQL server of its own, for as long as a test needs it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def postgres() -> Iterator[str]:
    """Start a server in a temporary folder, and yield its URL; skip where none can be started."""
    pytest.importorskip("psycopg", reason="needs eegnn[postgres]")
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("initdb") or next((str(h / "initdb") for h in reversed(homes)), None)
    if found is None:
        pytest.skip("there is no PostgreSQL server on this machine")
    programs = Path(found).parent
    # Not below pytest's folder, which others may not enter; and a server does not run as root.
    home = Path(tempfile.mkdtemp(prefix="eegnn-postgres-"))
    command: list[str] = []
    if os.geteuid() == 0:
        names = {user.pw_name for user in pwd.getpwall()}
        user = next((name for name in ("postgres", "nobody") if name in names), None)
        if user is None or shutil.which("runuser") is None:
            pytest.skip("a PostgreSQL server does not run as root, and there is no other user")
        shutil.chown(home, user)
        command = ["runuser", "-u", user, "--"]
    data = home / "data"
    make = ["--no-sync", "--auth=trust", "--username=eegnn", "--pgdata", str(data)]
    made = subprocess.run(
        [*command, str(programs / "initdb"), *make], cwd=home, capture_output=True, text=True
    )
    if made.returncode != 0:
        shutil.rmtree(home, ignore_errors=True)
        pytest.skip(f"PostgreSQL cannot be started: {made.stderr.splitlines()[-1:]}")
    quick = ["-c", "fsync=off", "-c", "listen_addresses=", "-k", str(home)]
    log = (home / "log").open("wb")
    server = subprocess.Popen(
        [*command, str(programs / "postgres"), "-D", str(data), *quick],
        cwd=home,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        _wait_for(home, server)
        yield f"postgresql://eegnn@/postgres?host={home}"
    finally:
        server.terminate()
        server.wait(60)
        log.close()
        shutil.rmtree(home, ignore_errors=True)


def _wait_for(home: Path, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(600):
        assert server.poll() is None, (home / "log").read_text()
        try:
            psycopg.connect(f"postgresql://eegnn@/postgres?host={home}").close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise TimeoutError((home / "log").read_text())
