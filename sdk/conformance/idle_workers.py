#!/usr/bin/env python3
"""Measures what idle workers cost a gateway: `onward work --listen`, on a store without tasks.

    python3 idle_workers.py [--workers N] [--seconds N]

This process holds the connections of all workers, and sends their beats. The result is a line of JSON
with the part of a core that the gateway uses and the memory of each worker at the gateway.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from client_server import program
from frames import COMMAND, GREETING, Messages, Stream, encode, frame

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
READY = frame(b"\x05READY" + b"\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER", COMMAND)
SECONDS = 60.0
BEAT_FRACTION = 0.75
"""The part of the heartbeat interval after which a worker sends a beat, as the SDKs do."""


class Gateway:
    """The process of a gateway, and what it uses."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "gateway.sock"
        environment = {**os.environ, "ONWARD_STORE": str(folder / "onward.db")}
        self._log = (folder / "log").open("wb")
        command = [str(program()), "work", "--quiet", "--listen", f"ipc://{self.path}"]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        while not self.path.exists():
            if self.process.poll() is not None:
                raise RuntimeError(f"the gateway does not start; see {folder}/log")
            time.sleep(0.01)

    def cpu_seconds(self) -> float:
        """Returns the time of processors that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    def memory(self) -> int:
        """Returns its memory in bytes, without the pages of files."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

    def end(self) -> None:
        """Kills it."""
        self.process.kill()
        self.process.wait()
        self._log.close()


class Worker:
    """One connection, whose messages are read and dropped."""

    def __init__(self, path: Path, number: int) -> None:
        self.link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.link.connect(str(path))
        hello = {"t": "hello", "protocol": [1], "kinds": {"idle": {}}, "name": f"worker {number}", "slots": 4}
        self.link.sendall(GREETING + READY + encode(hello, []))
        self._beats = 0

    def welcome(self) -> dict[str, Any]:
        """Reads up to `welcome` and returns it, and grants credit."""
        stream = Stream(self.link)
        stream.read_greeting(b"ROUTER")
        header, _ = Messages(stream).read(SECONDS)
        if header["t"] != "welcome":
            raise RuntimeError(f"the gateway refuses a worker: {header}")
        self.link.sendall(encode({"t": "grant", "credit": 4}, []))
        return header

    def beat(self) -> None:
        """Sends a beat."""
        self._beats += 1
        self.link.sendall(encode({"t": "beat", "n": self._beats}, []))


def hold(workers: list[Worker], interval: float, seconds: float) -> None:
    """Sends the beats of the workers, spread over the interval, for a time."""
    selector = selectors.DefaultSelector()
    for worker in workers:
        selector.register(worker.link, selectors.EVENT_READ)
    began = time.monotonic()
    sent = 0
    while (now := time.monotonic() - began) < seconds:
        while sent < now / interval * len(workers):
            workers[sent % len(workers)].beat()
            sent += 1
        for key, _ in selector.select(interval / len(workers)):
            if not os.read(key.fd, 65_536):
                raise RuntimeError("the gateway closed the connection")


def measure(count: int, seconds: float) -> dict[str, float]:
    """Returns the costs of so many workers."""
    with tempfile.TemporaryDirectory(prefix="onward-idle-") as folder:
        gateway = Gateway(Path(folder))
        try:
            time.sleep(1)
            before = gateway.memory()
            workers = [Worker(gateway.path, number) for number in range(count)]
            headers = [worker.welcome() for worker in workers]
            interval = headers[0]["heartbeat_ms"] / 1000 * BEAT_FRACTION
            hold(workers, interval, 2 * interval)
            used = gateway.cpu_seconds()
            hold(workers, interval, seconds)
            used = gateway.cpu_seconds() - used
            memory = (gateway.memory() - before) / count
            return {
                "workers": count,
                "heartbeat_s": interval / BEAT_FRACTION,
                "cpu_percent_of_a_core": round(100 * used / seconds, 3),
                "kilobytes_each": round(memory / 1000, 1),
            }
        finally:
            gateway.end()


def main() -> None:
    """Measures, and prints the result."""
    parser = argparse.ArgumentParser(description="Measures what idle workers cost a gateway.")
    parser.add_argument("--workers", type=int, default=1000, help="the number of workers")
    parser.add_argument("--seconds", type=float, default=30, help="the length of the measurement")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, max(4096, 2 * arguments.workers + 256)), most))
    print(json.dumps(measure(arguments.workers, arguments.seconds)))


if __name__ == "__main__":
    main()
