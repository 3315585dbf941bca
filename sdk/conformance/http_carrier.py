"""The HTTP carrier of the scripted gateway: each connection of a worker becomes a socket to accept."""

from __future__ import annotations

import contextlib
import http.server
import json
import queue
import socket
import threading
from typing import Any
from urllib.parse import parse_qs, urlsplit

LOST_EVERY = 7
"""The number of responses of which one is lost, so that the worker repeats its request."""


class Carried:
    """The bytes of one connection, with their counts in both directions."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.received = 0
        self.acknowledged = 0
        self.unread = b""

    def close(self) -> None:
        """Ends the connection, also under a request that waits for it."""
        with contextlib.suppress(OSError):
            self.link.shutdown(socket.SHUT_RDWR)
        self.link.close()

    def send(self, start: int, data: bytes) -> bool:
        """Passes bytes to the script. Returns whether they follow those that came before."""
        if start > self.received:
            return False
        new = data[self.received - start :]
        self.link.sendall(new)
        self.received += len(new)
        return True

    def receive(self, start: int, wait: float) -> bytes | None:
        """Returns bytes of the script from a position; None at the end."""
        self.unread = self.unread[start - self.acknowledged :]
        self.acknowledged = start
        if self.unread:
            return self.unread
        self.link.settimeout(wait)
        try:
            data = self.link.recv(262_144)
        except TimeoutError:
            return b""
        finally:
            self.link.settimeout(None)
        self.unread = data
        return data or None


class HttpCarrier:
    """A server on a free port of loopback. `accept` returns the connections that workers open.

    It refuses the first `refusals` of them, as a server refuses a wrong key.
    """

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.connections: dict[str, Carried] = {}
        self.accepted: queue.Queue[socket.socket] = queue.Queue()
        self.responses = 0
        self.left: set[str] = set()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.carrier = self  # type: ignore[attr-defined]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        """The address for workers."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def accept(self, seconds: float) -> socket.socket:
        """Returns the next connection. Raises TimeoutError without one."""
        try:
            return self.accepted.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError("no worker connects") from None

    def close(self) -> None:
        """Stops listening, and ends every connection."""
        self._server.shutdown()
        self._server.server_close()
        for carried in list(self.connections.values()):
            carried.close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: workers that are killed break their connections."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Writes no log."""

    @property
    def _carrier(self) -> HttpCarrier:
        return self.server.carrier  # type: ignore[attr-defined, no-any-return]

    def do_POST(self) -> None:
        """Opens a connection, or carries bytes of one."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = urlsplit(self.path)
        names = parts.path.strip("/").split("/")
        query = {name: int(values[0]) for name, values in parse_qs(parts.query).items()}
        if names == ["v1", "work"]:
            return self._open()
        carried = self._carrier.connections.get(names[2])
        if carried is None:
            return self._reply(404, b'{"code": "not_found", "detail": "the connection has ended"}')
        try:
            if names[3] == "send":
                follows = carried.send(query["from"], body)
                return self._reply(204 if follows else 422, b"", may_lose=True)
            data = carried.receive(query["from"], query["wait_ms"] / 1000)
        except OSError:
            data = None
        if data is None:
            return self._end(names[2])
        return self._reply(200, data, may_lose=True)

    def do_DELETE(self) -> None:
        """Closes a connection at the second request. The first one is lost, so the worker repeats it."""
        name = urlsplit(self.path).path.strip("/").split("/")[2]
        if name in self._carrier.left:
            self._end(name, 204)
        else:
            self._carrier.left.add(name)
            self._lose()

    def _open(self) -> None:
        if self._carrier.refusals > 0:
            self._carrier.refusals -= 1
            return self._reply(401, b'{"code": "credential_invalid", "detail": "the key is not known"}')
        ours, theirs = socket.socketpair()
        name = str(len(self._carrier.connections) + 1)
        self._carrier.connections[name] = Carried(ours)
        self._carrier.accepted.put(theirs)
        return self._reply(201, json.dumps({"connection": name}).encode())

    def _end(self, name: str, status: int = 404) -> None:
        carried = self._carrier.connections.pop(name, None)
        if carried is not None:
            carried.close()
        self._reply(status, b"" if status == 204 else b'{"code": "not_found", "detail": "the connection has ended"}')

    def _reply(self, status: int, body: bytes, *, may_lose: bool = False) -> None:
        self._carrier.responses += 1
        if may_lose and self._carrier.responses % LOST_EVERY == 0:
            self._lose()
            return
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _lose(self) -> None:
        """Breaks the connection of the request instead of a response."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)
