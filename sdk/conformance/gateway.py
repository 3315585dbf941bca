"""The scripted gateway: starts a worker, plays the steps of a script, and checks what it receives."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from frames import Closed, Message, Messages, Stream, encode
from http_carrier import HttpCarrier
from match import fill, mismatch

SECONDS = 10.0
"""The time limit of a step, unless it states another one."""

WELCOME = {
    "t": "welcome",
    "protocol": 1,
    "session": "s1",
    "lease_ms": 20_000,
    "heartbeat_ms": 2_000,
    "max_payload": 1_048_576,
    "features": ["ask", "submit"],
    "gateway": "scripted",
}


class Failed(Exception):
    """The worker did something else than the script expects."""


class Gateway:
    """One run of one script against one worker."""

    def __init__(self, command: list[str], carrier: str, script: dict[str, Any]) -> None:
        self._command, self._carrier, self._script = command, carrier, script
        self._folder = tempfile.TemporaryDirectory(prefix="onward-conformance-")
        self._listener: socket.socket | None = None
        self._http: HttpCarrier | None = None
        self._stream: Stream | None = None
        self._messages: Messages | None = None
        self._worker: subprocess.Popen[bytes] | None = None
        self._log_path = Path(self._folder.name) / "worker.log"
        self._names: dict[str, Any] = {}
        self._credit = 0
        self._pending_ends: list[tuple[dict[str, Any], list[bytes]]] = []
        self._collected: list[dict[str, Any]] = []

    def play(self) -> None:
        """Plays the script; raises Failed with the number of the step."""
        try:
            self._start()
            for number, step in enumerate(self._script["steps"], 1):
                try:
                    self._step(step)
                except (AssertionError, Failed, Closed, TimeoutError, OSError, ValueError, KeyError) as error:
                    text = str(error) or type(error).__name__
                    raise Failed(f"step {number} {next(iter(step))}: {text}") from error
        finally:
            self._end()

    def worker_log(self) -> str:
        """Returns the last lines that the worker wrote to standard output and standard error."""
        return self._log

    # The worker's process.

    def _start(self) -> None:
        environment = {**os.environ, **self._script.get("env", {})}
        pass_fds: tuple[int, ...] = ()
        ours = theirs = None
        if self._carrier == "child":
            ours, theirs = socket.socketpair()
            number = theirs.fileno()
            pass_fds = (number,)
            environment |= {"ONWARD_GATEWAY": "child", "ONWARD_FD": str(number)}
            self._stream = Stream(ours)
        elif self._carrier == "ipc":
            path = f"{self._folder.name}/gateway.sock"
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(path)
            environment["ONWARD_GATEWAY"] = f"ipc://{path}"
        elif self._carrier == "http":
            self._http = HttpCarrier(self._script.get("refusals", 0))
            environment["ONWARD_GATEWAY"] = self._http.url
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
            environment["ONWARD_GATEWAY"] = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        if self._listener is not None:
            self._listener.listen()
        with self._log_path.open("wb") as log:
            self._worker = subprocess.Popen(
                self._command, env=environment, pass_fds=pass_fds, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        if theirs is not None:
            theirs.close()

    def _end(self) -> None:
        self._log = ""
        for link in (self._stream.link if self._stream else None, self._listener):
            if link is not None:
                link.close()
        if self._http is not None:
            self._http.close()
        if self._worker is not None:
            if self._worker.poll() is None:
                self._worker.kill()
            self._worker.wait()
            self._log = self._log_path.read_text(errors="replace")[-4_000:]
        self._folder.cleanup()

    # Steps.

    def _step(self, step: dict[str, Any]) -> None:
        name = next(iter(step))
        getattr(self, f"_do_{name}")(step[name], step)

    def _do_accept(self, _: Any, step: dict[str, Any]) -> None:
        """Accepts a connection: the first one, or one after `close`."""
        if self._listener is not None:
            self._listener.settimeout(step.get("within", SECONDS))
            link, _address = self._listener.accept()
            if link.family == socket.AF_INET:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._stream = Stream(link)
            self._stream.link.settimeout(SECONDS)
            self._stream.greet()
        if self._http is not None:
            self._stream = Stream(self._http.accept(step.get("within", SECONDS)))
            self._stream.link.settimeout(SECONDS)
        assert self._stream is not None
        self._messages = Messages(self._stream)
        self._credit = 0

    def _do_handshake(self, changes: dict[str, Any], step: dict[str, Any]) -> None:
        """Accepts a connection, reads `hello`, and sends `welcome` with these changes."""
        self._do_accept(True, step)
        self._do_expect({"t": "hello", "protocol": [1], **step.get("hello", {})}, {})
        self._send({**WELCOME, **changes}, [])

    def _do_send(self, header: dict[str, Any], step: dict[str, Any]) -> None:
        payloads = [self._payload(value) for value in step.get("payloads", [])]
        self._send(fill(header, self._names), payloads)

    @staticmethod
    def _payload(value: Any) -> bytes:
        if isinstance(value, dict):
            return b"x" * value["bytes"] if "bytes" in value else bytes.fromhex(value["hex"])
        return str(value).encode()

    def _send(self, header: dict[str, Any], payloads: list[bytes]) -> None:
        self._send_bytes(encode(header, payloads))

    def _send_bytes(self, data: bytes) -> None:
        assert self._stream is not None
        self._stream.link.settimeout(SECONDS)
        self._stream.link.sendall(data)

    def _do_bytes(self, data: str, _: dict[str, Any]) -> None:
        """Sends bytes as they are."""
        self._send_bytes(bytes.fromhex(data))

    def _do_expect(self, pattern: dict[str, Any], step: dict[str, Any]) -> None:
        """Reads messages up to the first of this type, which must match."""
        header, payloads = self._next(pattern["t"], step.get("within", SECONDS))
        fault = mismatch(pattern, header, self._names, pattern["t"])
        if fault:
            raise Failed(f"{fault}; the message is {header}")
        for at, expected in enumerate(step.get("payloads", [])):
            if expected is not None and payloads[at] != self._payload(expected):
                raise Failed(f"payload {at} is {payloads[at]!r:.100}, not {expected!r}")
        if header["t"] == "beat" and step.get("answer", True):
            self._send({"t": "alive", "n": header["n"]}, [])

    def _next(self, kind: str, seconds: float) -> Message:
        """Returns the next message of this type. Messages of other types may only be routine ones."""
        until = time.monotonic() + seconds
        while True:
            header, payloads = self._read(until - time.monotonic())
            self._note(header)
            if header["t"] == kind:
                return header, payloads
            if header["t"] == "beat":
                self._answer(header)
            elif header["t"] == "end":
                self._pending_ends += [(end, payloads) for end in header["ends"]]
            elif header["t"] != "grant":
                raise Failed(f"`{header['t']}` came, not `{kind}`: {header}")

    def _read(self, seconds: float) -> Message:
        if self._messages is None:
            raise ValueError("no connection; the script needs `handshake` or `accept`")
        if seconds <= 0:
            raise TimeoutError("nothing came in time")
        return self._messages.read(seconds)

    def _note(self, header: dict[str, Any]) -> None:
        if header["t"] == "grant":
            if header["credit"] < self._credit:
                raise Failed(f"the credit went down from {self._credit} to {header['credit']}")
            self._credit = header["credit"]

    def _answer(self, beat: dict[str, Any]) -> None:
        if self._script.get("beats") != "unanswered":
            self._send({"t": "alive", "n": beat["n"]}, [])

    def _do_ends(self, patterns: list[dict[str, Any]], step: dict[str, Any]) -> None:
        """Reads as many ends, in any grouping; in this order unless `ordered` is false."""
        until = time.monotonic() + step.get("within", SECONDS)
        while len(self._pending_ends) < len(patterns):
            header, payloads = self._next("end", until - time.monotonic())
            self._pending_ends += [(end, payloads) for end in header["ends"]]
        ends = self._pending_ends[: len(patterns)]
        self._pending_ends = self._pending_ends[len(patterns) :]
        if not step.get("ordered", True):
            ends.sort(key=lambda end: int(end[0]["task"]))
        self._collected = [end for end, _ in ends]
        for pattern, (end, payloads) in zip(patterns, ends, strict=True):
            self._check_end(dict(pattern), end, payloads)

    def _check_end(self, pattern: dict[str, Any], end: dict[str, Any], payloads: list[bytes]) -> None:
        for name in ("payload", "checkpoint"):
            if name in pattern:
                expected = self._payload(pattern.pop(name))
                found = payloads[end[name]] if name in end else b""
                if found != expected:
                    raise Failed(f"the {name} of task {end['task']} is {found!r:.100}, not {expected!r:.100}")
        fault = mismatch(pattern, end, self._names, f"end of {end['task']}")
        if fault:
            raise Failed(f"{fault}; the end is {end}")

    def _do_ack(self, result: str, step: dict[str, Any]) -> None:
        """Acknowledges the ends of the last `ends` step with this result."""
        fates = [{"task": end["task"], "fence": end["fence"], "result": result} for end in self._collected]
        if "why" in step:
            fates = [{**fate, "why": step["why"]} for fate in fates]
        for _ in range(step.get("times", 1)):
            self._send({"t": "ack", "ends": fates}, [])

    def _do_credit(self, credit: int, step: dict[str, Any]) -> None:
        """Waits until the worker has granted exactly so much."""
        until = time.monotonic() + step.get("within", SECONDS)
        while self._credit < credit:
            self._next("grant", until - time.monotonic())
        if self._credit != credit:
            raise Failed(f"the credit is {self._credit}, not {credit}")

    def _do_quiet(self, milliseconds: int, step: dict[str, Any]) -> None:
        """Checks that only beats and, unless `grants` is false, grants come within a time."""
        until = time.monotonic() + milliseconds / 1000
        try:
            while True:
                header, _ = self._read(until - time.monotonic())
                self._note(header)
                if header["t"] == "beat":
                    self._answer(header)
                elif header["t"] != "grant" or not step.get("grants", True):
                    raise Failed(f"`{header['t']}` came: {header}")
        except TimeoutError:
            return

    def _do_pause(self, milliseconds: int, _: dict[str, Any]) -> None:
        """Reads nothing for a time."""
        time.sleep(milliseconds / 1000)

    def _do_close(self, _: Any, __: dict[str, Any]) -> None:
        """Closes the connection, as a gateway that dies does."""
        assert self._stream is not None
        self._stream.link.close()

    def _do_closed(self, _: Any, step: dict[str, Any]) -> None:
        """Reads up to the end of the connection."""
        until = time.monotonic() + step.get("within", SECONDS)
        try:
            while True:
                self._read(until - time.monotonic())
        except Closed:
            return

    def _do_signal(self, name: str, _: dict[str, Any]) -> None:
        """Sends a signal to the worker."""
        assert self._worker is not None
        self._worker.send_signal(getattr(signal, f"SIG{name}"))

    def _do_exit(self, code: int | str, step: dict[str, Any]) -> None:
        """Waits until the worker has exited with this code; `$any` allows every code."""
        assert self._worker is not None
        try:
            found = self._worker.wait(step.get("within", SECONDS))
        except subprocess.TimeoutExpired:
            raise Failed("the worker still runs") from None
        if code not in (found, "$any"):
            raise Failed(f"the worker exited with {found}, not {code}")

    def _do_logged(self, text: str, step: dict[str, Any]) -> None:
        """Waits until the worker has written a text to standard output or standard error."""
        until = time.monotonic() + step.get("within", SECONDS)
        while text not in self._log_path.read_text(errors="replace"):
            if time.monotonic() > until:
                raise Failed(f"the worker has not written `{text}`")
            time.sleep(0.02)

    def _do_running(self, _: Any, __: dict[str, Any]) -> None:
        """Checks that the worker's process lives."""
        assert self._worker is not None
        if self._worker.poll() is not None:
            raise Failed(f"the worker exited with {self._worker.returncode}")

    def _do_stream(self, count: int, step: dict[str, Any]) -> None:
        """Sends `count` tasks of the kind `echo` within the credit; checks order and results of the ends."""
        sent = ended = 0
        until = time.monotonic() + step.get("within", 60.0)
        while ended < count:
            batch = min(32, self._credit - sent, count - sent)
            if batch > 0:
                numbers = range(sent, sent + batch)
                tasks = [_echo_task(number, number - sent) for number in numbers]
                self._send({"t": "tasks", "tasks": tasks}, [str(number).encode() for number in numbers])
                sent += batch
                continue
            header, payloads = self._read(until - time.monotonic())
            self._note(header)
            if header["t"] == "beat":
                self._answer(header)
            if header["t"] == "end":
                ended = self._check_stream(header["ends"], payloads, ended)

    def _check_stream(self, ends: list[dict[str, Any]], payloads: list[bytes], ended: int) -> int:
        for end in ends:
            result = payloads[end["payload"]]
            if (end["task"], end["outcome"], result) != (str(ended + 1), "ok", str(ended).encode()):
                raise Failed(f"end {ended} is {end} with {result!r}")
            ended += 1
        fates = [{"task": end["task"], "fence": end["fence"], "result": "ok"} for end in ends]
        self._send({"t": "ack", "ends": fates}, [])
        return ended


def _echo_task(number: int, payload: int) -> dict[str, Any]:
    return {"task": str(number + 1), "fence": "1", "kind": "echo", "attempt": 1, "payload": payload}
