"""The link to the gateway: connects, reads, writes, and connects again."""

from __future__ import annotations

import logging
import os
import random
import select
import socket
import threading
import time
import weakref
from typing import Protocol

from onward import _connect, _messages
from onward._connect import Address, Connection
from onward._frames import Header, Message, ProtocolError, encode
from onward._messages import Acks, Alive, Drain, Refusal, Reply, Stop, TaskMessage, Tasks, Welcome
from onward._outbox import Outbox, encode_batch
from onward.errors import Refused

log = logging.getLogger("onward")

FIRST_BACKOFF, LONGEST_BACKOFF = 0.1, 10.0
"""The bounds of the delay before a new connection, in seconds."""

STABLE_SECONDS = 10.0
"""The age of a connection after which the next delay begins at the first one again."""

RECEIVE_BYTES = 262_144
GOODBYE_SECONDS = 2.0

_AGAIN = frozenset({"busy", "shutting_down", "timeout"})
"""The errors after which a new connection may succeed."""


class _LeavesError(Exception):
    """The gateway stops before it has taken the child."""


class Listener(Protocol):
    """The part of the worker that acts on what the gateway sends."""

    def hello(self, session: str | None) -> Header:
        """Returns the first message of a connection, which resumes the session if there is one."""
        ...

    def welcomed(self, welcome: Welcome) -> None:
        """A connection has begun."""

    def on_tasks(self, tasks: list[TaskMessage]) -> None:
        """Tasks to run."""

    def on_stop(self, stop: Stop) -> None:
        """An attempt should stop."""

    def on_drain(self, drain: Drain) -> None:
        """The gateway stops."""

    def on_lost(self, tasks: list[str] | None) -> None:
        """The leases of tasks have passed on; None means all."""

    def on_closed(self, error: Exception | None) -> None:
        """No connection will follow. Without an error, the worker asked for it."""


class Link(threading.Thread):
    """The thread that reads from the gateway. Each connection has a second one that writes."""

    def __init__(self, address: Address, outbox: Outbox, listener: Listener) -> None:
        super().__init__(name="onward-reader", daemon=True)
        self._address = address
        self._outbox = outbox
        self._listener = listener
        self._socket: socket.socket | None = None
        self._closing = threading.Event()
        self._said_bye = False
        self._session: str | None = None
        _links.add(self)

    def close(self) -> None:
        """Ends the connection; none follows."""
        self._closing.set()
        self._shut()

    def say_bye(self, *, last: bool) -> None:
        """Tells the gateway that everything has ended; it closes the connection."""
        self._said_bye = True
        self._session = None
        if last:
            self._closing.set()
            timer = threading.Timer(GOODBYE_SECONDS, self._shut)
            timer.daemon = True
            timer.start()
        self._outbox.leave(last=last)
        if last and self._socket is None:
            self.close()

    def _shut(self) -> None:
        link = self._socket
        if link is not None:
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def run(self) -> None:
        """Connects until the worker or a refusal ends it."""
        error: Exception | None = None
        failures = 0
        try:
            while not self._closing.is_set():
                began = time.monotonic()
                try:
                    self._connection()
                except _LeavesError:
                    self._said_bye = True
                except (OSError, ProtocolError) as failure:
                    if self._closing.is_set():
                        break
                    if not self._address.can_reconnect and not self._said_bye:
                        raise
                    log.warning("the gateway at %s: %s", self._address, failure)
                if not self._address.can_reconnect:
                    break
                failures = 0 if time.monotonic() - began > STABLE_SECONDS else failures + 1
                self._wait_to_reconnect(failures)
        except Exception as failure:  # the worker ends, and its owner is told why
            error = failure
        if error is not None or not self._said_bye:
            self._listener.on_lost(None)
        self._outbox.abandon()
        self._listener.on_closed(error)

    def _wait_to_reconnect(self, failures: int) -> None:
        longest = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** min(failures, 16))
        until = time.monotonic() + random.uniform(0, longest)
        while not self._closing.is_set() and (left := until - time.monotonic()) > 0:
            self._closing.wait(min(left, max(0.0, self._outbox.lease_end - time.monotonic()) + 0.001))
            self._check_lease()

    def _check_lease(self) -> None:
        """Gives up the tasks if the lease has passed without an answer of the gateway."""
        if time.monotonic() >= self._outbox.lease_end:
            log.warning("no answer of the gateway within the lease: its tasks are given up")
            self._outbox.lease_end = float("inf")
            self._session = None
            self._listener.on_lost(None)

    def _connection(self) -> None:
        connection = _connect.connect(self._address)
        self._socket = connection.socket
        try:
            if self._closing.is_set():
                return
            messages = self._greet(connection)
            writer = threading.Thread(target=self._write, args=(connection.socket,), name="onward-writer", daemon=True)
            writer.start()
            try:
                self._read(connection, messages)
            finally:
                self._outbox.close()
                self._shut()
                writer.join()
        finally:
            self._socket = None
            connection.socket.close()
            self._check_lease()

    def _greet(self, connection: Connection) -> list[Message]:
        """Sends `hello` and returns the messages that came after `welcome`."""
        link, decoder = connection.socket, connection.decoder
        link.settimeout(_connect.HANDSHAKE_SECONDS)
        link.sendall(encode(self._listener.hello(self._session)))
        messages = connection.early
        while not messages:
            data = link.recv(RECEIVE_BYTES)
            if not data:
                raise ConnectionResetError("the gateway closed the connection before `welcome`")
            messages = [message for message in decoder.feed(data) if not self._is_command(message)]
        link.settimeout(None)
        welcome = _messages.parse(*messages[0])
        if isinstance(welcome, Refusal):
            if welcome.code == "shutting_down" and not self._address.can_reconnect:
                raise _LeavesError
            if welcome.code in _AGAIN and self._address.can_reconnect:
                raise ConnectionRefusedError(str(welcome))
            raise Refused(welcome.code, welcome.text, welcome.remedy)
        if not isinstance(welcome, Welcome):
            raise ProtocolError("unexpected", f"`{messages[0][0]['t']}` came before `welcome`")
        decoder.max_payload = welcome.max_payload
        self._session = welcome.session
        # A worker that is stopped while it connects says its `bye` on this connection.
        self._said_bye = self._closing.is_set()
        self._listener.welcomed(welcome)
        self._outbox.open(welcome)
        return messages[1:]

    def _is_command(self, message: Message) -> bool:
        header, payloads = message
        if header["t"] != "$command":
            return False
        answer = _connect.pong(payloads[0])
        if answer is not None:
            self._outbox.send(answer)
        return True

    def _read(self, connection: Connection, messages: list[Message]) -> None:
        link, decoder = connection.socket, connection.decoder
        while True:
            for message in messages:
                if not self._is_command(message):
                    self._act(message)
            data = link.recv(RECEIVE_BYTES)
            if not data:
                break
            messages = decoder.feed(data)
        if decoder.inside_message:
            raise ProtocolError("bad_frame", "the connection ended within a message")
        if not self._said_bye and not self._closing.is_set():
            raise ConnectionResetError("the gateway closed the connection")

    def _act(self, message: Message) -> None:
        try:
            incoming = _messages.parse(*message)
        except ProtocolError as error:
            if error.code != "unsupported":
                raise
            answer: Header = {"t": "error", "code": error.code, "text": error.text[:1024], "fatal": False}
            self._outbox.send(encode(answer))
            return
        if isinstance(incoming, Tasks):
            self._listener.on_tasks(incoming.tasks)
        elif isinstance(incoming, Acks):
            self._outbox.acknowledge(incoming.acks)
        elif isinstance(incoming, Alive):
            self._outbox.alive(incoming)
            if incoming.lost:
                self._listener.on_lost(incoming.lost)
        elif isinstance(incoming, Stop):
            self._listener.on_stop(incoming)
        elif isinstance(incoming, Reply):
            self._outbox.reply(incoming)
        elif isinstance(incoming, Drain):
            self._listener.on_drain(incoming)
        elif isinstance(incoming, Refusal):
            if incoming.fatal:
                # The gateway has no session of this connection any more; another one resumes it.
                raise ConnectionAbortedError(f"the gateway ended the session: {incoming}")
            log.error("the gateway reports %s", incoming)
        else:
            raise ProtocolError("unexpected", "a second `welcome` came")

    def _write(self, link: socket.socket) -> None:
        """Sends what the outbox has, and never blocks beyond the lease."""
        poll = select.poll()
        poll.register(link, select.POLLOUT)
        try:
            while (batch := self._outbox.take()) is not None:
                self._send(link, poll, encode_batch(batch))
        except OSError as error:
            log.debug("sending to the gateway failed: %s", error)
        except Exception:
            log.exception("a message could not be sent")
        # Wakes the reader, which decides what follows.
        self._shut()

    def _send(self, link: socket.socket, poll: select.poll, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[link.send(view, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                left = self._outbox.lease_end - time.monotonic()
                if left <= 0:
                    raise TimeoutError("the gateway has not read within the lease") from None
                poll.poll(min(left, 3600.0) * 1000)

    def forget_after_fork(self) -> None:
        """Closes the forked process's copy of the connection, so that it does not stay open."""
        link = self._socket
        if link is not None:
            os.close(link.detach())


_links: weakref.WeakSet[Link] = weakref.WeakSet()


def _after_fork() -> None:
    for link in list(_links):
        link.forget_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
