#!/usr/bin/env python3
"""Checks a client of the HTTP API, by cases that every language's client passes.

    python3 clients.py [--only TEXT] -- COMMAND…

COMMAND starts a driver, which reads calls from its standard input and writes their results to its
standard output; README.md describes it. The exit code is 1 if a case fails.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

from client_server import Server
from client_stub import Stub
from match import fill, mismatch

CASES = Path(__file__).parent / "clients"
SECONDS = 60.0
"""The longest time of one call."""


class Failed(Exception):
    """A case failed."""


def main() -> int:
    """Runs the cases and prints a table; returns the exit code."""
    arguments = _arguments()
    results = []
    for path in sorted(CASES.glob("*.json")):
        if arguments.only in path.stem:
            results.append(run(arguments.command, path.stem, json.loads(path.read_text())))
    failures = results.count(False)
    print(f"{len(results) - failures} passed, {failures} failed")
    return 1 if failures or not results else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Checks a client of the HTTP API.")
    parser.add_argument("--only", default="", help="run only the cases whose name contains this text")
    parser.add_argument("command", nargs="+", help="the command that starts the driver")
    return parser.parse_args()


def run(command: list[str], name: str, case: dict[str, Any]) -> bool:
    """Plays one case; prints its row and returns whether it passed."""
    began = time.monotonic()
    server = Server() if "onward" in case else Stub()
    try:
        with tempfile.TemporaryFile() as log:
            try:
                play(command, case, server, log)
            except Failed as failure:
                log.seek(0)
                print(f"FAIL  {name:34} {failure}")
                print("".join(f"      | {line}\n" for line in log.read().decode().splitlines()[-20:]), end="")
                return False
    finally:
        server.close()
    print(f"ok    {name:34} {time.monotonic() - began:5.2f} s")
    return True


def play(command: list[str], case: dict[str, Any], server: Server | Stub, log: IO[bytes]) -> None:
    """Plays the steps of a case. Raises Failed at the first difference."""
    names: dict[str, Any] = {}
    environment = {**os.environ, "ONWARD_URL": server.url, "ONWARD_KEY": "stub-key"}
    if isinstance(server, Server):
        environment |= {"ONWARD_STORE": server.environment["ONWARD_STORE"], "ONWARD_KEY": ""}
        if not case["onward"].get("key_file"):
            environment["ONWARD_KEY"] = server.key()
        for arguments in case["onward"].get("work", []):
            server.work(*arguments)
    driver = Driver(command, environment, log)
    try:
        driver.call({"client": case.get("client", {})})
        for number, step in enumerate(case["steps"], 1):
            try:
                _step(step, driver, server, names)
            except Failed as failure:
                raise Failed(f"step {number}: {failure}") from None
    finally:
        driver.close()


def _step(step: dict[str, Any], driver: Driver, server: Server | Stub, names: dict[str, Any]) -> None:
    if "call" in step:
        _call(step, driver, server, names)
    elif isinstance(server, Server):
        _act(step, server)
    else:
        raise Failed(f"an unknown step: {step}")


def _call(step: dict[str, Any], driver: Driver, server: Server | Stub, names: dict[str, Any]) -> None:
    if isinstance(server, Stub):
        server.names = names
        server.play(step.get("server", []))
    result = driver.call({"call": step["call"], "args": fill(step.get("args", {}), names)})
    if isinstance(server, Stub):
        if server.faults:
            raise Failed("; ".join(server.faults))
        if unused := server.unused():
            raise Failed(f"{len(unused)} expected requests did not come; the result is {result!r:.300}")
    expected = {"value": step["returns"]} if "returns" in step else {"raised": step["raises"]}
    if fault := mismatch(expected, result, names, "the result"):
        raise Failed(f"{fault}; the result is {result!r:.500}")


def _act(step: dict[str, Any], server: Server) -> None:
    [(verb, value)] = ((name, value) for name, value in step.items() if name not in ("is", "text"))
    if verb == "kill_before_the_next_response":
        server.arm()
    elif verb == "kill_and_start":
        server.kill()
        server.start()
    elif verb == "stop_and_start_after":
        server.stop()
        server.start_after(value)
    elif verb == "onward":
        server.onward(*value)
    elif verb == "write":
        (server.folder / value).write_text(step["text"])
    elif verb == "count":
        if (found := server.count(*value)) != step["is"]:
            raise Failed(f"the store has {found} tasks of {value}, not {step['is']}")
    else:
        raise Failed(f"an unknown step: {step}")


class Driver:
    """The process of the client under test."""

    def __init__(self, command: list[str], environment: dict[str, str], log: IO[bytes]) -> None:
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def call(self, message: dict[str, Any]) -> Any:
        """Sends a call and returns its result."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=SECONDS)
        except queue.Empty:
            raise Failed(f"no result within {SECONDS} s of {message!r:.200}") from None
        except BrokenPipeError:
            line = b""
        if not line:
            raise Failed(f"the driver has ended, before the result of {message!r:.200}")
        return json.loads(line)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


if __name__ == "__main__":
    raise SystemExit(main())
