"""Carriers: how a worker reaches its gateway, and the handshake of ZMTP 3.1 with NULL."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from onward._frames import COMMAND, Decoder, Message, ProtocolError, frame
from onward._tunnel import open_tunnel

HANDSHAKE_SECONDS = 10.0
"""The longest time for the connection and its handshake."""

CHILD_DESCRIPTOR = 3

_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
_READY = frame(b"\x05READY" + b"\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER", COMMAND)


@dataclass(frozen=True)
class Address:
    """The address of a gateway."""

    scheme: str
    place: str
    port: int = 0

    @property
    def can_reconnect(self) -> bool:
        """True if the worker may connect again: a child has one connection in its life."""
        return self.scheme != "child"

    def __str__(self) -> str:
        if self.scheme == "tcp":
            host = f"[{self.place}]" if ":" in self.place else self.place
            return f"tcp://{host}:{self.port}"
        return "child" if self.scheme == "child" else f"{self.scheme}://{self.place}"


def parse_address(text: str | None, environment: Mapping[str, str]) -> Address:
    """Returns the address in `text`, or else in ONWARD_GATEWAY.

    Raises ValueError with the remedy if there is none, or if it is not an address.
    """
    text = text or environment.get("ONWARD_GATEWAY")
    if text is None:
        raise ValueError(
            "no gateway: ONWARD_GATEWAY is not set. Start this program by"
            ' `onward work --app "python app.py"`, or set it to the address of'
            " `onward work --listen ipc:///run/onward.sock`"
        )
    if text == "child":
        return Address("child", environment.get("ONWARD_FD") or str(CHILD_DESCRIPTOR))
    if text.startswith("ipc://") and len(text) > 6:
        return Address("ipc", text[6:])
    if text.startswith("tcp://"):
        return _tcp(text)
    if text.startswith(("http://", "https://")):
        return _http(text)
    raise ValueError(
        f"the gateway `{text}` is not an address; use child, ipc://PATH, tcp://HOST:PORT or https://HOST:PORT"
    )


def _http(text: str) -> Address:
    parts = urlsplit(text)
    if not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"the gateway `{text}` is not an address; use http://127.0.0.1:PORT or https://HOST")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise ValueError(f"the gateway `{text}` is not on loopback; payloads and the key need encryption: use https://")
    return Address(parts.scheme, text.partition("://")[2].rstrip("/"))


def _tcp(text: str) -> Address:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise ValueError(f"the gateway `{text}` is not an address; use tcp://HOST:PORT")
    if not _is_loopback(host):
        raise ValueError(
            f"the gateway `{text}` is not on loopback; a connection without encryption stays on this"
            " machine: forward the port through SSH or a service mesh, and use tcp://127.0.0.1:PORT"
        )
    return Address("tcp", host, port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass
class Connection:
    """A connected socket, the decoder of what it receives, and messages that it has received."""

    socket: socket.socket
    decoder: Decoder
    early: list[Message]


def connect(address: Address) -> Connection:
    """Connects to a gateway and returns the connection, ready for `hello`.

    Raises OSError if it cannot be reached, ProtocolError if the peer is no gateway.
    """
    if address.scheme in ("http", "https"):
        return Connection(open_tunnel(str(address)), Decoder(commands=False), [])
    if address.scheme == "child":
        return Connection(_inherited(int(address.place)), Decoder(commands=False), [])
    if address.scheme == "ipc":
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(HANDSHAKE_SECONDS)
        try:
            link.connect(address.place)
        except OSError:
            link.close()
            raise
    else:
        link = socket.create_connection((address.place, address.port), HANDSHAKE_SECONDS)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        decoder, early = _shake_hands(link)
    except BaseException:
        link.close()
        raise
    link.settimeout(None)
    return Connection(link, decoder, early)


def _inherited(descriptor: int) -> socket.socket:
    try:
        link = socket.socket(fileno=descriptor)
    except OSError as error:
        raise ValueError(
            f"ONWARD_FD is {descriptor}, which is no socket ({error.strerror}); start this program by"
            ' `onward work --app "python app.py"`'
        ) from None
    # Programs that a handler starts must not keep the connection open.
    os.set_inheritable(descriptor, False)
    return link


def _shake_hands(link: socket.socket) -> tuple[Decoder, list[Message]]:
    link.sendall(_GREETING + _READY)
    received = b""
    while len(received) < len(_GREETING):
        received += _receive(link)
    if received[0] != 0xFF or not received[9] & 1 or received[10] < 3:
        raise ProtocolError("bad_frame", "the peer does not speak ZMTP 3; check the address of the gateway")
    mechanism = received[12:32].rstrip(b"\0")
    if mechanism != b"NULL":
        name = mechanism.decode("ascii", "replace")
        raise ProtocolError("bad_frame", f"the gateway requires the mechanism {name}; this worker has NULL only")
    decoder = Decoder(commands=True)
    messages = decoder.feed(received[len(_GREETING) :])
    while not messages:
        messages = decoder.feed(_receive(link))
    header, payloads = messages[0]
    if header["t"] != "$command" or not payloads[0].startswith(b"\x05READY"):
        raise ProtocolError("bad_frame", "the gateway refused the handshake of ZMTP")
    return decoder, messages[1:]


def _receive(link: socket.socket) -> bytes:
    data = link.recv(65_536)
    if not data:
        raise ConnectionResetError("the gateway closed the connection during the handshake")
    return data


def pong(command: bytes) -> bytes | None:
    """Returns the answer to a command of ZMTP, or None if it needs none.

    Raises ProtocolError for an ERROR command.
    """
    if command.startswith(b"\x04PING"):
        return frame(b"\x04PONG" + command[7:], COMMAND)
    if command.startswith(b"\x05ERROR"):
        reason = command[7:].decode("utf-8", "replace")
        raise ProtocolError("bad_frame", f"the gateway ended the connection: {reason}")
    return None
