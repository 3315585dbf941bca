"""Workers as processes: addresses, slots, forks, standard output, trace context."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from onward import Worker, _trace
from onward._connect import Address, parse_address
from onward._outbox import HELD
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
        ("http://localhost", "child, ipc://PATH or tcp://HOST:PORT"),
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
