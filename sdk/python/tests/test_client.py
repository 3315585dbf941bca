"""The client, beyond the cases of sdk/conformance/clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from client_stub import Stub
from onward import AsyncClient, Client, NewTask, Unavailable
from onward._payload import PayloadError

SUBMITTED = {"status": 201, "body": {"id": "7", "outcome": "inserted"}}
HELD = {"reply": {"events": [": open\n\n"]}, "cut": "response"}
"""A stream without an event, which the server cuts at once."""


@dataclass
class Point:
    x: int
    y: int


@pytest.fixture
def stub() -> Iterator[Stub]:
    stub = Stub()
    yield stub
    stub.close()
    assert not stub.faults


def client(stub: Stub, **options: Any) -> Client:
    return Client(stub.url, "stub-key", **options)


def test_a_result_is_read_as_the_type_that_is_asked_for(stub: Stub) -> None:
    stub.play(
        [
            {"reply": {"body": {"id": "7", "state": "completed"}}},
            {"reply": {"text": '{"x": 1, "y": 2}'}},
        ]
    )
    with client(stub) as it:
        outcome = it.wait("7")
    assert outcome.value(Point) == Point(1, 2)
    with pytest.raises(PayloadError, match="must be"):
        outcome.value(list[int])


def test_a_payload_may_be_a_dataclass(stub: Stub) -> None:
    stub.play([{"expect": {"body": {"payload": {"x": 1, "y": 2}}}, "reply": SUBMITTED}])
    with client(stub) as it:
        assert it.submit("plot", Point(1, 2)).is_new


def test_what_the_api_does_not_take_is_refused_before_it_is_sent(stub: Stub) -> None:
    with client(stub) as it:
        with pytest.raises(ValueError, match="has no headers"):
            it.submit(NewTask("k", headers={"a": "b"}))
        with pytest.raises(PayloadError, match="cannot be written as JSON"):
            it.submit("k", object())
        with pytest.raises(ValueError, match="leave them out"):
            it.watch("7", kinds=["k"])


@pytest.mark.parametrize("url", ["127.0.0.1:7070", "ftp://host", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="http://HOST:PORT"):
        Client(url)


def test_a_key_of_another_machine_is_not_taken_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "onward.db.serve-key").write_text("Authorization: Bearer secret\n")
    monkeypatch.setenv("ONWARD_STORE", str(tmp_path / "onward.db"))
    monkeypatch.delenv("ONWARD_KEY", raising=False)
    assert Client("http://localhost:7070")._http._credential.header() == "Bearer secret"
    assert Client("http://other:7070")._http._credential.header() is None


def test_a_watch_is_closed_by_another_thread(stub: Stub) -> None:
    stub.play([{**HELD, "repeat": True}])
    with client(stub) as it:
        watch = it.watch()
        timer = threading.Timer(0.1, watch.close)
        timer.start()
        assert list(watch) == []
        timer.join()


def test_a_closed_client_ends_what_is_under_way(stub: Stub) -> None:
    stub.play([{"repeat": True, "reply": {"body": {"id": "7", "state": "running"}}}])
    it = client(stub)
    timer = threading.Timer(0.1, it.close)
    timer.start()
    with pytest.raises(Unavailable, match="closed"):
        it.wait("7")
    timer.join()


def test_an_async_watch_ends_when_it_is_closed(stub: Stub) -> None:
    event = '{"cursor":"1.0.0","at":"t","task":"7","kind":"k","queue":"q","change":"started"}'
    stub.play([{"reply": {"events": [f"data: {event}\n\n"]}, "cut": "response"}, {**HELD, "repeat": True}])

    async def main() -> str:
        async with AsyncClient(stub.url, "stub-key") as it, aclosing(it.watch()) as watch:
            async for event in watch:
                return event.change
        return "none"

    assert asyncio.run(main()) == "started"


def test_many_async_calls_run_at_once(stub: Stub) -> None:
    stub.play([{"repeat": True, "reply": SUBMITTED}])

    async def main() -> list[str]:
        async with AsyncClient(stub.url, "stub-key", connections=8) as it:
            return [one.task for one in await asyncio.gather(*(it.submit("k", n) for n in range(50)))]

    assert asyncio.run(main()) == ["7"] * 50
