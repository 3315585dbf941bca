"""`onward work --app` as a process, for tests against the real gateway."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
PROJECT = TESTS.parents[2]
SECONDS = 60.0


def program() -> Path:
    """Returns the program `onward`: ONWARD_BIN, or the one of the last debug build.

    Skips the test without one, but fails it where ONWARD_REQUIRE_BACKENDS says that it must run.
    """
    path = Path(os.environ.get("ONWARD_BIN") or PROJECT / "target/debug/onward")
    if not path.is_file():
        text = f"no program at {path}; build it by `cargo build`, or set ONWARD_BIN"
        if os.environ.get("ONWARD_REQUIRE_BACKENDS"):
            pytest.fail(text)
        pytest.skip(text)
    return path


def wait_for(condition: Callable[[], Any], text: str, seconds: float = SECONDS) -> Any:
    """Returns the first true value of a condition."""
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < until, f"not within {seconds} s: {text}"
        time.sleep(0.02)
    return value


class Gateway:
    """A store, and `onward work --app` on it."""

    def __init__(self, folder: Path, worker: Path) -> None:
        self._program = program()
        self._command = shlex.join([sys.executable, str(worker)])
        self.folder = folder
        self.pid_file = folder / "pid"
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(TESTS.parent / "src"),
            "ONWARD_STORE": str(folder / "onward.db"),
            "PID_FILE": str(self.pid_file),
            "HOLD_FILE": str(folder / "hold"),
            "LEDGER": str(folder / "ledger.db"),
        }
        self._log = (folder / "log").open("ab")
        self._workers: list[subprocess.Popen[bytes]] = []
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Starts the gateway, which starts the worker."""
        self._start("--app", self._command, *options)

    def listen(self) -> None:
        """Starts the gateway without a worker; those of `start_worker` connect to it."""
        self._start("--listen", self.address)

    @property
    def address(self) -> str:
        """The address of a gateway that listens."""
        return f"ipc://{self.folder}/gateway.sock"

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Starts a worker that connects to the address."""
        worker = subprocess.Popen(
            shlex.split(self._command),
            env={**self.environment, "ONWARD_GATEWAY": self.address},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        self._workers.append(worker)
        return worker

    def _start(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [str(self._program), "work", *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )

    def onward(self, *arguments: str, stdin: str = "", check: bool = True) -> str:
        """Runs a command of `onward` on the store and returns its output."""
        done = subprocess.run(
            [str(self._program), *arguments],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            cwd=self.folder,
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout

    def count(self, *arguments: str) -> int:
        """Returns the number of tasks that a filter finds."""
        return int(json.loads(self.onward("task", "count", "--json", *arguments))["tasks"])

    def worker_pid(self) -> int:
        """Returns the process of the worker, when it has started."""
        text = wait_for(lambda: self.pid_file.exists() and self.pid_file.read_text(), "the worker starts")
        return int(text)

    def kill_worker(self) -> None:
        """Kills the worker's process at once."""
        pid = self.worker_pid()
        self.pid_file.unlink()
        os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kills the gateway's process at once."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Sends SIGTERM and returns the exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(SECONDS)

    def end(self) -> None:
        """Ends every process of the test."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        for worker in self._workers:
            worker.kill()
            worker.wait()
        self._log.close()

    def log(self) -> str:
        """Returns what the gateway and its worker have written."""
        return (self.folder / "log").read_text(errors="replace")
