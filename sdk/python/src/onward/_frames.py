"""Frames and messages: the codec of every carrier. It does no I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

MORE, LONG, COMMAND = 1, 2, 4

HEADER_BYTES = 65_536
"""The longest header of a message."""

HEADER_DEPTH = 64
"""The deepest nesting of arrays and objects in a header."""

PAYLOADS = 1_024
"""The largest number of payloads of a message, and of entries of a list in a header."""

PAYLOAD_BYTES = 1_048_576
"""The default bound of one payload."""

MESSAGE_BYTES = 16 * 1_048_576
"""The bound of all payloads of a message together, unless it has only one."""

_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")

Header = dict[str, Any]
Message = tuple[Header, list[bytes]]

_encode_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decode_json = json.JSONDecoder(parse_constant=_no_constant).decode


class ProtocolError(Exception):
    """A message or frame that the protocol does not allow. `code` is the code of the error."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


def frame(body: bytes, flags: int = 0) -> bytes:
    """Returns one frame with its flags and length."""
    size = len(body)
    if size < 256:
        return bytes((flags, size)) + body
    return bytes((flags | LONG,)) + size.to_bytes(8, "big") + body


def encode(header: Header, payloads: Sequence[bytes] = ()) -> bytes:
    """Returns the bytes of a message.

    Raises ProtocolError `header_too_large` if the header exceeds its bound.
    """
    if not payloads:
        return frame(_header_bytes(header))
    header["payloads"] = len(payloads)
    parts = [frame(_header_bytes(header), MORE)]
    parts += [frame(payload, MORE) for payload in payloads[:-1]]
    parts.append(frame(payloads[-1]))
    return b"".join(parts)


def _header_bytes(header: Header) -> bytes:
    body = _encode_json(header).encode()
    if len(body) > HEADER_BYTES:
        raise ProtocolError(
            "header_too_large",
            f"the header of `{header.get('t')}` has {len(body)} bytes, more than {HEADER_BYTES};"
            " send fewer entries in a message",
        )
    return body


def decode_header(body: bytes, payloads: int) -> Header:
    """Returns the header in `body` of a message with this number of payload frames."""
    try:
        header = _decode_json(body.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError("bad_header", f"the header is not JSON in UTF-8: {error}") from None
    if not isinstance(header, dict) or not isinstance(header.get("t"), str):
        raise ProtocolError("bad_header", "the header is not an object with a string `t`")
    if not _is_shallow(body) and _depth(header) > HEADER_DEPTH:
        raise ProtocolError("bad_header", f"the header is nested deeper than {HEADER_DEPTH}")
    stated = header.get("payloads") or 0
    if stated != payloads or isinstance(stated, bool):
        raise ProtocolError("payload_count", f"`payloads` is {stated!r}, but {payloads} frames follow the header")
    return header


def _is_shallow(body: bytes) -> bool:
    """Returns whether a header is certainly not nested too deep; a text with brackets may hide it.

    Each round removes the innermost level, at the speed of `replace`.
    """
    brackets = body.translate(None, _NO_BRACKETS)
    for _ in range(HEADER_DEPTH):
        if not brackets:
            return True
        shorter = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if len(shorter) == len(brackets):
            return False
        brackets = shorter
    return not brackets


def _depth(value: Any) -> int:
    """Returns the nesting of a value, level by level, so that it needs no deep stack."""
    depth, level = 0, [value]
    while containers := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [
            item
            for container in containers
            for item in (container.values() if isinstance(container, dict) else container)
        ]
    return depth


class Decoder:
    """A decoder of a stream of frames into messages.

    `commands` allows command frames, which only ZMTP connections have. They are returned as
    messages of type `$command`, with the body as their payload.
    """

    def __init__(self, *, commands: bool, max_payload: int = 0) -> None:
        self.max_payload = max_payload
        self._commands = commands
        self._buffer = bytearray()
        self._at = 0
        self._frames: list[bytes] = []
        self._size = 0

    @property
    def inside_message(self) -> bool:
        """Returns True if the stream stands within a message or frame."""
        return bool(self._frames) or self._at < len(self._buffer)

    def feed(self, data: bytes) -> list[Message]:
        """Adds received bytes and returns the messages that they complete."""
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data
        messages: list[Message] = []
        while (message := self._next()) is not None:
            messages.append(message)
        return messages

    def _next(self) -> Message | None:
        buffer, available, at = self._buffer, len(self._buffer), self._at
        while available - at >= 2:
            flags = buffer[at]
            if flags <= MORE:  # a short frame, which is the common case
                size, start = buffer[at + 1], at + 2
            else:
                self._check_flags(flags)
                size, start = buffer[at + 1], at + 2
                if flags & LONG:
                    if available - at < 9:
                        return None
                    size, start = int.from_bytes(buffer[at + 1 : at + 9], "big"), at + 9
            self._check_size(size, flags)
            if available - start < size:
                return None
            at = self._at = start + size
            body = bytes(buffer[start:at])
            if flags & COMMAND:
                return {"t": "$command"}, [body]
            if self._frames:
                self._size += size
            self._frames.append(body)
            if not flags & MORE:
                frames, self._frames, self._size = self._frames, [], 0
                return decode_header(frames[0], len(frames) - 1), frames[1:]
        return None

    def _check_flags(self, flags: int) -> None:
        if flags & ~(MORE | LONG | COMMAND):
            raise ProtocolError("bad_frame", f"the flags of a frame are {flags:#04x}; bits 3-7 are 0")
        if flags & COMMAND and (not self._commands or flags & MORE or self._frames):
            raise ProtocolError("bad_frame", "a command frame is not allowed here")

    def _check_size(self, size: int, flags: int) -> None:
        """Checks a length before its body is read."""
        if not self._frames:
            if size > HEADER_BYTES:
                raise ProtocolError("header_too_large", f"a header has {size} bytes, more than {HEADER_BYTES}")
            return
        if len(self._frames) > PAYLOADS:
            raise ProtocolError("too_many", f"a message has more than {PAYLOADS} payloads")
        alone = len(self._frames) == 1 and not flags & MORE
        if size > self.max_payload or (not alone and self._size + size > MESSAGE_BYTES):
            raise ProtocolError(
                "payload_too_large",
                f"a payload has {size} bytes; one may have {self.max_payload}, and several {MESSAGE_BYTES} together",
            )
