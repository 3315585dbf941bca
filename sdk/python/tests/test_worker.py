"""Workers as processes: addresses, slots, forks, standard output, trace context."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from onward import Context, Unavailable, Worker, _trace
from onward._connect import Address, parse_address
from onward._ends import End
from onward._frames import Decoder, encode
from onward._link import Link
from onward._messages import Alive, TaskMessage, Welcome
from onward._outbox import HELD, Batch, Outbox, Request, encode_batch
from onward.worker import _slots_of

SOURCE = Path(__file__).parents[1] / "src"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("child", Address("child", "3")),
        ("ipc:///run/o.sock", Address("ipc", "/run/o.sock")),
        ("tcp://127.0.0.1:5555", Address("tcp", "127.0.0.1", 5555)),
        ("tcp://[::1]:5555", Address("tcp", "::1", 5555)),
        ("tcp://localhost:1", Address("tcp", "localhost", 1)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text, {}) == address
    assert parse_address(None, {"ONWARD_GATEWAY": text}) == address


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (None, "onward work --app"),
        ("udp://localhost", "child, ipc://PATH, tcp://HOST:PORT"),
        ("tcp://127.0.0.1", "tcp://HOST:PORT"),
        ("tcp://10.0.0.1:5", "SSH"),
        ("tcp://127.0.0.1.example.org:5", "SSH"),
    ],
)
def test_a_wrong_address_names_the_remedy(text: str | None, remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy):
        parse_address(text, {})


def test_slots_come_from_the_gateway_and_are_bounded() -> None:
    assert (_slots_of({}), _slots_of({"ONWARD_SLOTS": "3"}), _slots_of({"ONWARD_SLOTS": "9999"})) == (8, 3, HELD)
    with pytest.raises(ValueError, match="ONWARD_SLOTS is `many`"):
        _slots_of({"ONWARD_SLOTS": "many"})


def test_a_worker_without_handlers_does_not_start() -> None:
    with pytest.raises(ValueError, match="has no handler"):
        asyncio.run(Worker(gateway="child").serve())


def test_too_many_slots_are_refused() -> None:
    with pytest.raises(ValueError, match="start more processes"):
        Worker(slots=1_000, prefetch=100)


def test_a_worker_that_is_stopped_while_it_connects_says_bye(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway, worker = socket.socketpair()
    gateway.settimeout(10)
    monkeypatch.setenv("ONWARD_FD", str(worker.detach()))
    said_bye, say_bye = threading.Event(), Link.say_bye

    def observed(link: Link, *, last: bool) -> None:
        say_bye(link, last=last)
        said_bye.set()

    monkeypatch.setattr(Link, "say_bye", observed)
    app = Worker(gateway="child")
    app.handler("it")(lambda task: None)
    thread = threading.Thread(target=lambda: asyncio.run(app.serve()))
    thread.start()
    decoder, types = Decoder(commands=False), list[str]()

    def read(last: str) -> list[str]:
        while last not in types:
            data = gateway.recv(65_536)
            assert data, f"the connection ended after {types}"
            types.extend(header["t"] for header, _ in decoder.feed(data))
        return types

    read("hello")
    app.stop()
    assert said_bye.wait(10)
    welcome = {"t": "welcome", "protocol": 1, "session": "s", "lease_ms": 15_000, "heartbeat_ms": 5_000}
    gateway.sendall(encode(welcome))
    assert read("bye") == ["hello", "drain", "bye"]
    gateway.close()
    thread.join(10)
    assert not thread.is_alive()


def run_worker(code: str, environment: dict[str, str], *, fd: int | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
        pass_fds=() if fd is None else (fd,),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


GREETER = """
    from onward import Worker
    app = Worker()
    app.handler("greet")(lambda: None)
    app.run()
"""


def test_a_program_started_by_hand_says_how_to_start_it() -> None:
    environment = {"ONWARD_GATEWAY": "", "ONWARD_FD": ""}
    done = run_worker("import os; del os.environ['ONWARD_GATEWAY']\n" + textwrap.dedent(GREETER), environment)
    assert done.returncode == 1
    assert "onward work --app" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_descriptor_that_is_no_socket_is_named() -> None:
    done = run_worker(GREETER, {"ONWARD_GATEWAY": "child", "ONWARD_FD": "0"})
    assert done.returncode == 1
    assert "ONWARD_FD is 0, which is no socket" in done.stderr


def test_a_forked_process_cannot_use_the_worker() -> None:
    ours, theirs = socket.socketpair()
    code = """
        import os, sys, warnings
        warnings.simplefilter("ignore")
        from onward import ForkError, Worker
        app = Worker()

        @app.handler("fork")
        def fork(_, ctx):
            if os.fork() == 0:
                try:
                    ctx.checkpoint(1)
                except ForkError as error:
                    print("refused:", error, flush=True)
                os._exit(0)
            os.wait()
            return "parent"

        app.run()
    """
    with ours:
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={
                **os.environ,
                "PYTHONPATH": str(SOURCE),
                "ONWARD_GATEWAY": "child",
                "ONWARD_FD": str(theirs.fileno()),
            },
            pass_fds=(theirs.fileno(),),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        from frames import Messages, Stream, encode

        messages = Messages(Stream(ours))
        assert messages.read(10)[0]["t"] == "hello"
        welcome = {"t": "welcome", "protocol": 1, "session": "s", "lease_ms": 20_000, "heartbeat_ms": 5_000}
        ours.sendall(encode(welcome, []))
        ours.sendall(encode({"t": "tasks", "tasks": [{"task": "1", "fence": "1", "kind": "fork", "attempt": 1}]}, []))
        header: dict[str, object] = {}
        payloads: list[bytes] = []
        while header.get("t") != "end":
            header, payloads = messages.read(10)
        assert payloads == [b'"parent"']
    out, _ = process.communicate(timeout=20)
    assert "refused: this process was forked from a running worker" in out
    assert "spawn" in out


def test_trace_context_is_active_around_a_handler() -> None:
    from opentelemetry import trace

    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    with _trace.active({"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}):
        assert format(trace.get_current_span().get_span_context().trace_id, "032x") == trace_id
    assert trace.get_current_span().get_span_context().trace_id == 0


def test_a_request_without_a_gateway_fails_instead_of_waiting() -> None:
    outbox = Outbox(1, time.monotonic)
    early, late = Request({"t": "ask"}, [], resend=True), Request({"t": "ask"}, [], resend=True)
    outbox.request(early)
    outbox.abandon()
    outbox.request(late)
    for request in (early, late):
        with pytest.raises(Unavailable, match="no connection"):
            request.future.result(1)


def test_a_report_after_the_end_is_not_sent() -> None:
    outbox = Outbox(1, time.monotonic)
    outbox.open(Welcome("s", 60.0, 20.0, 1_000, frozenset(), ""))
    runtime: Any = None
    context = Context(TaskMessage("1", "1", "k", 1, b""), runtime)
    outbox.receive([context])
    outbox.end(context, None)
    outbox.take()  # the grant
    outbox.touch(context)
    assert not outbox._touched


def test_a_lease_ends_after_the_last_answered_beat() -> None:
    now = 0.0
    outbox = Outbox(1, lambda: now)
    outbox.open(Welcome("s", 10.0, 4.0, 1_000, frozenset(), ""))
    outbox.take()  # the grant
    now = 3.0
    batch = outbox.take()
    assert batch is not None
    assert batch.beat == 1
    now = 9.0
    assert outbox.lease_end == 10.0
    outbox.alive(Alive(1, [], {}))
    assert outbox.lease_end == 13.0
    outbox.alive(Alive(7, [], {}))
    assert outbox.lease_end == 13.0
    now = 13.0
    assert outbox.take() is None


def test_ends_are_split_where_a_header_would_be_too_long() -> None:
    ends = [End({"task": str(n), "fence": "1", "outcome": "fail", "message": "x" * 8_000}) for n in range(40)]
    data = encode_batch(Batch([], ends, [], None, [], [], None))
    messages = Decoder(commands=False, max_payload=0).feed(data)
    assert len(messages) > 1
    assert [end["task"] for header, _ in messages for end in header["ends"]] == [str(n) for n in range(40)]
