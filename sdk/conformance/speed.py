#!/usr/bin/env python3
"""Measures no-op tasks through one worker: on a gateway with a store, and on one that only echoes.

    python3 speed.py [--tasks N] [--rounds N] [--durability full] --worker "python conformance_worker.py" …

Each worker has 64 tasks of the kind `echo` at once. The echo gateway has the same frames and headers,
and sends the next tasks as soon as ends come; it is this program, so it is a lower bound of what the
worker can do. The real gateway is `onward work --app` on a new store, full of tasks before it starts.
The workers and gateways alternate in each round. The output is a table of medians: tasks per second, and
microseconds of a processor for each task, of the worker alone, and of the worker and the real gateway.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import socket
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime

from client_server import program
from frames import Messages, Stream, encode
from gateway import WELCOME

CREDIT = 64
BATCH = 32
SECONDS = 120.0
ENVIRONMENT = {"CONFORMANCE_SLOTS": str(CREDIT)}


@dataclass
class Result:
    """Tasks per second, and the microseconds of a processor for each task."""

    rate: float
    cpu: float


def ended(process: subprocess.Popen[bytes], count: int, rate: float) -> Result:
    """Waits for the end of a process, and returns what it used with the processes that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Result(rate, 1e6 * used / count)


def echo(command: list[str], count: int) -> Result:
    """Returns the result of a worker on a gateway without a store."""
    ours, theirs = socket.socketpair()
    number = theirs.fileno()
    environment = {**os.environ, **ENVIRONMENT, "ONWARD_GATEWAY": "child", "ONWARD_FD": str(number)}
    worker = subprocess.Popen(command, env=environment, pass_fds=(number,), stderr=subprocess.DEVNULL)
    theirs.close()
    with ours:
        try:
            messages = Messages(Stream(ours))
            messages.read(SECONDS)
            ours.sendall(encode(WELCOME, []))
            rate = _stream(ours, messages, count)
        finally:
            worker.kill()
        return ended(worker, count, rate)


def _stream(link: socket.socket, messages: Messages, count: int) -> float:
    """Sends tasks within the credit until all have ended, and returns the rate after the first credit."""
    credit = sent = ended = 0
    began = 0.0
    while ended < count:
        batch = min(BATCH, credit - sent, count - sent)
        if batch > 0:
            numbers = range(sent + 1, sent + batch + 1)
            tasks = [
                {"task": str(n), "fence": "1", "kind": "echo", "attempt": 1, "payload": n - sent - 1} for n in numbers
            ]
            link.sendall(encode({"t": "tasks", "tasks": tasks}, [b"payload"] * batch))
            sent += batch
            began = began or time.monotonic()
            continue
        header, _ = messages.read(SECONDS)
        if header["t"] == "grant":
            credit = header["credit"]
        elif header["t"] == "beat":
            link.sendall(encode({"t": "alive", "n": header["n"]}, []))
        elif header["t"] == "end":
            ended += len(header["ends"])
            acks = [{"task": end["task"], "fence": end["fence"], "result": "ok"} for end in header["ends"]]
            link.sendall(encode({"t": "ack", "ends": acks}, []))
    return count / (time.monotonic() - began)


def gateway(command: list[str], count: int, durability: str) -> Result:
    """Returns the result of a worker and the real gateway, by the times of the tasks in the store."""
    with tempfile.TemporaryDirectory(prefix="onward-speed-") as folder:
        environment = {
            **os.environ,
            **ENVIRONMENT,
            "ONWARD_STORE": f"{folder}/onward.db",
            "ONWARD_DURABILITY": durability,
        }
        onward = [str(program())]
        lines = b"payload\n" * count
        subprocess.run(
            [*onward, "submit", "--kind", "echo", "--lines"],
            env=environment,
            input=lines,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        work = subprocess.Popen(
            [*onward, "work", "--quiet", "--app", shlex.join(command)], env=environment, stderr=subprocess.DEVNULL
        )
        try:
            rate = _watch(onward, environment, count)
        finally:
            work.terminate()
        return ended(work, count, rate)


def _watch(onward: list[str], environment: dict[str, str], count: int) -> float:
    """Waits until all tasks have completed. Returns the rate between the first start and the last end."""
    until = time.monotonic() + SECONDS
    completed = 0
    while completed < count:
        if time.monotonic() > until:
            raise RuntimeError(f"{completed} of {count} tasks completed within {SECONDS:.0f} s")
        time.sleep(0.5)
        completed = json.loads(_output([*onward, "task", "count", "--json", "--state", "completed"], environment))[
            "tasks"
        ]
    events = [json.loads(line) for line in _output([*onward, "events", "--json"], environment).splitlines()]
    times = {
        change: [_at(event) for event in events if event["change"] == change] for change in ("started", "completed")
    }
    return count / (max(times["completed"]) - min(times["started"]))


def _at(event: dict[str, str]) -> float:
    return datetime.fromisoformat(event["at"].removesuffix("Z")).timestamp()


def _output(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description="Measures no-op tasks through one worker.")
    parser.add_argument("--tasks", type=int, default=20_000, help="the number of tasks of one measurement")
    parser.add_argument("--rounds", type=int, default=3, help="the number of measurements of each")
    parser.add_argument("--durability", default="normal", help="the durability level of the store")
    parser.add_argument("--worker", action="append", required=True, help="a command that starts a conformance worker")
    arguments = parser.parse_args()
    results: dict[tuple[str, str], list[Result]] = {}
    for _ in range(arguments.rounds):
        for worker in arguments.worker:
            command = shlex.split(worker)
            results.setdefault((worker, "echo"), []).append(echo(command, arguments.tasks))
            result = gateway(command, arguments.tasks, arguments.durability)
            results.setdefault((worker, "store"), []).append(result)
    print(f"{'worker':54} {'echo/s':>8} {'store/s':>8} {'ratio':>6} {'us echo':>8} {'us store':>8}")
    for worker in arguments.worker:
        rates = [statistics.median(one.rate for one in results[worker, kind]) for kind in ("echo", "store")]
        cpu = [statistics.median(one.cpu for one in results[worker, kind]) for kind in ("echo", "store")]
        row = f"{rates[0]:8.0f} {rates[1]:8.0f} {rates[1] / rates[0]:6.2f} {cpu[0]:8.0f} {cpu[1]:8.0f}"
        print(f"{worker[-54:]:54} {row}")


if __name__ == "__main__":
    main()
