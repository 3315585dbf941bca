"""HTTP requests over kept connections, repeated until they succeed or the time for it is over."""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onward.client_errors import Conflict, Denied, Invalid, NotFound, Overloaded, Problem
from onward.errors import Unavailable

DEFAULT_URL = "http://127.0.0.1:7070"

CONNECT = 10.0
"""The longest time to connect, in seconds."""
QUIET = 45.0
"""The longest time without a byte on an event stream; the server sends one every 15 s."""
PAUSES = (0.1, 5.0)
"""The first and the longest pause between two attempts, in seconds."""
KEPT = 16
"""The largest number of idle connections that are kept."""

_CLASSES: dict[int, type[Problem]] = {
    400: Invalid,
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: Overloaded,
    503: Overloaded,
}
_REPEATED = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Request:
    """A request. `wait` is the time in seconds for which the server may delay its response.

    A request that is not repeatable is sent again only if it certainly had no effect.
    """

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True
    wait: float = 0.0


@dataclass(frozen=True)
class Response:
    """A response without an error."""

    status: int
    body: bytes

    def json(self) -> Any:
        """Returns the JSON value of the body."""
        return json.loads(self.body)


class Lost(Exception):
    """The connection broke. `sent` tells whether the server may have received the request."""

    def __init__(self, error: BaseException, *, sent: bool) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.sent = sent


class Attempts:
    """The pauses between attempts, and the end of trying."""

    def __init__(self, retry_for: float, closed: threading.Event) -> None:
        self._retry_for = retry_for
        self._closed = closed
        self._pause = PAUSES[0]
        self._until: float | None = None

    def succeeded(self) -> None:
        """Starts the time for which attempts may fail again."""
        self._until = None

    def progressed(self) -> None:
        """Makes the next pause short again."""
        self._pause = PAUSES[0]

    def pause(self, failure: Exception, least: float | None = None) -> None:
        """Waits before the next attempt. Raises the failure when the time is over."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._retry_for
        pause = self._pause * random.uniform(0.5, 1.0) if least is None else least
        self._pause = min(2 * self._pause, PAUSES[1])
        if now + pause > self._until:
            raise failure
        if self._closed.wait(pause):
            raise Unavailable("the client is closed")


class Transport:
    """Connections to one server, for any number of threads."""

    def __init__(
        self, url: str | None, key: str | None, *, key_file: str | None, timeout: float, retry_for: float
    ) -> None:
        address = urllib.parse.urlsplit(url or os.environ.get("ONWARD_URL") or DEFAULT_URL)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(f"url is `{address.geturl()}`; write it as http://HOST:PORT")
        self.url = address.geturl().rstrip("/")
        self.retry_for = retry_for
        self.closed = threading.Event()
        self._address = address
        self._timeout = timeout
        self._credential = Credential(key, key_file, is_local=address.hostname in ("127.0.0.1", "::1", "localhost"))
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._busy: set[http.client.HTTPConnection] = set()

    def send(self, request: Request) -> Response:
        """Sends a request until there is a response.

        Raises Problem for a response with an error, and Unavailable without a response.
        """
        attempts = Attempts(self.retry_for, self.closed)
        while True:
            try:
                return self._once(request)
            except Problem as problem:
                if not _may_repeat(problem, request):
                    raise
                attempts.pause(problem, problem.retry_after)
            except Lost as lost:
                if lost.sent and not request.is_repeatable:
                    text = f"{self.url}: the connection was lost before the response ({lost})"
                    raise Unavailable(f"{text}; look whether the request took effect") from lost
                attempts.pause(self.unavailable(lost))

    def unavailable(self, lost: Lost) -> Unavailable:
        """Returns the error of a server that does not respond."""
        return Unavailable(f"{self.url} does not respond ({lost}); start it by `onward serve`, or set ONWARD_URL")

    def _once(self, request: Request) -> Response:
        # A kept connection may be dead, which shows only after the request was sent.
        connection = self._take(fresh=not request.is_repeatable)
        try:
            credential = self._credential.header()
            response = _exchange(connection, self._head(request, credential), self._timeout + request.wait)
            with response:
                body = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._drop(connection)
            raise Lost(error, sent=True) from error
        except Lost:
            self._drop(connection)
            raise
        self._give_back(connection, is_kept=not response.will_close)
        if response.status == 401 and self._credential.header() != credential:
            return self._once(request)  # the server was started again and has written a new key file
        if response.status >= 400:
            raise problem_of(response.status, body, response.headers.get("retry-after"))
        return Response(response.status, body)

    def open_stream(self, path: str, cursor: str | None) -> Stream:
        """Opens an event stream behind a cursor. Raises Lost or Problem."""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
        if cursor is not None:
            headers["Last-Event-ID"] = cursor
        connection = self._take(fresh=True)
        request = Request("GET", path, headers=headers)
        try:
            response = _exchange(connection, self._head(request, self._credential.header()), QUIET)
            if response.status >= 400:
                raise problem_of(response.status, response.read(), response.headers.get("retry-after"))
        except (OSError, http.client.HTTPException) as error:
            self._drop(connection)
            raise Lost(error, sent=True) from error
        except (Lost, Problem):
            self._drop(connection)
            raise
        return Stream(self, connection, response)

    def _head(self, request: Request, credential: str | None) -> Request:
        headers = {"Accept": "application/json", **request.headers}
        if credential is not None:
            headers["Authorization"] = credential
        path = self._address.path.rstrip("/") + request.path
        return Request(request.method, path, request.body, headers)

    def _take(self, *, fresh: bool) -> http.client.HTTPConnection:
        if self.closed.is_set():
            raise Unavailable("the client is closed")
        kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
        with self._lock:
            connection = self._idle.pop() if self._idle and not fresh else None
            if connection is None:
                connection = kind(self._address.hostname or "", self._address.port, timeout=CONNECT)
            self._busy.add(connection)
        return connection

    def _give_back(self, connection: http.client.HTTPConnection, *, is_kept: bool) -> None:
        with self._lock:
            self._busy.discard(connection)
            if is_kept and not self.closed.is_set() and len(self._idle) < KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def _drop(self, connection: http.client.HTTPConnection) -> None:
        """Closes a connection that broke, and the idle ones, which have probably broken too."""
        with self._lock:
            self._busy.discard(connection)
            idle, self._idle = self._idle, []
        for one in (connection, *idle):
            one.close()

    def close(self) -> None:
        """Closes every connection; requests and streams that are under way end."""
        self.closed.set()
        with self._lock:
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for connection in idle:
            connection.close()
        for connection in busy:
            shut(connection)


class Stream:
    """The messages of an event stream: pairs of fields and data."""

    def __init__(
        self, transport: Transport, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._transport = transport
        self._connection = connection
        self._response = response

    def __iter__(self) -> Iterator[dict[str, str]]:
        """Yields the fields of each message, until the stream ends. Raises Lost if it is cut."""
        message: dict[str, str] = {}
        while True:
            try:
                line = self._response.readline()
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise Lost(error, sent=True) from error
            if not line.endswith(b"\n"):
                return
            text = line.decode().rstrip("\r\n")
            name, _, value = text.partition(":")
            if not text:
                if message:
                    yield message
                message = {}
            elif name:  # a line that begins with a colon is a comment
                message[name] = value.removeprefix(" ")

    def shut(self) -> None:
        """Ends the stream from another thread."""
        shut(self._connection)

    def close(self) -> None:
        """Closes the connection."""
        self._response.close()
        self._transport._give_back(self._connection, is_kept=False)


class Credential:
    """The value of the header `Authorization`: a key, or the key file of a local server."""

    def __init__(self, key: str | None, key_file: str | None, *, is_local: bool) -> None:
        key = key or (None if key_file else os.environ.get("ONWARD_KEY") or None)
        self._fixed = f"Bearer {key}" if key else None
        self._file: Path | None = None
        if key is None and key_file:
            self._file = Path(key_file)
        elif key is None and is_local:
            store = (os.environ.get("ONWARD_STORE") or "onward.db").removeprefix("sqlite:").removeprefix("//")
            self._file = Path(f"{store}.serve-key")

    def header(self) -> str | None:
        """Returns the value, or None without a key. The file is read again each time."""
        if self._file is None:
            return self._fixed
        try:
            text = self._file.read_text().strip()
        except OSError:
            return None  # the server says then that a credential is missing
        return text.removeprefix("Authorization: ")


def shut(connection: http.client.HTTPConnection) -> None:
    """Wakes the thread that reads from a connection."""
    try:
        if connection.sock is not None:
            connection.sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended already


def _exchange(connection: http.client.HTTPConnection, request: Request, limit: float) -> http.client.HTTPResponse:
    try:
        if connection.sock is None:
            connection.timeout = min(CONNECT, limit)
            connection.connect()
    except OSError as error:
        raise Lost(error, sent=False) from error
    assert connection.sock is not None  # `connect` has set it
    connection.sock.settimeout(limit)
    connection.request(request.method, request.path, body=request.body, headers=dict(request.headers))
    return connection.getresponse()


def problem_of(status: int, body: bytes, retry_after: str | None) -> Problem:
    """Returns the error of a response, which may be that of a proxy."""
    try:
        fields = json.loads(body)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or "code" not in fields:
        text = http.client.responses.get(status, "an unknown status")
        fields = {"code": f"http_{status}", "detail": text, "remedy": "look at the proxy, or at the url"}
    return _CLASSES.get(status, Problem)(
        fields["code"],
        fields.get("detail", ""),
        fields.get("remedy", ""),
        status=status,
        field=fields.get("field"),
        request_id=fields.get("request_id"),
        retry_after=float(retry_after) if retry_after is not None and retry_after.isdigit() else None,
    )


def _may_repeat(problem: Problem, request: Request) -> bool:
    if problem.status not in _REPEATED:
        return False
    # A server that is stopping, or has no room, did nothing.
    return request.is_repeatable or problem.status == 429 or problem.code == "stopping"
