"""The examples of docs/worker-protocol.md are what they claim to be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway_process import PROJECT, Gateway

from onward import _messages
from onward._frames import Decoder, encode

PAGE = (PROJECT / "docs/worker-protocol.md").read_text(encoding="utf-8")
MESSAGES = [
    message
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    for message in re.split(r"\n(?=\{)", block.strip())
]
[WORKER] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", MESSAGES, ids=[json.loads(text)["t"] for text in MESSAGES])
def test_a_message_of_the_page_is_valid(text: str) -> None:
    header = json.loads(text)
    payloads = [b"{}"] * header.get("payloads", 0)
    assert Decoder(commands=False, max_payload=1_000).feed(encode(dict(header), payloads)) == [(header, payloads)]
    if header["t"] in _messages._TYPES:
        _messages.parse(header, payloads)


def test_the_bytes_of_bye_are_those_of_the_page() -> None:
    assert " ".join(f"{byte:02x}" for byte in encode({"t": "bye"})) in PAGE


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)
    gateway = Gateway(tmp_path, worker)
    yield gateway
    gateway.end()


def test_the_worker_of_the_page_runs_tasks_in_60_lines(gateway: Gateway) -> None:
    assert len(WORKER.splitlines()) <= 60
    gateway.start()
    assert gateway.onward("submit", "--kind", "upper", "--wait", "hello").strip() == "HELLO"
    assert gateway.onward("submit", "--kind", "upper", "--wait", "again").strip() == "AGAIN"
