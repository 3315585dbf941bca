"""Workers over HTTP on the real server, also while it or the worker is killed."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway_process import TESTS, Gateway, wait_for

TASKS = 200


def free_port() -> int:
    """Returns a port of loopback that no program uses now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class HttpGateway(Gateway):
    """A store with `onward serve`, and a worker that reaches it over HTTP."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, TESTS / "count_worker.py")
        self._port = free_port()
        created = json.loads(self.onward("key", "create", "worker", "--role", "operator", "--json"))
        self.environment["ONWARD_KEY"] = created["key"]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self, *options: str) -> None:
        """Starts the server."""
        self.process = subprocess.Popen(
            [str(self._program), "serve", "--listen", f"127.0.0.1:{self._port}", *options],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        wait_for(self._is_up, f"the server listens; {self.log()[-2000:]}")

    def _is_up(self) -> bool:
        with socket.socket() as link:
            return link.connect_ex(("127.0.0.1", self._port)) == 0


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[HttpGateway]:
    gateway = HttpGateway(tmp_path)
    yield gateway
    gateway.end()


def submit(gateway: Gateway) -> None:
    lines = "".join(f"{number}\n" for number in range(TASKS))
    gateway.onward("submit", "--kind", "count", "--lines", stdin=lines)


def completed(gateway: Gateway) -> int:
    return gateway.count("--kind", "count", "--state", "completed")


def assert_each_completed_once(gateway: Gateway) -> None:
    wait_for(lambda: completed(gateway) == TASKS, f"all tasks complete; {gateway.log()[-3000:]}", 120)
    events = [json.loads(line) for line in gateway.onward("events", "--json").splitlines()]
    times = [event["task"] for event in events if event["change"] == "completed"]
    assert len(times) == len(set(times)) == TASKS


def test_tasks_run_in_a_worker_over_http(gateway: HttpGateway) -> None:
    gateway.start()
    gateway.start_worker()
    submit(gateway)
    assert_each_completed_once(gateway)


def test_killed_servers_lose_no_task_and_do_none_twice(gateway: HttpGateway) -> None:
    gateway.start()
    gateway.start_worker()
    submit(gateway)
    for goal in (20, 80):
        wait_for(lambda goal=goal: completed(gateway) >= goal, f"{goal} tasks; {gateway.log()[-3000:]}")  # type: ignore[misc]
        gateway.kill()
        gateway.start()
    assert_each_completed_once(gateway)


def test_a_killed_worker_loses_no_task(gateway: HttpGateway) -> None:
    gateway.start()
    first = gateway.start_worker()
    submit(gateway)
    wait_for(lambda: completed(gateway) >= 20, "20 tasks")
    first.kill()
    gateway.start_worker()
    assert_each_completed_once(gateway)


def test_a_wrong_key_is_refused_with_the_reason(gateway: HttpGateway) -> None:
    gateway.start()
    gateway.environment["ONWARD_KEY"] = "wrong"
    gateway.start_worker()
    wait_for(lambda: "credential_invalid" in gateway.log(), "the refusal is logged")
