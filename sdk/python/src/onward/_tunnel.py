"""The HTTP carrier: the bytes of a connection in requests, between a socket pair and the gateway."""

from __future__ import annotations

import atexit
import contextlib
import http.client
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from urllib.parse import quote

SEND_BYTES = 262_144
"""The largest number of bytes of one request."""

WAIT_SECONDS = 25.0
"""The time for which a request waits for bytes of the gateway."""

REQUEST_SECONDS = 35.0
"""The time after which a request counts as lost."""

LOST_SECONDS = 10.0
"""The time for which a lost request is repeated, before the connection counts as lost."""

PAUSE_SECONDS = 0.1

LEAVE_SECONDS = 2.0
"""The time that the last request of a connection has, with its repetitions."""

REPEATED = (0, 409, 429, 503)
"""The status of a request without a response, and those of a server that is busy."""


class _EndedError(Exception):
    """The gateway has ended the connection, or refuses it."""


class Tunnel:
    """One connection. The worker's end is a socket, which `open` returns.

    A thread carries each direction. Both count bytes, so that a lost request can be repeated.
    """

    def __init__(self, url: str, key: str | None) -> None:
        scheme, _, rest = url.partition("://")
        self._is_https = scheme == "https"
        self._host, _, path = rest.partition("/")
        self._path = f"/{path}".rstrip("/")
        self._headers = {"Content-Type": "application/octet-stream"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._name = ""
        self._closed = threading.Event()
        self._ours: socket.socket | None = None
        self._threads: list[threading.Thread] = []

    def open(self) -> socket.socket:
        """Opens the connection. Raises OSError if the server cannot be reached or refuses it."""
        link = self._connect(REQUEST_SECONDS)
        try:
            status, body = self._exchange(link, "/v1/work", b"")
        finally:
            link.close()
        if status != 201:
            raise ConnectionRefusedError(f"the server refuses workers: {_problem(status, body)}")
        self._name = json.loads(body)["connection"]
        self._ours, theirs = socket.socketpair()
        for run in (self._send, self._receive):
            thread = threading.Thread(target=self._carry, args=(run, self._ours), name="onward-http", daemon=True)
            self._threads.append(thread)
            thread.start()
        atexit.register(self._finish)
        return theirs

    def _finish(self) -> None:
        """Lets the last bytes and the close of a worker that exits reach the gateway."""
        self._threads[0].join(LEAVE_SECONDS)

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._is_https:
            return http.client.HTTPSConnection(self._host, timeout=timeout, context=ssl.create_default_context())
        return http.client.HTTPConnection(self._host, timeout=timeout)

    def _exchange(
        self, link: http.client.HTTPConnection, path: str, body: bytes, method: str = "POST"
    ) -> tuple[int, bytes]:
        try:
            link.request(method, self._path + path, body, self._headers)
            response = link.getresponse()
            return response.status, response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"the server's response is broken: {error!r}") from error

    def _carry(self, run: Callable[[socket.socket], None], ours: socket.socket) -> None:
        try:
            run(ours)
        except (OSError, _EndedError):
            # The reader of the worker sees the end of its socket.
            pass
        finally:
            self._closed.set()
            if run == self._send:
                atexit.unregister(self._finish)
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)

    def _send(self, ours: socket.socket) -> None:
        """Carries bytes of the worker, until it closes its socket."""
        link = self._connect(REQUEST_SECONDS)
        sent = 0
        try:
            while data := ours.recv(SEND_BYTES):
                self._repeat(link, f"send?from={sent}", data)
                sent += len(data)
            self._leave(link)
        finally:
            link.close()

    def _leave(self, link: http.client.HTTPConnection) -> None:
        """Closes the connection at the gateway, which may have closed it before."""
        until = time.monotonic() + LEAVE_SECONDS
        while not self._closed.is_set():
            try:
                status, _ = self._exchange(link, f"/v1/work/{quote(self._name)}", b"", "DELETE")
            except OSError:
                status = 0
                link.close()
            if status not in REPEATED or time.monotonic() > until:
                return
            self._closed.wait(PAUSE_SECONDS)

    def _receive(self, ours: socket.socket) -> None:
        """Carries bytes of the gateway, until either side closes."""
        link = self._connect(REQUEST_SECONDS)
        received = 0
        try:
            while not self._closed.is_set():
                data = self._repeat(link, f"receive?from={received}&wait_ms={round(WAIT_SECONDS * 1000)}", b"")
                ours.sendall(data)
                received += len(data)
        finally:
            link.close()

    def _repeat(self, link: http.client.HTTPConnection, path: str, body: bytes) -> bytes:
        """Sends a request until there is a response, for a limited time."""
        until: float | None = None
        while True:
            try:
                status, data = self._exchange(link, f"/v1/work/{quote(self._name)}/{path}", body)
            except OSError:
                status, data = 0, b""
                link.close()
            if status in (200, 204):
                return data
            if status not in REPEATED:
                raise _EndedError(_problem(status, data))
            until = until or time.monotonic() + LOST_SECONDS
            if self._closed.wait(PAUSE_SECONDS) or time.monotonic() > until:
                raise _EndedError("the server does not respond")


def _problem(status: int, body: bytes) -> str:
    try:
        fields = json.loads(body)
        return f"{fields['code']}: {fields['detail']}; {fields.get('remedy', '')}"
    except (ValueError, KeyError, TypeError):
        return f"status {status}"


def open_tunnel(url: str) -> socket.socket:
    """Connects to a server over HTTP, with the key in ONWARD_KEY."""
    return Tunnel(url, os.environ.get("ONWARD_KEY")).open()
