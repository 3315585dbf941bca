"""The codec of the scripted gateway. It is kept apart from that of every SDK, which it checks."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

MORE, LONG, COMMAND = 1, 2, 4
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)

Message = tuple[dict[str, Any], list[bytes]]


def frame(body: bytes, flags: int = 0) -> bytes:
    """Returns a frame, in the long form where it must have it."""
    if len(body) < 256:
        return struct.pack(">BB", flags, len(body)) + body
    return struct.pack(">BQ", flags | LONG, len(body)) + body


def encode(header: dict[str, Any], payloads: list[bytes]) -> bytes:
    """Returns a message; `payloads` of the header is filled in unless a script states it."""
    if payloads:
        header = {"payloads": len(payloads), **header}
    bodies = [json.dumps(header, separators=(",", ":")).encode(), *payloads]
    last = len(bodies) - 1
    return b"".join(frame(body, MORE if at < last else 0) for at, body in enumerate(bodies))


class Closed(Exception):
    """The worker has closed the connection."""


class Stream:
    """A connection from which whole messages are read, each with a time limit."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self._buffer = bytearray()
        self._start = 0

    def _fill(self, count: int) -> None:
        while len(self._buffer) - self._start < count:
            try:
                data = self.link.recv(262_144)
            except ConnectionResetError:
                data = b""
            if not data:
                raise Closed("the worker closed the connection")
            if self._start > 1_048_576:
                del self._buffer[: self._start]
                self._start = 0
            self._buffer += data

    def frame(self) -> tuple[int, bytes]:
        """Reads one frame. What has arrived of an unfinished one stays for the next call."""
        self._fill(2)
        at = self._start
        flags = self._buffer[at]
        if flags & LONG:
            self._fill(9)
            at = self._start
            size, head = int.from_bytes(self._buffer[at + 1 : at + 9], "big"), 9
        else:
            size, head = self._buffer[at + 1], 2
        self._fill(head + size)
        at = self._start + head
        body = bytes(self._buffer[at : at + size])
        self._start = at + size
        return flags, body

    def greet(self) -> None:
        """Does the handshake of ZMTP 3.1 as a ROUTER."""
        ready = b"\x05READY" + b"\x0bSocket-Type" + struct.pack(">I", 6) + b"ROUTER"
        self.link.sendall(GREETING + frame(ready, COMMAND))
        self.read_greeting(b"DEALER")

    def read_greeting(self, peer: bytes) -> None:
        """Reads the greeting and the READY of a peer with this type of socket."""
        self._fill(64)
        greeting = bytes(self._buffer[self._start : self._start + 64])
        self._start += 64
        if greeting[0] != 0xFF or greeting[10] != 3 or greeting[12:16] != b"NULL":
            raise AssertionError(f"the greeting is {greeting.hex()}")
        flags, body = self.frame()
        if flags != COMMAND or not body.startswith(b"\x05READY") or peer not in body:
            raise AssertionError(f"the READY of the peer is {body!r}")


class Messages:
    """The messages of a stream. A message that a time limit interrupts is continued later."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._frames: list[bytes] = []

    def read(self, seconds: float) -> Message:
        """Reads one message within a time.

        Raises TimeoutError without one, Closed at the end of the connection.
        """
        self._stream.link.settimeout(max(seconds, 0.001))
        while True:
            flags, body = self._stream.frame()
            if flags & COMMAND:
                return {"t": "$command"}, [body]
            self._frames.append(body)
            if not flags & MORE:
                frames, self._frames = self._frames, []
                return check_header(frames)


def check_header(frames: list[bytes]) -> Message:
    """Returns a message whose header keeps the rules of the protocol."""
    if len(frames[0]) > 65_536:
        raise AssertionError(f"a header has {len(frames[0])} bytes")
    header = json.loads(frames[0])
    if header.get("payloads", 0) != len(frames) - 1:
        raise AssertionError(f"`payloads` is {header.get('payloads')}, but {len(frames) - 1} frames follow")
    return header, frames[1:]
