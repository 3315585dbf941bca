"""The codec agrees with the vectors that every implementation reads."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from onward import _connect, _messages
from onward._frames import HEADER_BYTES, PAYLOAD_BYTES, Decoder, ProtocolError, encode

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "crates/onward-protocol/vectors.json").read_text(encoding="utf-8")
)


def names(vectors: list[dict[str, Any]]) -> list[str]:
    return [vector["name"] for vector in vectors]


def decoder(carrier: str = "child") -> Decoder:
    return Decoder(commands=carrier != "child", max_payload=PAYLOAD_BYTES)


def expected(vector: dict[str, Any]) -> list[tuple[dict[str, Any], list[bytes]]]:
    return [(one["header"], [bytes.fromhex(data) for data in one["payloads"]]) for one in vector["messages"]]


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=names(VECTORS["valid"]))
def test_valid_bytes_decode_to_their_messages(vector: dict[str, Any]) -> None:
    assert decoder().feed(bytes.fromhex(vector["hex"])) == expected(vector)


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=names(VECTORS["valid"]))
def test_a_stream_in_single_bytes_decodes_to_the_same(vector: dict[str, Any]) -> None:
    reader = decoder()
    messages = [message for byte in bytes.fromhex(vector["hex"]) for message in reader.feed(bytes((byte,)))]
    assert messages == expected(vector)


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=names(VECTORS["valid"]))
def test_an_encoded_message_decodes_to_itself(vector: dict[str, Any]) -> None:
    for header, payloads in expected(vector):
        assert decoder().feed(encode(dict(header), payloads)) == [(header, payloads)]


@pytest.mark.parametrize("vector", VECTORS["invalid"], ids=names(VECTORS["invalid"]))
def test_invalid_bytes_have_their_error(vector: dict[str, Any]) -> None:
    reader = decoder(vector.get("carrier", "child"))
    if vector.get("at_end"):
        assert reader.feed(bytes.fromhex(vector["hex"])) == []
        assert reader.inside_message
        return
    with pytest.raises(ProtocolError) as raised:
        reader.feed(bytes.fromhex(vector["hex"]))
    assert raised.value.code == vector["error"]


GATEWAY_HEADERS = [vector for vector in VECTORS["headers"] if vector["from"] == "gateway"]


@pytest.mark.parametrize("vector", GATEWAY_HEADERS, ids=names(GATEWAY_HEADERS))
def test_headers_of_the_gateway_are_checked(vector: dict[str, Any]) -> None:
    if vector["error"] is None:
        _messages.parse(vector["header"], [])
        return
    with pytest.raises(ProtocolError) as raised:
        _messages.parse(vector["header"], [])
    assert raised.value.code == vector["error"]


@pytest.mark.parametrize("vector", VECTORS["turn_headers"], ids=names(VECTORS["turn_headers"]))
def test_headers_of_turns_are_checked(vector: dict[str, Any]) -> None:
    payloads = [b"[]"] * vector["payloads"]
    if vector["error"] is None:
        _messages.parse(vector["header"], payloads)
        return
    with pytest.raises(ProtocolError) as raised:
        _messages.parse(vector["header"], payloads)
    assert raised.value.code == vector["error"]


def test_the_greeting_is_that_of_the_vectors() -> None:
    assert _connect._GREETING.hex() == VECTORS["greeting"]["both"]
    assert _connect._READY.hex() == VECTORS["greeting"]["worker_ready"]


def test_a_ping_is_answered_as_the_vectors_say() -> None:
    [(_, [command])] = decoder("ipc").feed(bytes.fromhex(VECTORS["greeting"]["ping"]))
    answer = _connect.pong(command)
    assert answer is not None
    assert answer.hex() == VECTORS["greeting"]["pong"]


def test_random_bytes_give_messages_or_protocol_errors() -> None:
    source = random.Random(7)
    errors = 0
    for _ in range(2_000):
        data = bytearray.fromhex(source.choice(VECTORS["valid"])["hex"])
        for _ in range(source.randint(1, 4)):
            data[source.randrange(len(data))] = source.randrange(256)
        try:
            for header, payloads in decoder().feed(bytes(data)):
                _messages.parse(header, payloads)
        except ProtocolError:
            errors += 1
    assert errors > 200


def test_a_header_over_the_bound_is_not_encoded() -> None:
    with pytest.raises(ProtocolError, match=str(HEADER_BYTES)):
        encode({"t": "end", "ends": ["x" * HEADER_BYTES]})


def test_payloads_together_have_a_bound() -> None:
    reader = Decoder(commands=False, max_payload=12 * PAYLOAD_BYTES)
    header = b'{"t":"end","payloads":2}'
    reader.feed(b"\x01" + bytes((len(header),)) + header + b"\x03" + (9 * PAYLOAD_BYTES).to_bytes(8, "big"))
    reader.feed(bytes(9 * PAYLOAD_BYTES))
    with pytest.raises(ProtocolError, match="payload_too_large"):
        reader.feed(b"\x02" + (8 * PAYLOAD_BYTES).to_bytes(8, "big"))
