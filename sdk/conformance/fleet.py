"""The processes of a round of kills: gateways, runners of workflows, and workers of every language."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from client_server import program

SECONDS = 120.0
"""The longest time until something that must happen has happened."""

LEASE_SECONDS = 1.0


class Failed(Exception):
    """A process did something that it must not do."""


def wait_for(condition: Callable[[], Any], text: str) -> Any:
    """Returns the first true value of a condition. Raises Failed if there is none in time."""
    until = time.monotonic() + SECONDS
    while not (value := condition()):
        if time.monotonic() > until:
            raise Failed(f"not within {SECONDS:.0f} s: {text}")
        time.sleep(0.02)
    return value


class Member:
    """A process that is killed, paused, stopped, and started again."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.name, self._command, self._environment, self._log = name, command, environment, log
        self.start()

    def start(self) -> None:
        """Starts the process."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """Kills the process at once."""
        self._process.kill()
        self._process.wait()

    def pause(self, seconds: float) -> None:
        """Stops the process for a time, and continues it."""
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Asks the process to stop, which must end it without a fault."""
        self._process.terminate()
        try:
            code = self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} runs on after SIGTERM") from None
        if code != 0:
            raise Failed(f"{self.name} exited with {code} after SIGTERM")

    def has_ended(self) -> bool:
        """True if the process has ended by itself or was killed."""
        return self._process.poll() is not None


def free_port() -> int:
    """Returns a port of loopback that no program uses now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Fleet:
    """A store in a folder of its own, and the processes that work on it.

    Workers reach their gateway over ipc, or over HTTP, where the gateway is in `onward serve`.
    """

    GATEWAYS = 2
    RUNNERS = 2

    def __init__(self, commands: list[list[str]], carrier: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="onward-kills-")
        self.folder = Path(self._folder.name)
        self._commands = commands
        self._environment = {**os.environ, "ONWARD_STORE": str(self.folder / "onward.db")}
        self._ports = [free_port() for _ in range(self.GATEWAYS)] if carrier == "http" else []
        self.gateways: list[Member] = []
        self.runners: list[Member] = []
        self.workers: list[Member] = []

    def start(self) -> None:
        """Starts every process; a language with one worker could not go on while that one is away."""
        if self._ports:
            key = json.loads(self.onward("key", "create", "workers", "--role", "operator", "--json"))
            self._environment["ONWARD_KEY"] = key["key"]
        for number in range(self.GATEWAYS):
            self.gateways.append(self._gateway(number))
        for number in range(self.RUNNERS):
            self.runners.append(self._work(f"runner {number}", "--workflows"))
        self.workers = self.new_workers("1")

    def new_workers(self, version: str) -> list[Member]:
        """Starts workers of a version of the program, one of each language at each gateway."""
        workers = []
        for command in self._commands:
            for number in range(self.GATEWAYS):
                environment = {**self._environment, "ONWARD_GATEWAY": self._address(number), "STEPS_VERSION": version}
                workers.append(Member(f"worker {version} of {command[-1]}", command, environment, self._log))
        return workers

    def revive(self) -> None:
        """Starts workers again that have ended by themselves."""
        for worker in self.workers:
            if worker.has_ended():
                worker.start()

    def onward(self, *arguments: str) -> str:
        """Runs a command on the store and returns its output."""
        done = subprocess.run(
            [str(program()), *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise Failed(f"onward {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def count(self, *filters: str) -> int:
        """Returns the number of tasks that a filter finds."""
        return int(json.loads(self.onward("task", "count", "--json", *filters))["tasks"])

    def end(self) -> None:
        """Kills every process and removes the store."""
        for member in self.workers + self.runners + self.gateways:
            member.kill()
        self._folder.cleanup()

    def log(self) -> str:
        """Returns the last lines that the processes wrote."""
        return self._log.read_text(errors="replace")[-4_000:]

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _address(self, number: int) -> str:
        if self._ports:
            return f"http://127.0.0.1:{self._ports[number]}"
        return f"ipc://{self.folder}/gateway-{number}"

    def _gateway(self, number: int) -> Member:
        name = f"gateway {number}"
        if not self._ports:
            return self._work(name, "--listen", self._address(number))
        address = f"127.0.0.1:{self._ports[number]}"
        command = [str(program()), "serve", "--stop-within", "1s", "--listen", address]
        return Member(name, command, self._environment, self._log)

    def _work(self, name: str, *options: str) -> Member:
        command = [str(program()), "work", "--lease", f"{LEASE_SECONDS:.0f}s", *options]
        return Member(name, command, self._environment, self._log)
